"""Events that nobody waits for: they go with the next commit, and are never lost by a clean end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application import batching
from holdfast.domain.errors import CheckpointWriteError, InvalidIdError
from holdfast.domain.record import Commit
from holdfast.domain.reducers import DECISION_EVENT
from tests.application.services import make_service
from tests.encrypted import StaysOpen


class Counting(MemoryStore):
    """Notes what was committed together."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[list[Commit]] = []
        self.is_broken = False
        self.committed = threading.Event()

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.is_broken:
            raise CheckpointWriteError("the disk is gone")
        self.groups.append(list(commits))
        outcomes = super().commit(commits)
        self.committed.set()
        return outcomes


def test_a_decision_goes_with_the_next_commit_and_keeps_its_place() -> None:
    store = Counting()
    service = make_service(store, batch_decisions=True)
    service.create_checkpoint("W", {"a": 1})
    groups = len(store.groups)
    told = service.record_decision("W", "go on", confidence=0.9)
    again = service.record_decision("W", "and on")
    assert not told.durable and again.seq == told.seq + 1
    assert (len(store.groups), service.events("W", type=DECISION_EVENT)) == (groups, [])
    service.create_checkpoint("W", {"a": 2})
    assert len(store.groups) == groups + 1
    kept = service.events("W", type=DECISION_EVENT)
    assert kept == [told, again]
    assert all(event.durable for event in kept)


def test_unless_it_is_asked_for_a_decision_is_durable_when_it_returns() -> None:
    service = make_service()
    told = service.record_decision("W", "go on")
    assert told.durable and service.events("W") == [told]


def test_a_flush_and_the_end_bring_what_waits() -> None:
    store = Counting()
    kept = StaysOpen(store)
    with make_service(kept, batch_decisions=True) as service:
        first = service.record_decision("W", "one")
        service.flush()
        assert service.events("W") == [first]
        second = service.record_decision("W", "two")
    assert make_service(store).events("W") == [first, second]


def test_a_decision_does_not_wait_for_ever_for_company(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH_SECONDS", 0.01)
    store = Counting()
    with make_service(store, batch_decisions=True, background=True) as service:
        for text in ("one", "two"):
            store.committed.clear()
            service.record_decision("W", text)
            assert store.committed.wait(30)
        assert [event.data["description"] for event in service.events("W")] == ["one", "two"]


def test_a_decision_that_cannot_be_kept_is_told_at_the_next_flush() -> None:
    store = Counting()
    service = make_service(store, batch_decisions=True, audit=False)
    store.is_broken = True
    service.record_decision("W", "go on")
    with pytest.raises(CheckpointWriteError, match="the disk is gone"):
        service.flush()
    store.is_broken = False
    service.flush()
    assert service.events("W") == []


def test_what_cannot_be_a_workflow_is_refused_at_once() -> None:
    with pytest.raises(InvalidIdError):
        make_service(batch_decisions=True).record_decision("", "go on")


def test_coroutines_batch_alike(tmp_path) -> None:
    async def main() -> None:
        async with bootstrap.open_async(str(tmp_path / "store"), batch_decisions=True) as service:
            told = await service.record_decision("W", "go on", agent_id="planner")
            assert not told.durable
            await service.create_checkpoint("W", {"a": 1})
            assert await service.events("W", type=DECISION_EVENT) == [told]

    asyncio.run(main())


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_a_store_keeps_a_batched_decision_over_its_closing(tmp_path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path / 'store'}"
    with bootstrap.open(url, batch_decisions=True) as service:
        told = service.record_decision("W", "go on")
    with bootstrap.open(url, read_only=True) as service:
        assert service.events("W") == [told]
