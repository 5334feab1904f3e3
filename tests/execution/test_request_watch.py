"""Requests reach the run they are for, one look serves all runs of a loop, and nothing ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import CheckpointService
from holdfast.application.requests import Requests
from holdfast.domain.errors import CheckpointReadError, LeaseLostError
from holdfast.domain.request import Request
from holdfast.execution.request_watch import _WATCHES, RequestWatch, watched
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import opened

#: So long that only the first look is made.
NEVER_SECONDS = 10_000.0
OFTEN_SECONDS = 0.002


@pytest.fixture
def service() -> Iterator[CheckpointService]:
    with opened() as service:
        for workflow_id in ("V", "W"):
            service.create_checkpoint(workflow_id, {})
        yield service


class Inbox:
    """Takes requests, and answers whether they are settled."""

    def __init__(self, *answers: bool | Exception) -> None:
        self.taken: list[Request] = []
        self.answers = list(answers)
        self.came = asyncio.Event()

    async def take(self, request: Request) -> bool:
        self.taken.append(request)
        self.came.set()
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def wait(self) -> None:
        await asyncio.wait_for(self.came.wait(), PATIENCE_SECONDS)


async def until(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(is_so):
            pass


def test_a_request_is_brought_to_its_run_and_taken_away(service: CheckpointService) -> None:
    async def work() -> None:
        watch, inbox, other = RequestWatch(service.requests, NEVER_SECONDS), Inbox(), Inbox()
        mine, foreign = service.requests.put("W", "pause"), service.requests.put("V", "cancel")
        watch._runs = {"W": inbox.take, "X": other.take}
        await watch.look()
        assert (inbox.taken, other.taken) == ([mine], [])
        assert service.requests.pending() == [foreign]

    asyncio.run(work())


def test_what_is_not_settled_stays_and_comes_again(service: CheckpointService) -> None:
    async def work() -> None:
        watch, inbox = RequestWatch(service.requests, NEVER_SECONDS), Inbox(False, True)
        asked = service.requests.put("W", "checkpoint")
        watch._runs = {"W": inbox.take}
        await watch.look()
        assert service.requests.pending() == [asked]
        await watch.look()
        assert service.requests.pending() == [] and inbox.taken == [asked, asked]

    asyncio.run(work())


@pytest.mark.parametrize("problem", [LeaseLostError("gone"), RuntimeError("odd"), TypeError("wrong")])
def test_a_request_that_cannot_be_carried_out_stays_and_hides_no_other(
    service: CheckpointService, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        watch, inbox = RequestWatch(service.requests, NEVER_SECONDS), Inbox(problem, True)
        first, _ = service.requests.put("W", "pause"), service.requests.put("W", "cancel")
        watch._runs = {"W": inbox.take}
        await watch.look()
        assert service.requests.pending() == [first] and len(inbox.taken) == 2
        assert f"request {first.id} could not be carried out" in caplog.text

    asyncio.run(work())


@pytest.mark.parametrize("problem", [CheckpointReadError("gone"), OSError("odd")])
def test_a_store_that_cannot_be_read_for_a_while_does_not_end_the_watch(
    service: CheckpointService, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    problems = [problem, problem]

    class Moody(Requests):
        def pending(self, workflow_id: str | None = None) -> list[Request]:
            if problems:
                raise problems.pop()
            return super().pending(workflow_id)

    async def work() -> None:
        engine, inbox = service._engine, Inbox()
        service.requests.put("W", "pause")
        async with watched(Moody(engine.kit, engine.trail), 1, "W", inbox.take, OFTEN_SECONDS):
            await inbox.wait()

    asyncio.run(work())
    assert caplog.text.count("requests could not be looked for") == 2


def test_a_request_that_comes_later_is_found(service: CheckpointService) -> None:
    async def work() -> None:
        inbox = Inbox()
        async with watched(service.requests, 1, "W", inbox.take, OFTEN_SECONDS):
            asked = await asyncio.to_thread(service.requests.put, "W", "pause")
            await inbox.wait()
            await until(lambda: not service.requests.pending())
        assert inbox.taken == [asked]

    asyncio.run(work())


def test_runs_over_one_store_share_one_look(service: CheckpointService) -> None:
    async def work() -> None:
        first, second = Inbox(), Inbox()
        async with watched(service.requests, 1, "V", first.take, OFTEN_SECONDS) as watch:
            task = watch._task
            async with watched(service.requests, 1, "W", second.take, OFTEN_SECONDS) as same:
                assert same is watch and same._task is task
                async with watched(service.requests, 2, "W", second.take, OFTEN_SECONDS) as other:
                    assert other is not watch
                await asyncio.to_thread(service.requests.put, "W", "pause")
                await second.wait()
            # The other goes on.
            await asyncio.to_thread(service.requests.put, "V", "pause")
            await first.wait()
            assert len(second.taken) == 1
        assert _WATCHES[asyncio.get_running_loop()] == {}
        assert task is not None and task.done()

    asyncio.run(work())


def test_nobody_leaves_before_what_was_carried_out_is_taken_away(service: CheckpointService) -> None:
    """A run that is asked to end leaves at once, and with it the store may be closed."""

    async def work() -> None:
        stop = asyncio.Event()

        async def end(request: Request) -> bool:
            stop.set()
            return True

        service.requests.put("W", "cancel")
        async with watched(service.requests, 1, "W", end, NEVER_SECONDS):
            await asyncio.wait_for(stop.wait(), PATIENCE_SECONDS)
        assert service.requests.pending() == []

    asyncio.run(work())


def test_who_comes_while_the_last_one_leaves_is_served(service: CheckpointService) -> None:
    async def work() -> None:
        watch, inbox = RequestWatch(service.requests, OFTEN_SECONDS), Inbox()
        watch.enter("V", Inbox().take)
        leaving = asyncio.ensure_future(watch.leave("V"))
        await asyncio.sleep(0)
        watch.enter("W", inbox.take)
        assert await leaving is False
        await asyncio.to_thread(service.requests.put, "W", "pause")
        await inbox.wait()
        assert await watch.leave("W") is True
        assert await watch.leave("W") is True

    asyncio.run(work())


def test_a_look_in_between_does_nothing_twice(service: CheckpointService) -> None:
    async def work() -> None:
        watch, inbox = RequestWatch(service.requests, NEVER_SECONDS), Inbox()
        asked = [service.requests.put("W", "checkpoint") for _ in range(3)]
        watch._runs = {"W": inbox.take}
        await asyncio.gather(*(watch.look() for _ in range(4)))
        assert service.requests.pending() == []
        assert {one.id for one in inbox.taken} == {one.id for one in asked}

    asyncio.run(work())
