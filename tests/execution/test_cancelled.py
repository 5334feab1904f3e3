"""Runs that are cancelled before they have begun in earnest leave nothing open, and nothing that goes on."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.application.recording import Recording
from holdfast.bootstrap import open as open_service
from holdfast.execution import tenure
from holdfast.execution.plan import Plan
from holdfast.execution.request_watch import RequestWatch
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import chain, latest, opened, run, types


def one(ctx: Any) -> int:
    return 1


class Pause:
    """Holds a thread up at some place until it may go on."""

    def __init__(self) -> None:
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        assert self.may_go_on.wait(PATIENCE_SECONDS)


async def cancelled(running: asyncio.Task[Any], pause: Pause) -> None:
    """Cancel a run that is held up, and let it go on then."""
    assert await asyncio.to_thread(pause.reached.wait, PATIENCE_SECONDS)
    running.cancel()
    # It has heard of that before the thread goes on.
    await asyncio.sleep(0)
    pause.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_one_that_is_cancelled_while_it_begins_has_its_lease_until_it_has_recorded_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pause, structure = Pause(), Plan.structure
    leases = []

    def slow(plan: Plan) -> Any:
        if not pause.reached.is_set():
            pause()
            leases.append(service._engine.kit.store.lease("WF-1"))
        return structure(plan)

    monkeypatch.setattr(Plan, "structure", slow)

    async def main() -> None:
        await cancelled(asyncio.create_task(chain(one).run(service, "WF-1")), pause)

    with opened() as service:
        asyncio.run(main())
        assert leases[0] is not None
        assert service._engine.kit.store.lease("WF-1") is None
        told = types(service)
        assert latest(service).status == "in_progress" and told[-1] == "RUN_UPDATED"
        assert run(chain(one), service).results == {"one": 1}
        assert types(service).count("CHECKPOINT_CREATED") == told.count("CHECKPOINT_CREATED") + 1


@pytest.mark.parametrize("at", ["take", "give_up"])
def test_one_that_is_cancelled_twice_while_it_has_its_lease_leaves_none(
    at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause, real = Pause(), getattr(Recording, at)

    def slow(recording: Recording, *given: Any) -> Any:
        if at == "give_up":
            pause()
        answer = real(recording, *given)
        if at == "take":
            pause()
        return answer

    monkeypatch.setattr(Recording, at, slow)

    async def main() -> None:
        running = asyncio.create_task(chain(one).run(service, "WF-1"))
        assert await asyncio.to_thread(pause.reached.wait, PATIENCE_SECONDS)
        for _ in range(2):
            running.cancel()
            await asyncio.sleep(0)
        pause.may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        # Nothing that was left behind: it is over.
        assert service.lease_of("WF-1") is None

    with opened() as service:
        asyncio.run(main())


def test_one_that_is_cancelled_while_it_opens_its_store_leaves_it_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pause, services = Pause(), list[holdfast.CheckpointService]()

    def slow(*given: Any, **settings: Any) -> holdfast.CheckpointService:
        pause()
        services.append(open_service(*given, **settings))
        return services[0]

    monkeypatch.setattr(tenure, "open_service", slow)

    async def main() -> None:
        await cancelled(asyncio.create_task(chain(one).run(str(tmp_path / "store"), "WF-1")), pause)

    asyncio.run(main())
    with pytest.raises(holdfast.CheckpointError, match="closed"):
        services[0].create_checkpoint("WF-2", {})


def test_one_that_is_cancelled_before_it_walks_is_recorded_as_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken, pause = [True], Pause()

    def fails_once(ctx: Any) -> int:
        if broken:
            raise RuntimeError("broken")
        return 2

    look = RequestWatch.look

    async def slow(watch: RequestWatch, workflow_id: str) -> None:
        await asyncio.to_thread(pause)
        await look(watch, workflow_id)

    async def main() -> None:
        running = asyncio.create_task(chain(fails_once).run(service, "WF-1"))
        await cancelled(running, pause)
        left = [task for task in asyncio.all_tasks() if "coro=<_walk(" in repr(task)]
        assert left == []

    with opened() as service:
        with pytest.raises(holdfast.AgentFailedError):
            run(chain(fails_once), service)
        broken.clear()
        with monkeypatch.context() as patch:
            patch.setattr(RequestWatch, "look", slow)
            asyncio.run(main())
        assert latest(service).status == "stopped"
        assert run(chain(fails_once), service).results == {"fails_once": 2}
