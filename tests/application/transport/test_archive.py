from __future__ import annotations

import pytest

from holdfast.application.service import CheckpointService
from holdfast.application.transport.archive import verify_archive
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError
from holdfast.ports import Finding, Store
from tests.application.services import make_kit


def filled() -> Store:
    kit = make_kit(blob_threshold_bytes=64)
    service = CheckpointService(kit)
    for number in range(3):
        service.create_checkpoint("W", {"number": number, "text": f"{number}" * 1000})
    return kit.store


def test_a_whole_archive_is_found_whole():
    verify_archive(filled(), ["W"])


def damaged(*args, **kwargs):
    raise ChecksumMismatchError("the bytes are not what was committed", place="W")


@pytest.mark.parametrize("piece", ["records", "events", "blob", "keyframe"])
def test_every_piece_is_looked_at(monkeypatch, piece):
    store = filled()
    monkeypatch.setattr(type(store), piece, damaged)
    with pytest.raises(CheckpointCorruptError, match="archive is damaged"):
        verify_archive(store, ["W"])


def test_what_the_archive_says_about_itself_counts_too(monkeypatch):
    store = filled()
    monkeypatch.setattr(type(store), "check", lambda self: iter([Finding("page 3", "torn")]))
    with pytest.raises(CheckpointCorruptError, match="torn"):
        verify_archive(store, [])
    monkeypatch.setattr(type(store), "check", lambda self: iter([Finding("page 3", "odd", harm=False)]))
    verify_archive(store, ["W"])
