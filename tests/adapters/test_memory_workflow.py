"""What is kept in memory about one workflow adds up."""

from __future__ import annotations

from holdfast.adapters.memory_workflow import Workflow
from holdfast.conformance.history import make_keyframe
from holdfast.domain.record import Entry, Record, Transition


def record(sequence: int, data: bytes, group: int = 1) -> Record:
    return Record(Entry(sequence, f"u{sequence}", "t", "x", f"c{sequence}", group=group, blobs=("b",)), data)


def test_a_record_becomes_the_head_and_a_transition_moves_it():
    workflow = Workflow()
    workflow.add(record(1, b"one"))
    workflow.move(Transition(1, "completed", 2, pinned=True))
    assert (workflow.head.sequence, workflow.head.checksum) == (1, "c1")
    moved = workflow.entries[1]
    assert (moved.status, moved.retry_count, moved.pinned) == ("completed", 2, True)


def test_a_group_goes_with_its_records_and_its_keyframe_and_leaves_entries():
    workflow = Workflow()
    workflow.add(record(1, b"one"))
    workflow.add(record(2, b"two", group=2))
    workflow.keyframes[1] = make_keyframe(1, b"state")
    assert workflow.size_bytes == 11
    workflow.drop_group(1)
    assert workflow.size_bytes == 3
    assert workflow.evidence(1, {"b": b"blob"}) == []
    assert workflow.evidence(2, {"b": b"blob"}) == [("record", b"two"), ("blob-b", b"blob")]


def test_a_tombstone_without_a_record_has_none():
    workflow = Workflow()
    workflow.add(record(1, b""))
    assert list(workflow.entries) == [1] and workflow.records == {}
