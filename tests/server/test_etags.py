"""Versions of things by their ETags."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.record import Entry
from holdfast.server.etags import answer_etag, check_match, checkpoint_etag, named, packed_etag
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
        assert named(etag, header) == etag
    assert named(etag, "") is None and named(etag, '"x"') is None


def test_compressed_bytes_that_are_known_are_named_as_such():
    etag = checkpoint_etag(ENTRY)
    assert named(etag, f'"x", W/{packed_etag(etag)}') == packed_etag(etag)


def test_an_answer_has_a_name_of_its_own_and_changes_name_the_version_in_it():
    version = checkpoint_etag(ENTRY)
    one, other = answer_etag(version, b"next: none"), answer_etag(version, b"next: 4")
    assert one != other and named(one, other) is None and named(one, version) is None
    for seen in (one, other, packed_etag(one)):
        check_match(version, {"if-match": seen})
    with pytest.raises(Refusal):
        check_match(checkpoint_etag(ENTRY, noted=7), {"if-match": one})


@pytest.mark.parametrize(
    ("header", "status"), [("", 428), (" ", 428), ('"x"', 412), ("*", 412), ("\xd7", 400), ("\t\x01", 400)]
)
def test_a_change_of_another_version_is_refused(header, status):
    with pytest.raises(Refusal) as refused:
        check_match(checkpoint_etag(ENTRY), {"if-match": header})
    assert refused.value.status == status


def test_a_change_of_the_version_that_was_seen_is_let_pass():
    check_match(checkpoint_etag(ENTRY), {"if-match": checkpoint_etag(ENTRY)})
