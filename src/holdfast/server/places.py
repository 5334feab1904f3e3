"""Places at work: nobody alone takes all of them."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

_T = TypeVar("_T")


class Places:
    """Threads that requests are worked on in. For one loop.

    They never grow: work that was given up keeps its thread, and its place, until it ends.
    """

    def __init__(self, count: int) -> None:
        self._workers = ThreadPoolExecutor(count, thread_name_prefix="holdfast-request")
        #: A quarter is left for others, whatever one asks for.
        self._each_max = max(1, count - max(1, count // 4))
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def work(self, who: str, work: Callable[[], _T]) -> _T:
        """Work in a thread; where that is given up, what has not begun never does."""
        await self._take(who)
        loop = asyncio.get_running_loop()

        def left(done: Future[_T]) -> None:
            # A loop that has ended needs no places.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._give_back, who)

        future = self._workers.submit(work)
        future.add_done_callback(left)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Let nothing begin any more."""
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _take(self, who: str) -> None:
        if self._taken[who] < self._each_max:
            self._taken[who] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue = self._waiting.setdefault(who, deque())
        queue.append(turn)
        try:
            # Whoever leaves hands its place on.
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give_back(who)
            raise

    def _give_back(self, who: str) -> None:
        queue = self._waiting.get(who, deque())
        while queue:
            turn = queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._waiting.pop(who, None)
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]
