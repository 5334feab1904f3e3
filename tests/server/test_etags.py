"""Versions of things by their ETags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.record import Entry
from holdfast.server.etags import check_match, checkpoint_etag, is_named
from holdfast.server.problems import Refusal

ENTRY = Entry(3, "u-3", "2026-01-01T00:00:00Z", "stage_complete", "sha256:00")


@pytest.mark.parametrize(
    "other",
    [{"checksum": "sha256:11"}, {"status": "failed"}, {"retry_count": 1}, {"pinned": True}, {"pruned": True}],
)
def test_every_change_has_a_name_of_its_own(other):
    assert checkpoint_etag(replace(ENTRY, **other)) != checkpoint_etag(ENTRY)
    assert checkpoint_etag(replace(ENTRY)) == checkpoint_etag(ENTRY)


def test_a_version_that_is_known_is_found_among_others():
    etag = checkpoint_etag(ENTRY)
    assert etag.startswith('"') and etag.endswith('"')
    for header in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        assert is_named(etag, header)
    assert not is_named(etag, "") and not is_named(etag, '"x"')


@pytest.mark.parametrize(
    ("header", "status"), [("", 428), (" ", 428), ('"x"', 412), ("*", 412), ("\xd7", 400), ("\t\x01", 400)]
)
def test_a_change_of_another_version_is_refused(header, status):
    with pytest.raises(Refusal) as refused:
        check_match(checkpoint_etag(ENTRY), {"if-match": header})
    assert refused.value.status == status


def test_a_change_of_the_version_that_was_seen_is_let_pass():
    check_match(checkpoint_etag(ENTRY), {"if-match": checkpoint_etag(ENTRY)})
