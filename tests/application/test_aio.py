"""The face for coroutines: the same answers, durable when awaited, whole when cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from holdfast.application.aio import AsyncCheckpointService
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    InvalidIdError,
    StoreClosedError,
)
from holdfast.domain.record import Commit
from holdfast.testing import FailingStore
from tests.application.services import make_kit


def run(
    test: Callable[[AsyncCheckpointService], Coroutine[Any, Any, None]],
    store: FailingStore | None = None,
    **settings: Any,
) -> None:
    """Run a coroutine with an open service."""

    async def main() -> None:
        async with AsyncCheckpointService(make_kit(store, **settings)) as service:
            await test(service)

    asyncio.run(main())


def test_every_operation_answers_as_the_other_face_does() -> None:
    async def test(service: AsyncCheckpointService) -> None:
        first = await service.create_checkpoint("W", {"a": 1}, agent_id="x")
        second = await service.create_checkpoint("W", {"a": 2}, dependent_checkpoint_ids=["W@1"])
        assert (await service.restore_checkpoint(first)).context == {"a": 1}
        latest = await service.load_latest("W")
        assert latest is not None and latest.context == {"a": 2}
        assert [meta.id for meta in await service.list_checkpoints("W")] == [second, first]
        found = await service.get_by_id(second)
        assert found is not None and found.dependent_checkpoint_ids == (first.uuid,)
        assert (await service.validate_checkpoint("W@latest")).valid
        assert [op["op"] for op in await service.diff_checkpoints(first, second)] == ["set"]
        assert (await service.fork_workflow("W@1", "V")).workflow_id == "V"
        await service.append_event("W", "STEP", {"n": 1})
        await service.record_decision("W", "go", confidence=0.5)
        await service.update_agent_state("W", "x", {"p": 1})
        assert [event.type for event in await service.events("W", after=2)] == [
            "STEP",
            "DECISION_RECORDED",
            "AGENT_STATE_UPDATED",
        ]
        assert int(await service.prune_checkpoints("W", dry_run=True)) == 0
        assert await service.delete(first)
        await service.flush()

    run(test)


class GatedStore(FailingStore):
    """A store that commits nothing while its gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self.gate.wait()
        return super().commit(commits)


def test_commits_that_wait_together_share_a_group() -> None:
    store = GatedStore()

    async def test(service: AsyncCheckpointService) -> None:
        for name in range(20):
            await service.create_checkpoint(f"W{name}", {"n": 0})
        before = store.calls["commit"]
        store.gate.clear()
        queued = [await service.create_checkpoint(f"W{name}", {"n": 1}, wait=False) for name in range(20)]
        store.gate.set()
        await asyncio.gather(*queued)
        # One may have been under way when the others came.
        assert store.calls["commit"] - before <= 2
        states = await asyncio.gather(*(service.load_latest(f"W{name}") for name in range(20)))
        assert all(state is not None and state.context == {"n": 1} for state in states)

    run(test, store)


def test_the_state_may_be_changed_as_soon_as_the_future_is_there() -> None:
    async def test(service: AsyncCheckpointService) -> None:
        state = {"list": [1]}
        future = await service.create_checkpoint("W", state, wait=False)
        state["list"].append(2)
        assert (await service.restore_checkpoint(await future)).context == {"list": [1]}
        event = await (await service.append_event("W", "STEP", wait=False))
        assert event.seq == 2

    run(test)


def test_a_cancelled_call_leaves_its_commit_whole() -> None:
    async def test(service: AsyncCheckpointService) -> None:
        await service.create_checkpoint("W", {"n": 0})
        task = asyncio.create_task(service.create_checkpoint("W", {"n": 1}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await service.flush()
        state = await service.load_latest("W")
        assert state is not None and state.context == {"n": 1}
        assert (await service.create_checkpoint("W", {"n": 2})).sequence == 3

    run(test)


def test_errors_reach_who_awaits_and_unheard_ones_the_flush() -> None:
    store = FailingStore()

    async def test(service: AsyncCheckpointService) -> None:
        await service.create_checkpoint("W", {"n": 0})
        store.fail("commit")
        with pytest.raises(CheckpointWriteError):
            await service.create_checkpoint("W", {"n": 1})
        await service.flush()
        store.fail("commit")
        future = await service.create_checkpoint("W", {"n": 1}, wait=False)
        with pytest.raises(CheckpointWriteError):
            await future
        with pytest.raises(CheckpointWriteError):
            await service.flush()
        with pytest.raises(CheckpointConflictError):
            await service.create_checkpoint("W", {"n": 1}, expected_sequence=7)
        with pytest.raises(InvalidIdError):
            await service.create_checkpoint("..", {})
        assert (await service.create_checkpoint("W", {"n": 1})).sequence == 2

    run(test, store)


def test_the_store_is_never_touched_by_the_loop_itself() -> None:
    store = FailingStore()
    threads: set[str] = set()

    def note(answer: Any) -> Any:
        threads.add(threading.current_thread().name)
        return answer

    for method in ("commit", "head", "entries", "records", "keyframe", "keyframes", "put_keyframe"):
        store.alter(method, note)

    async def test(service: AsyncCheckpointService) -> None:
        loop_thread = threading.current_thread().name
        for number in range(60):
            await service.create_checkpoint("W", {"n": number, "text": "x" * 900})
        await service.restore_checkpoint("W@30")
        await service.fork_workflow("W@30", "V")
        await service.append_event("U", "STEP")
        await service.create_checkpoint("U", {"n": 1})
        assert loop_thread not in threads

    run(test, store)


def test_context_variables_are_seen_by_what_runs_in_a_thread() -> None:
    seen: list[str] = []
    request: contextvars.ContextVar[str] = contextvars.ContextVar("request")
    store = FailingStore()

    def note(answer: Any) -> Any:
        seen.append(request.get())
        return answer

    store.alter("entries", note)

    async def test(service: AsyncCheckpointService) -> None:
        request.set("r-1")
        await service.list_checkpoints("W")

    run(test, store)
    assert seen == ["r-1"]


def test_a_loop_that_ended_does_not_disturb_the_commit() -> None:
    kit = make_kit()
    service = AsyncCheckpointService(kit)

    async def leave() -> None:
        await service.create_checkpoint("W", {"n": 0})
        await service.create_checkpoint("W", {"n": 1}, wait=False)

    async def come_back() -> None:
        await service.flush()
        state = await service.load_latest("W")
        assert state is not None and state.context == {"n": 1}
        assert (await service.create_checkpoint("W", {"n": 2})).sequence == 3
        await service.close()
        await service.close()

    asyncio.run(leave())
    asyncio.run(come_back())


def test_a_coroutine_can_ask_what_the_store_holds() -> None:
    async def ask() -> tuple[list[str], int]:
        async with AsyncCheckpointService(make_kit()) as service:
            await service.create_checkpoint("b", {"x": 1})
            return await service.workflows(), (await service.stats())["checkpoints"]

    assert asyncio.run(ask()) == (["b"], 1)


def test_whoever_asks_after_the_end_is_told_that_the_store_was_closed() -> None:
    async def test(service: AsyncCheckpointService) -> None:
        await service.close()
        with pytest.raises(StoreClosedError):
            await service.create_checkpoint("W-new", {})

    run(test)
