"""A handler records through the service it is given; with one of its own it would be refused."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.app import App
from holdfast.application.engine import Engine
from holdfast.application.execution_context import ExecutionContext
from holdfast.domain.errors import InvalidStateError, LeaseHeldError
from tests.application.services import make_kit, make_service


def test_a_handler_records_under_the_lease_of_its_recovery() -> None:
    store, app = MemoryStore(), App()

    @app.handler("resume")
    def resume(context: ExecutionContext) -> None:
        with context.service as service:
            service.create_checkpoint("W", {**context.workflow_state.context, "resumed": True})
        with pytest.raises(LeaseHeldError):
            make_service(store).create_checkpoint("W", {"n": 9})
        context.service.append_event("W", "RESUMED")

    service = make_service(store, app=app)
    service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    result = service.recover_from_checkpoint("W@1")
    assert result.success, result.warnings
    assert service.restore_checkpoint("W@2").context == {"n": 1, "resumed": True}
    assert [event.type for event in service.events("W")][-2:] == ["RESUMED", "CHECKPOINT_STATUS"]


def test_what_a_handler_closes_stays_open_for_whoever_recovers() -> None:
    app = App()
    app.handlers.register("resume", lambda context: context.service.close())
    service = make_service(app=app)
    service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    assert service.recover_from_checkpoint("W@1").success
    service.create_checkpoint("W", {"n": 2})


def test_coroutines_recover_with_handlers_that_record_too() -> None:
    app = App()

    @app.handler("resume")
    async def resume(context: ExecutionContext) -> None:
        await asyncio.to_thread(context.service.append_event, "W", "RESUMED")

    async def main() -> list[str]:
        async with AsyncCheckpointService(make_kit(app=app)) as service:
            await service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
            assert (await service.recover_from_checkpoint("W@1")).success
            return [event.type for event in await service.events("W")]

    assert asyncio.run(main())[-2:] == ["RESUMED", "CHECKPOINT_STATUS"]


def test_an_engine_without_a_face_says_so() -> None:
    engine = Engine(make_kit())
    with pytest.raises(InvalidStateError, match="a face for handlers"):
        engine.face()
