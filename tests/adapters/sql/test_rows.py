"""Rows come back as the entries they were written from; anything else is damage."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.sql import rows
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Entry, Head, KeyframeEntry, Lease

ENTRY = Entry(7, "uuid", "2026-01-11T12:00:00.000000Z", "agent_complete", "sha256:c", blobs=("a", "b"))
KEYFRAME = KeyframeEntry(7, "sha", 3, "json.zst", ("a",))

numbers = st.integers(0, 2**62)
texts = st.text()
maybe_texts = st.none() | texts
entries = st.builds(
    Entry,
    sequence=numbers,
    uuid=texts,
    timestamp=texts,
    type=texts,
    checksum=texts,
    parent=numbers,
    group=numbers,
    length=numbers,
    state_bytes=numbers,
    status=texts,
    stage=maybe_texts,
    agent=maybe_texts,
    session=maybe_texts,
    phase=st.none() | numbers,
    label=maybe_texts,
    blobs=st.lists(texts).map(tuple),
    event_seq=numbers,
    schema=texts,
    retry_count=numbers,
    pinned=st.booleans(),
    pruned=st.booleans(),
)


@given(entries)
def test_an_entry_comes_back_as_it_was(entry: Entry) -> None:
    assert rows.read_entry(rows.entry_row(entry), "W@7") == entry


def test_every_field_of_an_entry_has_its_column() -> None:
    renamed = {"grp": "group"}
    assert [renamed.get(name, name) for name in rows.ENTRY_NAMES] == [field.name for field in fields(Entry)]
    assert list(rows.KEYFRAME_NAMES) == [field.name for field in fields(KeyframeEntry)]


def test_truth_values_may_be_numbers() -> None:
    row = (*rows.entry_row(ENTRY)[:-2], 1, 0)
    assert rows.read_entry(row, "W@7") == replace(ENTRY, pinned=True)


def test_a_keyframe_entry_comes_back_as_it_was() -> None:
    assert rows.read_keyframe_entry(rows.keyframe_row(KEYFRAME), "W@7") == KEYFRAME


@pytest.mark.parametrize("name", rows.ENTRY_NAMES)
def test_an_entry_with_a_value_of_another_kind_is_damage(name: str) -> None:
    row = list(rows.entry_row(ENTRY))
    row[rows.ENTRY_NAMES.index(name)] = 1.5
    with pytest.raises(CheckpointCorruptError, match="W@7"):
        rows.read_entry(tuple(row), "W@7")


@pytest.mark.parametrize("blobs", ["", "{}", "[1]", "[" * 100_000, "nul\0"])
def test_names_of_blobs_that_are_no_list_of_texts_are_damage(blobs: str) -> None:
    with pytest.raises(CheckpointCorruptError):
        rows.read_keyframe_entry((*rows.keyframe_row(KEYFRAME)[:-1], blobs), "W@7")


def test_a_head_is_where_a_workflow_stands_or_its_beginning() -> None:
    assert rows.read_head((None, None, None, None), "W") == Head()
    assert rows.read_head((2, "c", 3, "h"), "W") == Head(2, "c", 3, "h")
    assert rows.read_head((None, None, 3, "h"), "W") == Head(0, GENESIS, 3, "h")
    with pytest.raises(CheckpointCorruptError):
        rows.read_head(("2", "c", 3, "h"), "W")


def test_a_lease_is_read() -> None:
    assert rows.read_lease(("W", "ann", 3, "2026"), "W") == Lease("W", "ann", 3, "2026")
    with pytest.raises(CheckpointCorruptError):
        rows.read_lease(("W", "ann", "3", "2026"), "W")


def test_bytes_and_texts_are_nothing_else() -> None:
    assert rows.read_bytes(memoryview(b"x"), "W") == b"x"
    assert rows.read_text("x", "W") == "x"
    for wrong in ("text", None, 1):
        with pytest.raises(CheckpointCorruptError):
            rows.read_bytes(wrong, "W")
    with pytest.raises(CheckpointCorruptError):
        rows.read_text(b"bytes", "W")


def test_bytes_are_compared_with_what_was_committed() -> None:
    sha256 = hashlib.sha256(b"x").hexdigest()
    assert rows.verified(b"x", sha256, "W") == b"x"
    with pytest.raises(ChecksumMismatchError):
        rows.verified(b"y", sha256, "W")
    with pytest.raises(CheckpointCorruptError):
        rows.verified(None, sha256, "W")


def test_what_is_missing_is_named() -> None:
    assert "W@3" in str(rows.no_checkpoint("W", 3))
    assert "keyframe" in str(rows.no_checkpoint("W", 3, "keyframe"))
    assert isinstance(rows.no_blob("abc"), CheckpointNotFoundError)


def test_the_last_entry_of_a_session_is_its_head() -> None:
    row = (7, "sha256:c", "2026-01-11T12:00:00.000000Z", "AGENT_DECISION")
    assert rows.read_trail_head(row, "s") == TrailHead("s", 7, row[1], row[2])
    assert rows.read_trail_head((*row[:3], "SESSION_CLOSED"), "s").closed
    for at in range(4):
        with pytest.raises(CheckpointCorruptError, match="row"):
            rows.read_trail_head((*row[:at], b"else", *row[at + 1 :]), "s")


def test_a_whole_number_is_one() -> None:
    assert rows.read_whole(7, "leaf") == 7
    for strange in (None, "7", 7.0, b"7"):
        with pytest.raises(CheckpointCorruptError):
            rows.read_whole(strange, "leaf")
