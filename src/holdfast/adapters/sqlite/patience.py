"""Waiting for others who hold the database.

SQLite's own waiting sleeps ever longer, up to a tenth of a second, while whoever has the lock takes it again
at once: among eight busy writers one waited for seven seconds. Here all look equally often, and who has met
others lets them in before it goes on: the longest wait was a tenth of that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from holdfast.adapters.sqlite import faults
from holdfast.adapters.sqlite.driver import Driver

T = TypeVar("T")

_LOOK_SECONDS = 0.001
#: For how long after meeting others it is likely that they are still there.
_CROWDED_SECONDS = 0.1


class Patience:
    """Repeats what others are in the way of, for a time."""

    def __init__(self, driver: Driver, seconds: float) -> None:
        self._driver = driver
        self.seconds = seconds
        self._met_others_at = float("-inf")

    def let_others_in(self) -> None:
        """Before taking the lock: leave those who wait for it the time for one look."""
        if time.monotonic() - self._met_others_at < _CROWDED_SECONDS:
            time.sleep(_LOOK_SECONDS)

    def run(self, call: Callable[..., T], *given: Any, seconds: float | None = None) -> T:
        """Make a call, again and again while others hold the database; in the end raise what it raises."""
        try:
            return call(*given)
        except self._driver.error as error:
            return self._insist(error, lambda: call(*given), seconds)

    def _insist(self, error: Exception, call: Callable[[], T], seconds: float | None) -> T:
        seconds = self.seconds if seconds is None else min(seconds, self.seconds)
        deadline = None
        while faults.is_busy(self._driver.code(error)):
            self._met_others_at = now = time.monotonic()
            deadline = now + seconds if deadline is None else deadline
            if now >= deadline:
                break
            time.sleep(_LOOK_SECONDS)
            try:
                return call()
            except self._driver.error as next_error:
                error = next_error
        raise error
