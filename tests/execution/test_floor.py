"""Each event loop has a floor of its own for as long as it is open, and commits get back to it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.domain.errors import LeaseHeldError
from holdfast.execution import floor as floors
from holdfast.execution.floor import Floor, floor
from tests.execution.journals import PATIENCE_SECONDS, W, at_once
from tests.execution.runs import opened


def test_all_of_one_loop_share_a_floor_and_no_other_loop_does() -> None:
    async def mine() -> tuple[Floor, Floor]:
        async def another() -> Floor:
            return floor()

        return floor(), await asyncio.create_task(another())

    first, same = asyncio.run(mine())
    assert first is same
    assert asyncio.run(mine())[0] is not first


def test_there_is_no_floor_without_a_loop() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        floor()


def test_a_floor_is_quiet_until_two_work() -> None:
    async def look() -> list[bool]:
        place, seen = floor(), []
        for working in (0, 1, 2):
            place.working = working
            seen.append(place.is_quiet)
        return seen

    assert asyncio.run(look()) == [True, True, False]


def test_who_works_is_counted_until_it_ends_well_or_not() -> None:
    async def look() -> list[int]:
        place, seen = floor(), []
        with pytest.raises(ValueError, match="no"), place.busy(), place.busy():
            seen.append(place.working)
            raise ValueError("no")
        return [*seen, place.working]

    assert asyncio.run(look()) == [2, 0]


def test_loops_that_are_over_are_not_kept() -> None:
    async def mine() -> weakref.ref[Any]:
        return weakref.ref(floor())

    gone = [asyncio.run(mine()) for _ in range(5)]
    asyncio.run(mine())
    gc.collect()
    assert [one() for one in gone] == [None] * 5
    assert len(floors._FLOORS) == 1


def test_threads_of_loops_that_are_over_end() -> None:
    async def mine() -> threading.Thread:
        writing = floor().scribes.submit(threading.current_thread)
        return await asyncio.wrap_future(writing)

    thread = asyncio.run(mine())
    asyncio.run(mine())
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def test_loops_of_many_threads_come_and_go_at_once() -> None:
    async def mine() -> None:
        place = floor()
        await asyncio.sleep(0)
        assert floor() is place

    def often() -> None:
        for _ in range(20):
            asyncio.run(mine())

    at_once(*[often] * 6)


def test_the_outcome_of_a_commit_comes_to_its_loop() -> None:
    with opened() as service:

        async def work() -> Any:
            future, bring = floor().expect()
            service.recording.event(AppendEvent(W, "TOLD", {"n": 1}), bring)
            return await asyncio.wait_for(future, PATIENCE_SECONDS)

        assert asyncio.run(work()).data == {"n": 1}


def test_so_does_its_failure() -> None:
    with opened() as service:
        service._engine.kit.store.acquire(W, "another", 3000, ())

        async def work() -> Any:
            future, bring = floor().expect()
            service.recording.event(AppendEvent(W, "TOLD", {"n": 1}), bring)
            return await asyncio.wait_for(future, PATIENCE_SECONDS)

        with pytest.raises(LeaseHeldError):
            asyncio.run(work())


def test_who_no_longer_listens_is_passed_over() -> None:
    with opened() as service:

        async def work() -> Any:
            unheard, bring_unheard = floor().expect()
            heard, bring = floor().expect()
            unheard.cancel()
            service.recording.event(AppendEvent(W, "TOLD", {"n": 1}), bring_unheard, is_urgent=False)
            service.recording.event(AppendEvent(W, "TOLD", {"n": 2}), bring)
            return await asyncio.wait_for(heard, PATIENCE_SECONDS)

        assert asyncio.run(work()).data == {"n": 2}
        assert [event.data["n"] for event in service.events(W)] == [1, 2]
