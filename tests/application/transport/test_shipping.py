"""What is sent, in which commits, and what is left to be sent."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.history import look
from holdfast.application.transport import shipping
from holdfast.application.transport.shipping import Cargo, Shipment
from holdfast.conformance.history import make_keyframe
from holdfast.domain.record import Commit, Head
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.application.copies import Past, copy, eventful, holdings, innards, past


class Watching(FailingStore):
    """Remembers the groups of commits it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[Sequence[Commit]] = []

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self.groups.append(commits)
        return super().commit(commits)

    @property
    def commits(self) -> list[Commit]:
        return [commit for group in self.groups for commit in group]


def ship(source: Store, target: Store, workflow_id: str = "A") -> Shipment:
    shipment = Shipment(source, target, look(source, workflow_id), target.head(workflow_id))
    shipment.send(lambda done: None)
    return shipment


def test_each_commit_brings_a_checkpoint_with_the_events_up_to_it() -> None:
    told, target = past(), Watching()
    told.event("A")
    told.checkpoint("A")
    told.event("A")
    told.event("A")
    told.checkpoint("A")
    told.event("A")
    ship(told.kit.store, target)
    shape = [(c.record and c.record.entry.sequence, [e.seq for e in c.events]) for c in target.commits]
    assert shape == [(1, [1, 2]), (2, [3, 4, 5]), (None, [6])]
    assert [commit.expected for commit in target.commits[1:]] == [c.head for c in target.commits[:-1]]
    assert target.commits[0].expected == Head()


def test_many_events_go_before_their_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "EVENTS_BYTES_MAX", 1000)
    told, target = past(), Watching()
    for _ in range(20):
        told.event("A", "x" * 100)
    told.checkpoint("A")
    ship(told.kit.store, target)
    sizes = [sum(len(event.data) for event in commit.events) for commit in target.commits]
    assert len(sizes) > 4 and max(sizes) <= 1000
    assert [commit.record is not None for commit in target.commits] == [False] * (len(sizes) - 1) + [True]
    assert holdings(target) == holdings(told.kit.store)


def test_groups_are_bounded_in_number_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    told = past()
    told.checkpoint("A", "long " * 20, times=30)
    for limits in ({"GROUP_COUNT_MAX": 7}, {"GROUP_BYTES_MAX": 5000}):
        for name, value in limits.items():
            monkeypatch.setattr(shipping, name, value)
        target = Watching()
        ship(told.kit.store, target)
        assert max(map(len, target.groups)) <= 7
        assert len(target.groups) > 4
        assert holdings(target) == holdings(told.kit.store)


def test_a_commit_larger_than_a_group_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "GROUP_BYTES_MAX", 10)
    told, target = past(), Watching()
    told.checkpoint("A", times=3)
    ship(told.kit.store, target)
    assert [len(group) for group in target.groups] == [1, 1, 1]


def test_keyframes_go_with_their_checkpoints_and_the_last_one_after_them() -> None:
    told, target = past(), Watching()
    told.checkpoint("A", times=100)
    ship(told.kit.store, target)
    *most, last = (keyframe.sequence for keyframe in told.kit.store.keyframes("A"))
    beside = [commit.keyframe.entry.sequence for commit in target.commits if commit.keyframe]
    assert beside == most and len(most) > 1 and last not in most
    assert target.calls["put_keyframe"] == 1
    assert target.keyframes("A") == told.kit.store.keyframes("A")


def test_the_only_keyframe_of_a_checkpoint_that_is_nothing_without_it_goes_with_it() -> None:
    told, target = past(), Watching()
    told.checkpoint("A")
    ship(told.kit.store, target)
    assert target.commits[0].keyframe is not None and target.calls["put_keyframe"] == 0


def test_a_keyframe_of_a_tombstone_goes_with_it() -> None:
    told, target = eventful(), Watching()
    told.prune("A", 2)
    ship(told.kit.store, target)
    tombs = {entry.sequence for entry in told.kit.store.entries("A") if entry.pruned}
    kept = {keyframe.sequence for keyframe in told.kit.store.keyframes("A")}
    assert tombs & kept
    assert target.keyframes("A") == told.kit.store.keyframes("A")


def test_a_keyframe_that_was_written_later_is_put() -> None:
    told, target = past(), Watching()
    told.checkpoint("A", "long " * 20, times=40)
    keyframes = innards(told.kit.store, "A").keyframes
    late = keyframes.pop(max(keyframes))
    ship(told.kit.store, target)
    keyframes[late.entry.sequence] = late
    assert ship(told.kit.store, target).cargo == Cargo(keyframes=1, bytes=len(late.data))
    assert holdings(target) == holdings(told.kit.store)


def test_a_later_keyframe_whose_blobs_are_not_there_waits() -> None:
    """A value that grew bit by bit may equal a blob of another workflow, which is not copied."""
    told, target = past(), MemoryStore()
    told.checkpoint("B", "x" * 60)
    told.checkpoint("A", times=2)
    ship(told.kit.store, target)
    [blob] = told.kit.store.keyframes("B")[0].blobs
    told.kit.store.put_keyframe("A", make_keyframe(2, b"late", (blob,)))
    assert ship(told.kit.store, target).waiting == {2}
    assert [keyframe.sequence for keyframe in target.keyframes("A")] == [1]


def test_only_what_lacks_is_sent() -> None:
    told, target = past(), Watching()
    told.checkpoint("A", "long " * 20)
    told.checkpoint("A", "other " * 20, times=3)
    ship(told.kit.store, target)
    target.groups.clear()
    told.checkpoint("A", "long " * 20)
    told.event("A")
    assert ship(told.kit.store, target).cargo.checkpoints == 1
    assert len(target.commits) == 2
    assert target.commits[0].needs and not target.commits[0].blobs


def test_a_change_of_status_goes_with_the_last_commit() -> None:
    told, target = past(), Watching()
    told.checkpoint("A", times=2)
    ship(told.kit.store, target)
    target.groups.clear()
    told.move("A", "failed", 3, pinned=True)
    told.event("A")
    told.checkpoint("A")
    ship(told.kit.store, target)
    assert [bool(commit.transitions) for commit in target.commits] == [True]
    assert list(target.entries("A")) == list(told.kit.store.entries("A"))


def test_progress_is_told_group_by_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "GROUP_COUNT_MAX", 2)
    told = past()
    done: list[int] = []
    told.checkpoint("A", times=5)
    shipment = Shipment(told.kit.store, MemoryStore(), look(told.kit.store, "A"), Head())
    shipment.send(done.append)
    assert done == [4, 8, 10]


def test_cargo_adds_up() -> None:
    assert Cargo(1, 2, 3, 4, 5, 6) + Cargo(6, 5, 4, 3, 2, 1) == Cargo(7, 7, 7, 7, 7, 7)
    told: Past = eventful()
    result = copy(told.kit.store, MemoryStore())
    assert result.cargo.tombstones == sum(e.pruned for w in "AB" for e in told.kit.store.entries(w))
