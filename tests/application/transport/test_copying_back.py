"""Two stores take turns: what either of them removed is missing in neither, and nothing gets lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.application.history import look
from holdfast.application.service import CheckpointService
from holdfast.application.transport.copying import Outcome
from holdfast.domain.errors import CheckpointConflictError, CheckpointError
from holdfast.ports import Store
from holdfast.testing import FailingStore, FixedClock, SequentialIds
from tests.application.copies import Past, copy, holdings, make_copier, opened, past, states, steps

PAIRS = [("file", "sqlite"), ("sqlite", "file"), ("memory", "memory"), ("file", "memory")]
pairs = pytest.mark.parametrize("schemes", PAIRS, ids="-".join)


def outcome(source: Store, target: Store) -> Outcome:
    [result] = copy(source, target, "A").workflows
    assert result.error is None
    return result.outcome


def pasts(*stores: Store) -> list[Past]:
    """Begin a past in each of some stores, in one world: its time and its ids are the same for all."""
    clock, ids = FixedClock(step=timedelta(seconds=1)), SequentialIds()
    return [past(store, clock=clock, ids=ids) for store in stores]


def renewed(told: Past) -> Past:
    """Let the service look anew at a store that a copy has changed."""
    told.service = CheckpointService(told.kit)
    return told


def living(store: Store, workflow_id: str = "A") -> set[int]:
    return {entry.sequence for entry in store.entries(workflow_id) if not entry.pruned}


def harm(store: Store) -> list[str]:
    return [finding.problem for finding in store.check() if finding.harm]


@pairs
@pytest.mark.parametrize("times", [6, 120])
def test_a_store_that_pruned_takes_what_comes_back(schemes: tuple[str, str], times: int) -> None:
    """With the few, records stay in their group; with the many, whole groups, keyframes and events go."""
    with opened(schemes[0]) as one, opened(schemes[1]) as other:
        here, there = pasts(one, other)
        here.checkpoint("A", "long " * 20, times=times)
        assert outcome(one, other) is Outcome.COPIED
        there.prune("A", 2)
        there.checkpoint("A", "there")
        kept = living(other)
        assert len(kept) <= 4 and (times == 6 or not look(other, "A").entries[0].group)
        assert outcome(other, one) is Outcome.COPIED
        assert make_copier(one, other).plan(["A"]).workflows[0].outcome is Outcome.PRESENT
        assert outcome(one, other) is Outcome.PRESENT
        renewed(here).checkpoint("A", "here")
        assert [outcome(one, other), outcome(one, other)] == [Outcome.COPIED, Outcome.PRESENT]
        # Whoever removed something has what it kept, and what is new; the other one has it all.
        assert living(one) == set(range(1, times + 3))
        assert living(other) == {*kept, times + 2}
        assert states(other)["A"].items() <= states(one)["A"].items()
        assert harm(one) == harm(other) == []


@pairs
def test_a_keyframe_of_a_checkpoint_that_the_other_one_deleted_need_not_arrive(
    schemes: tuple[str, str],
) -> None:
    with opened(schemes[0]) as one, opened(schemes[1]) as other:
        here, there = pasts(one, other)
        here.checkpoint("A", times=6)
        copy(one, other)
        there.delete("A", 6)
        assert outcome(other, one) is Outcome.COPIED
        renewed(here).prune("A", 2)
        here.checkpoint("A", times=2)
        assert [keyframe.sequence for keyframe in one.keyframes("A")] == [1, 6]
        assert [outcome(one, other), outcome(one, other)] == [Outcome.COPIED, Outcome.PRESENT]
        assert [keyframe.sequence for keyframe in other.keyframes("A")] == [1]
        assert living(other) == {1, 2, 3, 4, 5, 7, 8} == states(other)["A"].keys()
        assert harm(one) == harm(other) == []


@pairs
def test_what_new_checkpoints_build_on_has_to_be_there(schemes: tuple[str, str]) -> None:
    """They could never be restored where everything before them was removed: better refused than stored."""
    with opened(schemes[0]) as one, opened(schemes[1]) as other:
        here, there = pasts(one, other)
        here.checkpoint("A", times=3)
        copy(one, other)
        for sequence in (1, 2, 3):
            there.delete("A", sequence)
        assert [outcome(other, one), outcome(one, other)] == [Outcome.COPIED, Outcome.PRESENT]
        renewed(here).checkpoint("A")
        before = holdings(other)
        [result] = copy(one, other, "A").workflows
        assert isinstance(result.error, CheckpointConflictError)
        assert "the target has removed every checkpoint up to 3" in str(result.error)
        assert holdings(other) == before and harm(other) == []


LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a new checkpoint lost": ("entries", lambda found: list(found)[:-1]),
    "a new checkpoint made a tombstone": (
        "entries",
        lambda found: [replace(one, pruned=one.pruned or one.sequence == 122) for one in found],
    ),
    "all new checkpoints made tombstones": (
        "entries",
        lambda found: [replace(one, pruned=one.pruned or one.sequence > 120) for one in found],
    ),
    "a tombstone forgotten": ("entries", lambda found: list(found)[1:]),
    "a tombstone of another checkpoint": (
        "entries",
        lambda found: [replace(one, checksum="sha256:0") if one.sequence == 1 else one for one in found],
    ),
    "the first new event lost": ("events", lambda found: list(found)[-69:]),
    "all events but the last lost": ("events", lambda found: list(found)[-1:]),
    "the last event lost": ("events", lambda found: list(found)[:-1]),
    "a new keyframe lost": ("keyframes", lambda found: found[:-1]),
    "a keyframe of a tombstone lost": ("keyframes", lambda found: found[1:]),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_store_that_pruned_loses_on_the_way_is_found_out(lie: str) -> None:
    target = FailingStore()
    told, there = pasts(MemoryStore(), target)
    told.checkpoint("A", times=120)
    copy(told.kit.store, target)
    there.prune("A", 2)
    copy(target, told.kit.store)
    target.calls.clear()
    renewed(told).checkpoint("A", "new", times=70)
    assert len(told.kit.store.keyframes("A")) > len(target.keyframes("A")) > 1
    method, change = LIES[lie]
    # The lie begins when everything was sent.
    target.alter("put_keyframe", lambda answer: target.alter(method, change))
    [result] = copy(told.kit.store, target).workflows
    assert target.calls["put_keyframe"] > 0
    assert result.outcome is Outcome.FAILED
    assert isinstance(result.error, CheckpointError)


def test_another_history_in_a_store_that_pruned_is_refused_as_ever() -> None:
    told, there = pasts(MemoryStore(), MemoryStore())
    target = there.kit.store
    told.checkpoint("A", times=6)
    copy(told.kit.store, target)
    there.prune("A", 2)
    told.checkpoint("A")
    before = holdings(target)
    [result] = copy(told.kit.store, target).workflows
    assert isinstance(result.error, CheckpointConflictError)
    assert holdings(target) == before


@dataclass
class Turns:
    """Two stores that are worked in by turns, and what each of them should hold."""

    sides: tuple[Past, Past]
    #: Every state that was ever stored.
    model: dict[str, dict[int, str]] = field(default_factory=dict)
    #: Workflows that cannot be copied any more, as is documented.
    refused: set[str] = field(default_factory=set)

    def take(self, side: int, happened: list[Callable[[Past], None]]) -> None:
        """Work in one store, copy to the other one and back."""
        here, there = renewed(self.sides[side]), self.sides[1 - side]
        for step in happened:
            step(here)
        for workflow_id, told in states(here.kit.store).items():
            known = self.model.setdefault(workflow_id, {})
            self.model[workflow_id] = {**told, **known}
        self._copy(here.kit.store, there.kit.store)
        self._copy(there.kit.store, here.kit.store)
        self._check()

    def _copy(self, source: Store, target: Store) -> None:
        chosen = sorted({*source.workflows()} - self.refused)
        expected = {
            name: living(target, name)
            | {one for one in living(source, name) if one > target.head(name).sequence}
            for name in chosen
        }
        for result in make_copier(source, target).copy(chosen).workflows:
            if result.error is not None:
                assert isinstance(result.error, CheckpointConflictError)
                assert "has removed" in str(result.error)
                self.refused.add(result.workflow_id)
            else:
                assert living(target, result.workflow_id) == expected[result.workflow_id]

    def _check(self) -> None:
        for side in self.sides:
            store = side.kit.store
            assert harm(store) == []
            for workflow_id, told in states(store).items():
                if workflow_id not in self.refused:
                    assert set(told) == living(store, workflow_id)
                    assert told.items() <= self.model[workflow_id].items()


turns = st.lists(st.tuples(st.integers(0, 1), st.lists(steps, min_size=1, max_size=4)), max_size=4)


@pytest.mark.sweep
@pairs
@given(st.lists(steps, min_size=1, max_size=4), turns)
def test_stores_that_take_turns_lose_nothing_but_what_they_removed(
    schemes: tuple[str, str],
    first: list[Callable[[Past], None]],
    then: list[tuple[int, list[Callable[[Past], None]]]],
) -> None:
    with ExitStack() as stack:
        one, other = pasts(*(stack.enter_context(opened(scheme)) for scheme in schemes))
        other.states = one.states
        both = Turns((one, other))
        both.take(0, first)
        for side, happened in then:
            both.take(side, happened)
