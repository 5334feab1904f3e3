"""A target either stands in the source's history, or the first difference is named."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.history import look
from holdfast.application.transport.divergence import find_standing
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError
from holdfast.domain.record import Head, Removal
from holdfast.ports import Store
from tests.application.copies import copy, innards, past


def standing(source: Store, target: Store) -> Head:
    return find_standing(source, target, look(source, "A"))


def test_an_empty_target_stands_at_the_beginning() -> None:
    told = past()
    told.checkpoint("A")
    assert standing(told.kit.store, MemoryStore()) == Head()


def test_a_target_stands_where_it_was_copied_to() -> None:
    told, target = past(), MemoryStore()
    told.event("A")
    told.checkpoint("A", times=2)
    copy(told.kit.store, target)
    before = told.kit.store.head("A")
    assert standing(told.kit.store, target) == before
    told.checkpoint("A")
    told.event("A")
    assert standing(told.kit.store, target) == before


def test_a_target_stands_also_at_an_event_that_the_source_has_just_removed() -> None:
    told, target = past(), MemoryStore()
    told.checkpoint("A", times=2)
    copy(told.kit.store, target)
    told.checkpoint("A", times=2)
    told.kit.store.remove("A", Removal((), events_through=2))
    assert standing(told.kit.store, target).event_seq == 2
    told.kit.store.remove("A", Removal((), events_through=3))
    with pytest.raises(CheckpointConflictError, match="has removed events 3 to 3, which the target lacks"):
        standing(told.kit.store, target)


def test_a_target_that_removed_all_that_new_checkpoints_build_on_is_a_conflict() -> None:
    told, target = past(), MemoryStore()
    told.checkpoint("A", times=3)
    copy(told.kit.store, target)
    target.remove("A", Removal((1, 2), (), events_through=2))
    assert standing(told.kit.store, target).sequence == 3
    told.checkpoint("A")
    assert standing(told.kit.store, target).sequence == 3
    target.remove("A", Removal((3,), (1,)))
    with pytest.raises(CheckpointConflictError, match="the target has removed every checkpoint up to 3"):
        standing(told.kit.store, target)


def test_an_event_after_the_last_common_one_must_be_built_on_it() -> None:
    told, target = past(), MemoryStore()
    told.event("A")
    copy(told.kit.store, target)
    past(target).event("A", "another")
    told.event("A", "one")
    told.event("A", "two")
    told.kit.store.remove("A", Removal((), events_through=2))
    with pytest.raises(CheckpointConflictError, match="its last event is none of the source's"):
        standing(told.kit.store, target)


def test_the_first_checkpoint_that_differs_is_named_with_both_checksums() -> None:
    told, other = past(), past()
    for one in (told, other):
        one.event("A", "first")
        one.checkpoint("A")
    told.checkpoint("A", "mine", times=3)
    other.checkpoint("A", "yours", times=3)
    with pytest.raises(CheckpointConflictError) as caught:
        standing(told.kit.store, other.kit.store)
    mine, yours = (list(store.entries("A"))[1].checksum for store in (told.kit.store, other.kit.store))
    assert "checkpoint 2 is " in caught.value.message
    assert mine[:19] in caught.value.message and yours[:19] in caught.value.message
    assert "Copy it into another store" in caught.value.hint


def test_the_first_event_that_differs_is_named() -> None:
    told, other = past(), past()
    for one, text in ((told, "mine"), (other, "yours")):
        one.checkpoint("A")
        one.event("A", text)
    with pytest.raises(CheckpointConflictError, match="event 2 is sha256:"):
        standing(told.kit.store, other.kit.store)


def test_a_target_that_went_on_by_itself_is_ahead() -> None:
    told, other = past(), past()
    for one in (told, other):
        one.checkpoint("A")
    other.event("A")
    with pytest.raises(CheckpointConflictError, match="it has event 2, the source ends with 1"):
        standing(told.kit.store, other.kit.store)
    other.checkpoint("A")
    with pytest.raises(CheckpointConflictError, match="it has checkpoint 2, the source ends with 1"):
        standing(told.kit.store, other.kit.store)


def test_a_source_without_the_events_it_counts_is_damaged() -> None:
    told, target = past(), MemoryStore()
    told.checkpoint("A")
    copy(told.kit.store, target)
    told.checkpoint("A", times=2)
    innards(told.kit.store, "A").events.clear()
    with pytest.raises(CheckpointCorruptError, match="there is no event after 0"):
        standing(told.kit.store, target)
