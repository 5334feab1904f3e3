"""Reports on what was set aside: names a store takes, and parts that come apart again."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError
from holdfast.domain.ids import check_file_name
from holdfast.domain.quarantine import (
    PIECE_BYTES,
    Kind,
    Part,
    Quarantined,
    Release,
    decode_report,
    encode_report,
    evidence_name,
    in_pieces,
    parts_of,
)


def report(**more: object) -> Quarantined:
    sha256 = hashlib.sha256(b"onetwo").hexdigest()
    parts = (Part("record", 3, "a"), Part("keyframe", 9, "b", is_copied=False), Part("blob-x", 3, "c"))
    given = {"kind": Kind.CHECKPOINT, "workflow_id": "WF", "sequence": 3, "parts": parts, **more}
    return Quarantined("name", "WF@3", "it is wrong", sha256, 6, "2026-01-11T12:00:00Z", **given)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()), st.integers(1, 10**9))
def test_whatever_a_workflow_is_called_its_files_have_names_that_a_store_takes(workflow_id, sequence):
    for kind in Kind:
        name = evidence_name(workflow_id, sequence, kind, "0" * 64)
        for file in in_pieces(name, bytes(PIECE_BYTES + 1)):
            check_file_name(file)


@pytest.mark.parametrize("released", [None, Release("2026-01-12T12:00:00Z", "ann", "it is well")])
def test_a_report_is_read_as_it_was_written(released):
    written = report(released=released, files=("quarantine/name.bin",), checksum="sha256:x", found_by="bob")
    assert decode_report("name", encode_report(written)) == written
    assert written.bars is (released is None)


def test_a_report_of_the_filesystem_and_fields_nobody_knows_are_read_too():
    fields = {"place": "journal", "reason": "r", "sha256": "0", "bytes": 1, "found_at": "t", "later": [1]}
    read = decode_report("j-1", json.dumps(fields).encode())
    assert (read.kind, read.place, read.size_bytes, read.bars) == (Kind.FILE, "journal", 1, False)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"place": 1', b"null", b"[" * 100_000, b"\xff"])
def test_what_is_no_report_is_not_taken_for_one(data):
    with pytest.raises(CheckpointCorruptError, match="cannot be read"):
        decode_report("x", data)


def test_parts_that_were_copied_come_apart_again_and_those_that_are_whole_were_not():
    assert report().cut(b"onetwo") == {"record": b"one", "blob-x": b"two"}
    with pytest.raises(ChecksumMismatchError):
        report().cut(b"onetwo!")
    assert report(parts=()).cut(b"onetwo") == {"data": b"onetwo"}


@given(st.lists(st.tuples(st.text("abc", min_size=1), st.binary()), unique_by=lambda piece: piece[0]))
def test_pieces_are_described_and_what_is_sound_is_left_out(pieces):
    sound = [name for name, _ in pieces[::2]]
    parts, data = parts_of(pieces, sound)
    assert [(part.name, part.size_bytes, part.is_copied) for part in parts] == [
        (name, len(held), name not in sound) for name, held in pieces
    ]
    assert data == b"".join(held for name, held in pieces if name not in sound)


@pytest.mark.parametrize(
    ("size", "count"), [(0, 0), (1, 1), (PIECE_BYTES, 1), (PIECE_BYTES + 1, 2), (3 * PIECE_BYTES, 3)]
)
def test_evidence_is_cut_into_pieces_that_add_up(size, count):
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    pieces = in_pieces("name", data)
    assert len(pieces) == count and b"".join(pieces.values()) == data
    assert list(pieces) == sorted(pieces)


def test_a_report_that_claims_files_of_others_is_none():
    claimed = report(files=("quarantine/name.bin", "sessions/of-somebody.json"))
    with pytest.raises(CheckpointCorruptError):
        decode_report("name", encode_report(claimed))
