from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.errors import LeaseHeldError, StoreClosedError
from holdfast.execution import tenure
from tests.execution.runs import opened


def test_a_service_that_was_opened_elsewhere_stays_open(tmp_path: Path) -> None:
    with opened() as service:
        with tenure.opened(service) as same:
            assert same is service
        service.create_checkpoint("WF-1", {})
    with tenure.opened(str(tmp_path / "store")) as own:
        pass
    with pytest.raises(StoreClosedError):
        own.recording.take("WF-1", "run", 30)


def test_a_workflow_that_is_taken_is_given_back_whatever_happens() -> None:
    with opened() as service:
        with pytest.raises(ValueError, match="x"), tenure.taken(service.recording, "WF-1", 30):
            with pytest.raises(LeaseHeldError), tenure.taken(service.recording, "WF-1", 30):
                pass
            raise ValueError("x")
        assert service.lease_of("WF-1") is None


def test_a_lease_that_was_lost_is_not_given_back(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path / "store")) as mine, holdfast.open(str(tmp_path / "store")) as other:
        with tenure.taken(mine.recording, "WF-1", 30) as claim:
            lease = mine.lease_of("WF-1")
            assert lease is not None
            mine.renew_lease(lease, ttl_seconds=0)
            theirs = other.acquire_lease("WF-1", "somebody")
            claim.lose()
        held = other.lease_of("WF-1")
        assert held is not None and held.token == theirs.token and held.is_live


def test_a_workflow_of_which_nothing_is_recorded_has_no_state() -> None:
    with opened() as service, tenure.taken(service.recording, "WF-1", 30):
        assert tenure.brought_back(service.recording, "WF-1") is None
        service.create_checkpoint("WF-1", {"i": 1})
        found = tenure.brought_back(service.recording, "WF-1")
        assert found is not None and found.context == {"i": 1}


@contextmanager
def noted(told: list[str], entered: threading.Event | None = None) -> Iterator[str]:
    if entered is not None:
        entered.wait(60)
    told.append("in")
    try:
        yield "value"
    except ValueError:
        told.append("caught")
    finally:
        told.append("out")


def fail(fault: Exception) -> None:
    raise fault


def test_what_waits_for_the_disk_is_entered_and_left_beside_the_loop() -> None:
    told: list[str] = []

    async def main() -> None:
        async with tenure.aside(noted(told)) as value:
            assert value == "value"
        async with tenure.aside(noted(told)):
            fail(ValueError("is caught inside"))
        with pytest.raises(KeyError):
            async with tenure.aside(noted(told)):
                fail(KeyError("passes through"))

    asyncio.run(main())
    assert told == ["in", "out", "in", "caught", "out", "in", "out"]


def test_whoever_is_cancelled_while_it_is_entered_leaves_it() -> None:
    told: list[str] = []
    entered = threading.Event()

    async def main() -> None:
        async def use() -> None:
            async with tenure.aside(noted(told, entered)):
                told.append("never")

        task = asyncio.create_task(use())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        entered.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert told == ["in", "out"]


@pytest.mark.parametrize("while_entering", [True, False])
def test_whoever_is_cancelled_again_while_it_is_left_leaves_it_all_the_same(while_entering: bool) -> None:
    told: list[str] = []
    entered, leaving, may_leave = threading.Event(), threading.Event(), threading.Event()

    @contextmanager
    def slow() -> Iterator[None]:
        assert entered.wait(60)
        try:
            yield
        finally:
            leaving.set()
            assert may_leave.wait(60)
            told.append("out")

    async def main() -> None:
        inside = asyncio.Event()

        async def use() -> None:
            async with tenure.aside(slow()):
                inside.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(use())
        await asyncio.sleep(0)
        if while_entering:
            task.cancel()
            await asyncio.sleep(0)
        entered.set()
        if not while_entering:
            await inside.wait()
            task.cancel()
        assert await asyncio.to_thread(leaving.wait, 60)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_leave.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told == ["out"]

    asyncio.run(main())


def test_whoever_is_cancelled_while_entering_fails_is_cancelled_all_the_same() -> None:
    entered = threading.Event()

    @contextmanager
    def failing() -> Iterator[None]:
        if entered.wait(60):
            raise ValueError("not entered")
        yield

    async def main() -> None:
        async def use() -> None:
            async with tenure.aside(failing()):
                pass

        task = asyncio.create_task(use())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        entered.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
