"""How many agents of a run work at once: places that are taken, and left while an agent only waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Places:
    """So many places; without a number there is room for all."""

    def __init__(self, count: int | None) -> None:
        self._count = count
        self._free = count or 0
        #: Steps that are under way, those of them that have a place, and for how many things each waits.
        self._inside: set[str] = set()
        self._taken: set[str] = set()
        self._waits: dict[str, int] = {}
        #: Steps that need a place, in the order of their turns; each stands here once, whoever waits for it.
        self._line: dict[str, asyncio.Future[None]] = {}

    @property
    def is_limited(self) -> bool:
        """Whether somebody may have to wait."""
        return self._count is not None

    @asynccontextmanager
    async def taken(self, step_id: str) -> AsyncIterator[None]:
        """Have a place for a step, as soon as there is one."""
        if self._count is None:
            yield
            return
        self._inside.add(step_id)
        try:
            await self._come(step_id)
            yield
        finally:
            self._inside.discard(step_id)
            self._leave(step_id)

    @asynccontextmanager
    async def left(self, step_id: str) -> AsyncIterator[None]:
        """Leave the place of a step to others while it waits, for one thing or for several at once."""
        if self._count is None:
            yield
            return
        self._waits[step_id] = self._waits.get(step_id, 0) + 1
        self._leave(step_id)
        try:
            yield
        except Exception:
            # It may be caught, and the step go on.
            self._end_wait(step_id)
            await self._come(step_id)
            raise
        except BaseException:
            # Whoever is stopped waits for nothing; a step that goes on has its place when it is its turn.
            self._end_wait(step_id)
            self._line_up(step_id)
            raise
        self._end_wait(step_id)
        await self._come(step_id)

    def _end_wait(self, step_id: str) -> None:
        self._waits[step_id] -= 1
        if not self._waits[step_id]:
            del self._waits[step_id]

    async def _come(self, step_id: str) -> None:
        """Wait until a step has a place, or needs none any more."""
        self._line_up(step_id)
        turn = self._line.get(step_id)
        if turn is not None:
            # Others of the step may wait for the same turn.
            await asyncio.shield(turn)

    def _line_up(self, step_id: str) -> None:
        """Let a step that is at work be given a place; one that has ended, or waits, needs none."""
        is_at_work = step_id in self._inside and step_id not in self._waits
        if is_at_work and step_id not in self._taken and step_id not in self._line:
            self._line[step_id] = asyncio.get_running_loop().create_future()
            self._hand_out()

    def _leave(self, step_id: str) -> None:
        """Give back the place of a step, or its turn: who came back for it waits no more."""
        turn = self._line.pop(step_id, None)
        if turn is not None:
            turn.set_result(None)
        if step_id in self._taken:
            self._taken.remove(step_id)
            self._free += 1
            self._hand_out()

    def _hand_out(self) -> None:
        while self._free and self._line:
            step_id = next(iter(self._line))
            self._free -= 1
            self._taken.add(step_id)
            self._line.pop(step_id).set_result(None)
