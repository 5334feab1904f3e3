"""What is begun in a thread comes to its end, and whoever was cancelled meanwhile is so afterwards."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast.execution.finishing import begun, finished, settled
from tests.execution.journals import PATIENCE_SECONDS

PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("place")


def test_it_answers_what_came_of_it_and_is_called_where_its_caller_is() -> None:
    async def main() -> tuple[str, str]:
        PLACE.set("here")
        with pytest.raises(ValueError, match="no"):
            await finished(begun(int, "no"))
        return await finished(begun(PLACE.get)), threading.current_thread().name

    assert asyncio.run(main())[0] == "here"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("cancels", [1, 2, 5])
def test_whoever_is_cancelled_again_and_again_is_so_once_it_has_ended(cancels: int, fails: bool) -> None:
    reached, may_go_on, ended = threading.Event(), threading.Event(), list[str]()

    def work() -> None:
        reached.set()
        assert may_go_on.wait(PATIENCE_SECONDS)
        ended.append("ended")
        if fails:
            raise ValueError("is not told")

    async def main() -> None:
        waiting = asyncio.ensure_future(finished(begun(work)))
        assert await asyncio.to_thread(reached.wait, PATIENCE_SECONDS)
        for _ in range(cancels):
            waiting.cancel()
            await asyncio.sleep(0)
        assert not waiting.done()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert ended == ["ended"]

    asyncio.run(main())


def test_what_has_no_thread_yet_is_called_all_the_same_when_its_caller_is_cancelled() -> None:
    may_go_on, ended = threading.Event(), list[str]()

    async def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            before = begun(may_go_on.wait, PATIENCE_SECONDS)
            waiting = asyncio.ensure_future(finished(begun(ended.append, "called")))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.sleep(0)
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await before and ended == ["called"]

    asyncio.run(main())


def test_what_others_cancelled_has_ended() -> None:
    async def main() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        assert await settled(future) is None
        with pytest.raises(asyncio.CancelledError):
            await finished(future)

    asyncio.run(main())
