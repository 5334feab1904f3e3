"""Nobody is inside SQLite while the process forks.

A child gets a copy of everything but the other threads: a lock of the library that one of them held would
stay locked in it for ever, and a half-done transaction would be rolled back by it under the parent's hands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Gate:
    """Threads pass through it into SQLite, except while it is shut."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        #: How often each thread has entered.
        self._inside: dict[int, int] = {}
        #: How many forks are under way.
        self._shut = 0

    def __enter__(self) -> None:
        own = threading.get_ident()
        with self._lock:
            while self._shut and own not in self._inside:
                self._changed.wait()
            self._inside[own] = self._inside.get(own, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own = threading.get_ident()
        with self._lock:
            times = self._inside.pop(own)
            if times > 1:
                self._inside[own] = times - 1
            if self._shut:
                self._changed.notify_all()

    def shut(self, when_empty: Callable[[], None] | None = None) -> None:
        """Wait until everybody is outside and let nobody in; who forks inside does not wait for itself.

        `when_empty` is called if really nobody is inside; another thread that shuts waits for its end.
        """
        own = {threading.get_ident()}
        with self._lock:
            self._shut += 1
            self._changed.wait_for(lambda: self._inside.keys() <= own)
            if when_empty is not None and not self._inside:
                when_empty()

    def open(self) -> None:
        """Let threads in again."""
        with self._lock:
            self._shut -= 1
            self._changed.notify_all()
