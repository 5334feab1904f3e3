"""So many agents work at once, and one that only waits keeps nobody from it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from holdfast import Workflow
from holdfast.execution.places import Places
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import opened


def soon(work: Any) -> Any:
    async def in_time() -> Any:
        return await asyncio.wait_for(work, PATIENCE_SECONDS)

    return asyncio.run(in_time())


def test_a_place_is_for_one_at_a_time_and_left_while_its_step_waits() -> None:
    order: list[str] = []

    async def second(places: Places) -> None:
        async with places.taken("second"):
            order.append("second works")

    async def work() -> None:
        places = Places(1)
        async with places.taken("first"):
            other = asyncio.ensure_future(second(places))
            await asyncio.sleep(0)
            order.append("first works")
            async with places.left("first"):
                await other
            order.append("first goes on")

    soon(work())
    assert order == ["first works", "second works", "first goes on"]


def test_a_step_that_waits_for_several_things_comes_back_once() -> None:
    async def work() -> None:
        places = Places(1)
        async with places.taken("first"), places.left("first"), places.left("first"):
            await _taken(places, "second")
        await _taken(places, "third")

    soon(work())


def test_a_step_that_is_cancelled_on_its_way_back_has_no_place_to_leave() -> None:
    async def waiting(places: Places) -> None:
        async with places.taken("first"), places.left("first"):
            await asyncio.sleep(0)

    async def work() -> None:
        places = Places(1)
        first = asyncio.ensure_future(waiting(places))
        await asyncio.sleep(0)
        async with places.taken("second"):
            for _ in range(5):
                await asyncio.sleep(0)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            third = asyncio.ensure_future(_taken(places, "third"))
            await asyncio.sleep(0)
            assert not third.done()
        await third

    soon(work())


async def _taken(places: Places, step_id: str, go_on: asyncio.Event | None = None) -> None:
    async with places.taken(step_id):
        if go_on is not None:
            await go_on.wait()


async def _left(places: Places, step_id: str, awaited: Awaitable[Any]) -> None:
    async with places.left(step_id):
        await awaited


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_a_step_that_waits_anew_while_it_comes_back_keeps_no_place_from_what_it_waits_for() -> None:
    async def waiting(places: Places, over: asyncio.Event) -> None:
        async with places.left("first"):
            await over.wait()

    async def work() -> None:
        places, over, go_on = Places(1), asyncio.Event(), asyncio.Event()
        async with places.taken("first"):
            back = asyncio.ensure_future(waiting(places, over))
            await _turns()
            other = asyncio.ensure_future(_taken(places, "second", go_on))
            await _turns()
            # It is over, and the place with the second one.
            over.set()
            await _turns()
            waits = asyncio.ensure_future(_left(places, "first", _taken(places, "child")))
            await _turns()
            go_on.set()
            await asyncio.gather(back, other, waits)
            beside = asyncio.ensure_future(_taken(places, "third"))
            await _turns()
            assert not beside.done()
        await beside
        await _taken(places, "fourth")

    soon(work())


def test_two_that_come_back_for_one_step_need_one_place() -> None:
    async def work() -> None:
        places, go_on = Places(1), asyncio.Event()
        async with places.taken("first"):
            ends = [asyncio.Event(), asyncio.Event()]
            first = asyncio.ensure_future(_left(places, "first", ends[0].wait()))
            await _turns()
            other = asyncio.ensure_future(_taken(places, "second", go_on))
            await _turns()
            ends[0].set()
            await _turns()
            second = asyncio.ensure_future(_left(places, "first", ends[1].wait()))
            await _turns()
            ends[1].set()
            await _turns()
            go_on.set()
            await asyncio.gather(first, second, other)
        await _taken(places, "third")

    soon(work())


def test_whoever_comes_back_to_a_step_that_has_ended_takes_no_place() -> None:
    async def work() -> None:
        places, over = Places(1), asyncio.Event()
        async with places.taken("first"):
            late = asyncio.ensure_future(_left(places, "first", over.wait()))
            await _turns()
        over.set()
        await late
        await _taken(places, "second")

    soon(work())


def test_a_step_that_goes_on_after_an_error_or_a_cancelled_wait_has_its_place_again() -> None:
    async def fail() -> None:
        raise ValueError("caught")

    async def work() -> None:
        places = Places(1)
        async with places.taken("first"):
            with pytest.raises(ValueError, match="caught"):
                await _left(places, "first", fail())
            waits = asyncio.ensure_future(_left(places, "first", asyncio.Event().wait()))
            await _turns()
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
            other = asyncio.ensure_future(_taken(places, "second"))
            await _turns()
            assert not other.done()
        await other

    soon(work())


def test_an_agent_may_wait_for_two_of_which_one_ends_while_its_place_is_with_another() -> None:
    workflow, met, done = Workflow("w", concurrency=1), asyncio.Event(), asyncio.Event()

    async def quick(ctx: Any) -> str:
        return "quick"

    async def last(ctx: Any) -> str:
        return "last"

    async def slow(ctx: Any) -> str:
        met.set()
        await done.wait()
        return "slow"

    @workflow.agent
    async def first(ctx: Any) -> list[str]:
        one = asyncio.ensure_future(ctx.spawn(quick))
        await met.wait()
        other = asyncio.ensure_future(ctx.spawn(last))
        await _turns()
        done.set()
        return [await one, await other]

    @workflow.agent
    async def second(ctx: Any) -> str:
        return str(await ctx.spawn(slow))

    with opened() as service:
        result = soon(workflow.run(service, "WF-1"))
    assert result.results["first"] == ["quick", "last"] and result.results["second"] == "slow"


def test_without_a_number_there_is_room_for_all() -> None:
    async def work() -> bool:
        places = Places(None)
        async with places.taken("a"), places.taken("b"), places.left("a"):
            return places.is_limited

    assert soon(work()) is False


def test_an_agent_may_wait_for_an_answer_that_another_one_gives_though_only_one_works_at_once() -> None:
    workflow = Workflow("w", concurrency=1)

    @workflow.agent
    async def asks(ctx: Any) -> str:
        return str((await ctx.approve("ok?", name="q")).by)

    @workflow.agent
    async def answers(ctx: Any) -> None:
        # It has its place because the other one waits.
        service.requests.put("WF-1", "approval", actor="answers", data={"name": "q", "granted": True})

    with opened() as service:
        result = soon(workflow.run(service, "WF-1"))
    assert result.results["asks"] == "answers"


def test_spawned_agents_count_and_whoever_waits_for_them_does_not() -> None:
    workflow, live, most = Workflow("w", concurrency=2), list[int](), list[int]()
    two = asyncio.Barrier(2)

    async def child(ctx: Any, item: int) -> int:
        live.append(item)
        most.append(len(live))
        # However long their starts take to be recorded: two are at work at once.
        await two.wait()
        live.remove(item)
        return item

    @workflow.agent
    async def parent(ctx: Any) -> list[int]:
        return list(await asyncio.gather(*(ctx.spawn(child, item) for item in range(6))))

    with opened() as service:
        assert soon(workflow.run(service, "WF-1")).value == list(range(6))
    assert max(most) == 2
