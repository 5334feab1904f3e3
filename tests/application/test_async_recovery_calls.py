"""Coroutines ask the same of the service; the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.app import App
from holdfast.domain.checkpoint import CheckpointStatus
from tests.application.resumptions import PATIENT_SECONDS
from tests.application.services import make_kit
from tests.encrypted import StaysOpen

_Answer = TypeVar("_Answer")


def run(work: Callable[[AsyncCheckpointService], Awaitable[_Answer]]) -> _Answer:
    """Do something with a service on which one workflow waits for its handler."""
    app = App()

    @app.handler("go_on")
    async def go_on(context: Any) -> str:
        await asyncio.sleep(0)
        return "W-next"

    async def main() -> _Answer:
        async with AsyncCheckpointService(make_kit(app=app)) as service:
            await service.create_checkpoint("W", {"n": 1}, resume_handler="go_on")
            return await work(service)

    return asyncio.run(main())


def test_a_workflow_is_recovered_planned_and_resumed() -> None:
    async def work(service: AsyncCheckpointService) -> None:
        assert (await service.plan_recovery("W")).handler == "go_on"
        assert (await service.recover_workflow("W")).success
        result = await service.resume_workflow("W")
        assert result.resumed_workflow_id == "W-next"
        again = await service.recover_from_checkpoint("W@1")
        assert "was completed before" in again.warnings[0]

    run(work)


def test_checkpoints_are_marked_and_pinned() -> None:
    async def work(service: AsyncCheckpointService) -> None:
        assert (await service.pin("W@1")).pinned and not (await service.unpin("W@1")).pinned
        assert (await service.mark_failed("W@1", "out of tokens")).status is CheckpointStatus.FAILED
        await service.create_checkpoint("W", {"n": 2})
        assert (await service.mark_completed("W@2")).status is CheckpointStatus.COMPLETED
        assert await service.incomplete_workflows(stale_seconds=10_000) == []

    run(work)


def test_a_session_is_handed_off_and_resumed() -> None:
    async def work(service: AsyncCheckpointService) -> None:
        await service.open_session("s-2", agent="architect", workflow_ids=["W"])
        await service.hand_off("s-2", "critic", "the design is done")
        assert (await service.resume_session("s-2", "s-3")).context_summary == "the design is done"
        assert (await service.close_session("s-3")).status == "closed"

    run(work)


def test_health_is_told() -> None:
    async def work(service: AsyncCheckpointService) -> bool:
        return (await service.health()).is_durable

    assert run(work)


def test_a_recovery_that_is_cancelled_leaves_no_lease_behind_when_the_service_is_closed() -> None:
    began, may_end = threading.Event(), threading.Event()
    store: Any = StaysOpen(MemoryStore())
    app = App()

    @app.handler("go_on")
    def go_on(context: Any) -> None:
        began.set()
        may_end.wait(PATIENT_SECONDS)

    async def main() -> None:
        async with AsyncCheckpointService(make_kit(store, app=app)) as service:
            await service.create_checkpoint("W", {"n": 1}, resume_handler="go_on")
            resuming = asyncio.create_task(service.resume_workflow("W"))
            await asyncio.to_thread(began.wait, PATIENT_SECONDS)
            resuming.cancel()
            with pytest.raises(asyncio.CancelledError):
                await resuming
        assert store.lease("W") is None
        may_end.set()

    asyncio.run(main())
