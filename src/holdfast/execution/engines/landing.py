"""Bringing the end of foreign work, which is told in a foreign thread, to the loop that waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Landing:
    """A future of the running loop, and how it is settled from any thread."""

    def __init__(self, on_cancel: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self._loop.create_future()
        self.future.add_done_callback(lambda done: on_cancel() if done.cancelled() else None)

    def settle(self, outcome: Callable[[], Any]) -> None:
        """Bring what a function answers or raises; called in a thread where that may take a while."""
        try:
            result, fault = outcome(), None
        except BaseException as problem:
            result, fault = None, problem
        with suppress(RuntimeError):
            # A loop that was closed has nobody who waits.
            self._loop.call_soon_threadsafe(self._land, result, fault)

    def _land(self, result: Any, fault: BaseException | None) -> None:
        if self.future.done():
            return
        if fault is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(fault)
