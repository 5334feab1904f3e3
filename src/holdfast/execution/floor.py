"""What all runs of one event loop share: how many agents work, and how commits get back to the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.application.aio import Landing
from holdfast.application.commit_queue import OnDone, Ticket
from holdfast.execution.engines.threads import Threads


class Floor:
    """One event loop, and how busy it is."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._landing = Landing(loop)
        #: Writes progress reports.
        self.scribes = Threads(1)
        #: Agents that are at work.
        self.working = 0

    @property
    def is_quiet(self) -> bool:
        """Whether nobody would mind if the loop itself waits for the disk: handing over takes longer."""
        return self.working <= 1

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count one more agent at work meanwhile."""
        self.working += 1
        try:
            yield
        finally:
            self.working -= 1

    def expect(self) -> tuple[asyncio.Future[Any], OnDone]:
        """Answer a future, and what brings a commit's outcome to it from another thread."""
        future: asyncio.Future[Any] = self._loop.create_future()

        def bring(ticket: Ticket) -> None:
            self._landing.bring(ticket, future)

        return future, bring


def floor() -> Floor:
    """Answer the floor of the running loop."""
    loop = asyncio.get_running_loop()
    found = _FLOORS.get(loop)
    if found is None:
        with _MUTEX:
            # A floor holds on to its loop, so those of loops that are over have to be cleared away.
            for known in [one for one in _FLOORS if one.is_closed()]:
                _FLOORS.pop(known).scribes.close()
            found = _FLOORS[loop] = Floor(loop)
    return found


_MUTEX = threading.Lock()
_FLOORS: dict[asyncio.AbstractEventLoop, Floor] = {}
