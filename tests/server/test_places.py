"""Places at work."""

from __future__ import annotations

import asyncio
import threading

import pytest

from holdfast.server.places import Places


def held(begun: threading.Semaphore, end: threading.Event):
    def work() -> str:
        begun.release()
        assert end.wait(60)
        return "done"

    return work


def test_nobody_alone_takes_all_places():
    begun, end = threading.Semaphore(0), threading.Event()

    async def scene() -> tuple[list[str], str]:
        places = Places(4)
        greedy = [asyncio.create_task(places.work("greedy", held(begun, end))) for _ in range(20)]
        for _ in range(3):
            await asyncio.to_thread(begun.acquire)
        other = await places.work("other", lambda: "at once")
        assert not begun.acquire(blocking=False)
        end.set()
        answers = await asyncio.gather(*greedy)
        places.close()
        return answers, other

    assert asyncio.run(scene()) == (["done"] * 20, "at once")


def test_who_gives_up_waiting_takes_no_place():
    begun, end = threading.Semaphore(0), threading.Event()

    async def scene() -> str:
        places = Places(1)
        first = asyncio.create_task(places.work("one", held(begun, end)))
        await asyncio.to_thread(begun.acquire)
        second = asyncio.create_task(places.work("one", lambda: "never"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        end.set()
        assert await first == "done"
        answer = await places.work("one", lambda: "after")
        places.close()
        return answer

    assert asyncio.run(scene()) == "after"


def test_work_that_was_given_up_keeps_its_place_until_it_ends():
    begun, end = threading.Semaphore(0), threading.Event()

    async def scene() -> str:
        places = Places(4)
        given_up = [asyncio.create_task(places.work("one", held(begun, end))) for _ in range(3)]
        for _ in range(3):
            await asyncio.to_thread(begun.acquire)
        for task in given_up:
            task.cancel()
        waiting = asyncio.create_task(places.work("one", lambda: "after"))
        assert await places.work("other", lambda: "at once") == "at once"
        assert not waiting.done()
        end.set()
        answer = await waiting
        places.close()
        return answer

    assert asyncio.run(scene()) == "after"


def test_what_goes_wrong_gives_its_place_back():
    def fail() -> None:
        raise ValueError("no")

    async def scene() -> int:
        places = Places(1)
        for _ in range(3):
            with pytest.raises(ValueError):
                await places.work("one", fail)
        answer = await places.work("one", lambda: 1)
        places.close()
        return answer

    assert asyncio.run(scene()) == 1
