"""Nothing of a history is read that was not verified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application import history as module
from holdfast.application.history import first_event, look, read_events, read_records
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
)
from holdfast.domain.record import Head, Removal
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.application.copies import eventful, innards, past


def pruned() -> Store:
    """A store whose workflow A lost its first groups; some tombstones still have their bytes."""
    return eventful().kit.store


def test_a_look_lists_what_is_there_up_to_the_head() -> None:
    store = pruned()
    history = look(store, "A")
    assert history.head == store.head("A")
    assert [entry.sequence for entry in history.entries] == list(range(1, history.head.sequence + 1))
    assert history.keyframes == tuple(store.keyframes("A"))
    assert history.blobs() == {name for name in history.blobs() if store.has_blob(name)}


def test_a_tombstone_whose_record_is_gone_belongs_to_no_group() -> None:
    store = pruned()
    history = look(store, "A")
    stored = set(innards(store, "A").records)
    for entry in history.entries:
        assert bool(entry.group) == (entry.sequence in stored) == bool(entry.length)
        assert entry.group or (entry.pruned and not entry.blobs)
    assert 0 < len(stored) < len(history.entries)


def test_a_workflow_that_is_not_there_has_an_empty_history() -> None:
    history = look(MemoryStore(), "nowhere")
    assert (history.head, history.entries, history.keyframes) == (Head(), (), ())
    assert list(read_records(MemoryStore(), history)) == []
    assert list(read_events(MemoryStore(), history)) == []
    assert first_event(MemoryStore(), "nowhere") == 0


def test_keyframes_are_found_by_their_sequence() -> None:
    history = look(pruned(), "A")
    assert [history.keyframe_at(one.sequence) for one in history.keyframes] == list(history.keyframes)
    assert history.keyframe_at(1) is None and history.keyframe_at(10**6) is None


def test_a_listing_that_does_not_reach_the_head_is_refused() -> None:
    store = FailingStore(pruned())
    store.alter("entries", lambda answer: list(answer)[:-1])
    with pytest.raises(CheckpointConflictError, match="changed while it was read"):
        look(store, "A")


@pytest.mark.parametrize("piece", [1, 3, 256])
def test_records_come_in_order_whatever_is_read_at_once(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(module, "READ_COUNT_MAX", piece)
    store = pruned()
    history = look(store, "A")
    records = list(read_records(store, history))
    assert [record.entry for record in records] == list(history.entries)
    assert {r.entry.sequence: r.data for r in records if r.data} == innards(store, "A").records
    assert list(read_records(store, history, after=120)) == records[120:]


def test_large_records_are_read_in_smaller_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READ_BYTES_MAX", 1500)
    store = FailingStore(pruned())
    list(read_records(store, look(store, "A")))
    assert store.calls["records"] > 10


def damage(what: str, store: Store) -> None:
    workflow = innards(store, "A")
    if what == "letter":
        workflow.records[120] = workflow.records[120].replace(b'"ts":"2', b'"ts":"3')
    elif what == "listed checksum":
        workflow.entries[120] = replace(workflow.entries[120], checksum="sha256:" + "0" * 64)
    elif what == "another record":
        workflow.records[120] = workflow.records[121]
    else:
        workflow.records[120] = b""


@pytest.mark.parametrize("what", ["letter", "listed checksum", "another record", "nothing"])
def test_a_record_that_is_not_the_one_committed_is_never_given(what: str) -> None:
    store = pruned()
    damage(what, store)
    history = look(store, "A")
    given = read_records(store, history)
    with pytest.raises(ChecksumMismatchError) as caught:
        for record in given:
            assert record.entry.sequence < 120
    assert caught.value.place == "A@120"


def test_records_of_another_workflow_are_not_taken() -> None:
    told = past()
    store = told.kit.store
    told.checkpoint("A", times=2)
    told.checkpoint("B")
    for name in ("head", "entries", "records", "events"):
        setattr(innards(store, "B"), name, getattr(innards(store, "A"), name))
    with pytest.raises(ChecksumMismatchError, match="not the one that is listed"):
        list(read_records(store, look(store, "B")))
    with pytest.raises(CheckpointCorruptError, match="event 1 is one of A"):
        list(read_events(store, look(store, "B")))


def test_a_record_that_is_gone_is_not_found() -> None:
    store = pruned()
    del innards(store, "A").records[120]
    with pytest.raises(CheckpointNotFoundError, match="records are there"):
        list(read_records(store, look(store, "A")))


def test_a_history_may_begin_in_the_middle() -> None:
    store = pruned()
    for sequence in range(1, 68):
        del innards(store, "A").entries[sequence]
    history = look(store, "A")
    records = list(read_records(store, history))
    assert records[0].entry.sequence == 68 and records[0].data
    assert first_event(store, "A") > 1
    assert len(list(read_events(store, history))) == len(list(store.events("A")))


def test_events_are_read_up_to_the_head_and_after_one() -> None:
    store = pruned()
    history = look(store, "A")
    events = list(read_events(store, history))
    assert [event.data for event in events] == list(store.events("A"))
    assert (events[-1].seq, events[-1].hash) == (history.head.event_seq, history.head.event_hash)
    third = events[2]
    assert list(read_events(store, history, third.seq, third.hash)) == events[3:]
    assert list(read_events(store, history, events[-1].seq, events[-1].hash)) == []


def spoil(what: str, events: list[Any]) -> list[Any]:
    at = len(events) // 2
    if what == "letter":
        changed = replace(events[at], data=events[at].data.replace(b'"ts":"2', b'"ts":"3'))
        return [*events[:at], changed, *events[at + 1 :]]
    if what == "hole":
        return [*events[:at], *events[at + 1 :]]
    return events[:-2]


@pytest.mark.parametrize("what", ["letter", "hole", "end"])
def test_damaged_events_are_never_given_as_whole(what: str) -> None:
    store = pruned()
    workflow = innards(store, "A")
    workflow.events = spoil(what, workflow.events)
    with pytest.raises(CheckpointCorruptError):
        list(read_events(store, look(store, "A")))


def test_the_very_first_event_is_checked_too() -> None:
    told = past()
    told.event("A", "first")
    workflow = innards(told.kit.store, "A")
    [event] = workflow.events
    workflow.events = [replace(event, data=event.data.replace(b"first", b"worst"))]
    with pytest.raises(ChecksumMismatchError):
        list(read_events(told.kit.store, look(told.kit.store, "A")))


def test_events_that_were_removed_after_the_last_one_known_are_not_found() -> None:
    store = pruned()
    history = look(store, "A")
    events = list(read_events(store, history))
    store.remove("A", Removal((), events_through=events[4].seq))
    with pytest.raises(CheckpointNotFoundError, match="are gone"):
        list(read_events(store, history, events[2].seq, events[2].hash))
