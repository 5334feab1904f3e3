"""Copies are equal, whatever happened before, in between and on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application import history
from holdfast.application.service import CheckpointService
from holdfast.application.transport import shipping
from holdfast.application.transport.copying import Outcome
from holdfast.application.transport.shipping import Cargo
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    ConfigError,
    DiskFullError,
    LeaseHeldError,
    StoreReadOnlyError,
)
from holdfast.domain.record import Commit, Keyframe, Removal
from holdfast.testing import FailingStore
from tests.application.copies import (
    Past,
    copy,
    eventful,
    holdings,
    innards,
    make_copier,
    opened,
    past,
    states,
    steps,
)
from tests.application.services import make_kit


class Interrupted(Exception):
    """Stands for the end of the process that copies."""


class Breaking(FailingStore):
    """Ends its process at one of its writes: before it, or after it when nobody was told."""

    def __init__(self, store: MemoryStore, break_at: int, *, is_done: bool) -> None:
        super().__init__(store)
        self._left = break_at
        self._is_done = is_done

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        with self._counted():
            return super().commit(commits)

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        with self._counted():
            super().put_keyframe(workflow_id, keyframe)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._left -= 1
        if self._left == 0 and not self._is_done:
            raise Interrupted
        yield
        if self._left == 0:
            raise Interrupted


def live(past_: Past, happened: list[Callable[[Past], None]]) -> Past:
    for step in happened:
        step(past_)
    return past_


@pytest.mark.sweep
@given(st.lists(steps, max_size=8))
def test_a_copy_of_a_copy_of_a_copy_is_equal(happened: list[Callable[[Past], None]]) -> None:
    source = live(past(), happened).kit.store
    with opened("file") as files, opened("sqlite") as database:
        way = [source, files, database, MemoryStore()]
        for one, other in pairwise(way):
            assert copy(one, other).of(Outcome.FAILED) == []
            assert holdings(other) == holdings(source)
            assert states(other) == states(source)
            assert [finding for finding in other.check() if finding.harm] == []
        assert {again.outcome for again in copy(source, database).workflows} <= {Outcome.PRESENT}


@pytest.mark.sweep
@given(st.lists(steps, min_size=1, max_size=8), st.lists(steps, max_size=6), st.integers(1, 40))
def test_what_happened_since_the_last_copy_is_added_even_if_that_was_interrupted(
    before: list[Callable[[Past], None]], after: list[Callable[[Past], None]], break_at: int
) -> None:
    told = live(past(), before)
    source, target = told.kit.store, MemoryStore()
    with pytest.MonkeyPatch.context() as patch, suppress(Interrupted):
        patch.setattr(shipping, "GROUP_COUNT_MAX", 4)
        copy(source, Breaking(target, break_at, is_done=break_at % 2 == 0))
    live(told, after)
    copied = copy(source, target)
    # Events that were removed before they were copied leave a gap that no copy closes.
    assert all("has removed events" in str(one.error) for one in copied.of(Outcome.FAILED))
    added = {one.workflow_id for one in (*copied.of(Outcome.COPIED), *copied.of(Outcome.PRESENT))}
    for workflow_id in added:
        assert target.head(workflow_id) == source.head(workflow_id)
        listed = {entry.sequence: entry for entry in target.entries(workflow_id)}
        for entry in source.entries(workflow_id):
            assert entry.pruned or listed[entry.sequence] == entry
    kept, lived = states(target), states(source)
    assert all(lived[workflow_id].items() <= kept[workflow_id].items() for workflow_id in added)


@pytest.mark.sweep
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("group", [1, 7, 256])
def test_a_copy_that_was_interrupted_anywhere_goes_on(
    monkeypatch: pytest.MonkeyPatch, group: int, is_done: bool, campaign: bool
) -> None:
    monkeypatch.setattr(shipping, "GROUP_COUNT_MAX", group)
    monkeypatch.setattr(shipping, "EVENTS_BYTES_MAX", 400)
    source = eventful().kit.store
    expected = holdings(source)
    for break_at in range(1, 1000, 5 if group == 1 and not campaign else 1):
        target = MemoryStore()
        try:
            copy(source, Breaking(target, break_at, is_done=is_done))
        except Interrupted:
            assert copy(source, target).of(Outcome.FAILED) == []
            assert holdings(target) == expected
        else:
            break
    assert break_at > 130 // group


@pytest.mark.sweep
def test_a_copy_is_few_commits_of_many_checkpoints() -> None:
    told = past()
    told.checkpoint("A", "text " * 10, times=1500)
    target = FailingStore()
    copy(told.kit.store, target)
    assert target.calls["commit"] + target.calls["put_keyframe"] < 12
    assert states(target) == states(told.kit.store)


def test_the_result_counts_what_was_copied_and_a_plan_tells_it_before() -> None:
    told = past()
    told.checkpoint("A", "long " * 20, times=3)
    told.event("A")
    told.checkpoint("A")
    told.delete("A", 2)
    copier = make_copier(told.kit.store, MemoryStore())
    [planned] = copier.plan(["A"]).workflows
    result = copier.copy(["A"])
    expected = Cargo(checkpoints=3, tombstones=1, events=6, keyframes=1, blobs=1, bytes=result.cargo.bytes)
    assert result.cargo == expected
    assert planned.cargo == Cargo(3, 1, 6, 1, 1, result.cargo.bytes - len("long " * 20))
    assert (planned.outcome, result.workflows[0].outcome) == (Outcome.COPIED, Outcome.COPIED)
    assert result.seconds > 0
    again = copier.copy(["A"])
    assert (again.workflows[0].outcome, again.cargo) == (Outcome.PRESENT, Cargo())
    assert copier.plan(["A"]).workflows[0].outcome is Outcome.PRESENT


def test_a_plan_changes_nothing_and_tells_what_cannot_be_copied() -> None:
    told, target = eventful(), FailingStore()
    past(target).checkpoint("B", times=2)
    target.calls.clear()
    before = holdings(target)
    plan = make_copier(told.kit.store, target).plan(["A", "B", "nowhere"])
    assert plan.dry_run
    assert [one.outcome for one in plan.workflows] == [Outcome.COPIED, Outcome.FAILED, Outcome.FAILED]
    assert holdings(target) == before and target.calls["commit"] == target.calls["put_keyframe"] == 0


def test_progress_only_grows_and_ends_at_the_end() -> None:
    told: list[tuple[str, int, int]] = []
    copy(eventful().kit.store, MemoryStore(), on_progress=lambda *step: told.append(step))
    for workflow_id in ("A", "B", "C", "fork"):
        steps_ = [(done, total) for name, done, total in told if name == workflow_id]
        done = [done for done, _ in steps_]
        assert done == sorted(done) and done[0] == 0
        assert len({total for _, total in steps_}) == 1
        assert steps_[-1][0] == steps_[-1][1] > 0


@pytest.mark.parametrize("scheme", ["memory", "file", "sqlite"])
def test_a_copy_goes_on_as_a_workflow_of_its_own(scheme: str) -> None:
    told = eventful()
    with opened(scheme) as target:
        copy(told.kit.store, target)
        service = CheckpointService(make_kit(target))
        for workflow_id in ("A", "B"):
            last = told.kit.store.head(workflow_id).sequence
            for number in range(1, 41):
                made = service.create_checkpoint(workflow_id, {"number": -number, "more": "x" * 100})
                assert made.sequence == last + number
            assert int(service.prune_checkpoints(workflow_id, 2, 0)) > 0
            kept = service.list_checkpoints(workflow_id)
            assert len(kept) >= 2 and all(service.validate_checkpoint(one.id).valid for one in kept)
        assert service.events("A")[-1].type == "CHECKPOINTS_PRUNED"
        assert [finding for finding in target.check() if finding.harm] == []


def test_a_store_is_not_copied_onto_itself() -> None:
    store = MemoryStore()
    with pytest.raises(ConfigError, match="onto itself"):
        copy(store, store)


def test_a_target_that_is_read_only_is_refused(tmp_path) -> None:
    FilesystemStore.open(str(tmp_path)).close()
    target = FilesystemStore.open(str(tmp_path), read_only=True)
    with pytest.raises(StoreReadOnlyError, match="the target was opened for reading only"):
        copy(eventful().kit.store, target)
    target.close()


def test_a_source_that_may_only_be_read_is_enough(tmp_path) -> None:
    told = eventful(FilesystemStore.open(str(tmp_path), background=False))
    source = FilesystemStore.open(str(tmp_path), read_only=True)
    target = MemoryStore()
    assert copy(source, target).of(Outcome.FAILED) == []
    assert holdings(target) == holdings(told.kit.store)
    source.close()
    told.kit.store.close()


def test_leases_are_not_copied_and_that_of_the_target_is_respected() -> None:
    told, target = eventful(), MemoryStore()
    told.kit.store.acquire("A", "somebody", 60)
    target.acquire("B", "somebody", 60)
    result = copy(told.kit.store, target, "A", "B")
    assert [one.outcome for one in result.workflows] == [Outcome.COPIED, Outcome.FAILED]
    assert isinstance(result.workflows[1].error, LeaseHeldError)
    assert target.lease("A") is None


@pytest.mark.parametrize("kind", ["checkpoint", "event", "ahead", "event ahead"])
def test_another_history_in_the_target_is_a_conflict_and_nothing_is_written(kind: str) -> None:
    told, target = past(), MemoryStore()
    told.event("A", "first")
    told.checkpoint("A", times=2)
    if kind.startswith("event"):
        copy(told.kit.store, target)
    elif kind == "ahead":
        copy(told.kit.store, target)
        CheckpointService(make_kit(target)).create_checkpoint("A", {"other": 1})
    else:
        other = past(target)
        other.event("A", "first")
        other.checkpoint("A", "another", times=2)
    if kind.startswith("event"):
        past(target).event("A", "here")
    if kind == "event":
        told.event("A", "there")
    before = holdings(target)
    [result] = copy(told.kit.store, target).workflows
    assert isinstance(result.error, CheckpointConflictError)
    said = {
        "checkpoint": "checkpoint 1 is sha256:",
        "event": "event 4 is sha256:",
        "ahead": "it has checkpoint 3, the source ends with 2",
        "event ahead": "it has event 4, the source ends with 3",
    }
    assert said[kind] in str(result.error)
    assert holdings(target) == before


def test_a_damaged_workflow_is_named_and_the_others_are_copied() -> None:
    told, target = eventful(), MemoryStore()
    records = innards(told.kit.store, "A").records
    records[120] = records[120].replace(b'"seq"', b'"sqe"')
    result = copy(told.kit.store, target)
    [failed] = result.of(Outcome.FAILED)
    assert failed.workflow_id == "A"
    assert isinstance(failed.error, ChecksumMismatchError) and failed.error.place == "A@120"
    assert [one.workflow_id for one in result.of(Outcome.COPIED)] == ["B", "C", "fork"]


def test_a_blob_that_is_gone_from_the_source_is_damage_too() -> None:
    told = eventful()
    [sha256, *_] = next(entry.blobs for entry in told.kit.store.entries("A") if entry.blobs)
    assert isinstance(told.kit.store, MemoryStore)
    del told.kit.store._blobs[sha256]
    [failed] = copy(told.kit.store, MemoryStore(), "A").workflows
    assert isinstance(failed.error, CheckpointCorruptError)
    assert failed.error.place == sha256


def test_a_target_that_cannot_be_written_to_ends_the_copy() -> None:
    target = FailingStore()
    target.fail("commit", DiskFullError("no space left"))
    with pytest.raises(DiskFullError):
        copy(eventful().kit.store, target)
    assert copy(eventful().kit.store, target).of(Outcome.FAILED) == []


def test_a_source_that_is_written_to_meanwhile_is_copied_as_it_was() -> None:
    told = past()
    told.checkpoint("A", times=3)
    source, target = FailingStore(told.kit.store), MemoryStore()

    def go_on(answer: Any) -> Any:
        told.checkpoint("A")
        told.event("A")
        return answer

    source.alter("records", go_on)
    [first] = copy(source, target, "A").workflows
    assert first.outcome is Outcome.COPIED and target.head("A").sequence == 3
    source.alter("records", None)
    [second] = copy(source, target, "A").workflows
    assert second.outcome is Outcome.COPIED
    assert holdings(target) == holdings(told.kit.store)


def test_a_source_that_never_stands_still_is_copied_as_it_was() -> None:
    told = past()
    told.checkpoint("A")
    source, target = FailingStore(told.kit.store), MemoryStore()

    def go_on(answer: Any) -> Any:
        told.checkpoint("A")
        return answer

    source.alter("entries", go_on)
    [result] = copy(source, target, "A").workflows
    assert result.outcome is Outcome.COPIED
    assert 0 < target.head("A").sequence < told.kit.store.head("A").sequence


def test_what_is_pruned_while_it_is_copied_is_looked_at_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "GROUP_COUNT_MAX", 5)
    told = past()
    told.checkpoint("A", "long " * 20, times=100)
    source, target = FailingStore(told.kit.store), FailingStore()

    def prune(answer: Any) -> Any:
        if target.calls["commit"] == 3:
            told.prune("A", 2)
        return answer

    target.alter("commit", prune)
    monkeypatch.setattr(history, "READ_COUNT_MAX", 8)
    [result] = copy(source, target, "A").workflows
    assert result.error is None
    assert states(told.kit.store)["A"].items() <= states(target)["A"].items()
    assert any(entry.pruned for entry in target.entries("A"))
    assert copy(source, target, "A").of(Outcome.FAILED) == []
    assert target.head("A") == told.kit.store.head("A")


def test_a_blob_that_the_target_has_is_not_sent_and_one_that_goes_meanwhile_is() -> None:
    told = past()
    told.checkpoint("A", "long " * 20)
    told.checkpoint("B", "long " * 20)
    target = FailingStore()
    copy(told.kit.store, target, "A")
    blobs = target.keyframes("A")[0].blobs

    def collect(answer: bool) -> bool:
        # Found, and then removed by somebody before the commit that needs it.
        if answer and target.calls["remove"] == 0:
            target.remove("A", Removal((1,), (1,), blobs=blobs))
        return answer

    target.alter("has_blob", collect)
    result = copy(told.kit.store, target, "B")
    assert (result.cargo.blobs, result.of(Outcome.FAILED)) == (1, [])
    target.alter("has_blob", None)
    third = MemoryStore()
    copy(told.kit.store, third, "A")
    assert copy(told.kit.store, third, "B").cargo.blobs == 0


def test_a_workflow_that_is_not_there_is_told() -> None:
    [result] = copy(MemoryStore(), MemoryStore(), "nowhere").workflows
    assert isinstance(result.error, CheckpointNotFoundError)
