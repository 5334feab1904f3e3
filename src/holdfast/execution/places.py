"""How many agents of a run work at once: places that are taken, and left while an agent only waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """So many places; without a number there is room for all."""

    def __init__(self, count: int | None) -> None:
        self._free = None if count is None else asyncio.Semaphore(count)
        #: Steps that have a place, and how many things those wait for that have left theirs.
        self._taken: set[str] = set()
        self._waits: dict[str, int] = {}

    @property
    def is_limited(self) -> bool:
        """Whether somebody may have to wait."""
        return self._free is not None

    @asynccontextmanager
    async def taken(self, step_id: str) -> AsyncIterator[None]:
        """Have a place for a step, as soon as there is one."""
        if self._free is None:
            yield
            return
        await self._take(step_id, self._free)
        try:
            yield
        finally:
            self._leave(step_id, self._free)

    @asynccontextmanager
    async def left(self, step_id: str) -> AsyncIterator[None]:
        """Leave the place of a step to others while it waits, for one thing or for several at once."""
        if self._free is None:
            yield
            return
        self._waits[step_id] = self._waits.get(step_id, 0) + 1
        self._leave(step_id, self._free)
        try:
            yield
        finally:
            self._waits[step_id] -= 1
            if not self._waits[step_id]:
                del self._waits[step_id]
                await self._take(step_id, self._free)

    async def _take(self, step_id: str, free: asyncio.Semaphore) -> None:
        await free.acquire()
        self._taken.add(step_id)

    def _leave(self, step_id: str, free: asyncio.Semaphore) -> None:
        # Who was cancelled while it came back has none.
        if step_id in self._taken:
            self._taken.remove(step_id)
            free.release()
