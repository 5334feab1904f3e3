"""Nobody is inside SQLite while the process forks.

A child gets a copy of everything but the other threads: a lock of the library that one of them held would
stay locked in it for ever, and a half-done transaction would be rolled back by it under the parent's hands.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType


class Gate:
    """Threads pass through it into SQLite, except while it is shut."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        #: How often each thread has entered.
        self._inside: Counter[int] = Counter()
        #: How many forks are under way.
        self._shut = 0

    def __enter__(self) -> None:
        own = threading.get_ident()
        with self._changed:
            while self._shut and own not in self._inside:
                self._changed.wait()
            self._inside[own] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            own = threading.get_ident()
            self._inside[own] -= 1
            if not self._inside[own]:
                del self._inside[own]
            if self._shut:
                self._changed.notify_all()

    def shut(self, when_empty: Callable[[], None] | None = None) -> None:
        """Wait until everybody is outside and let nobody in; who forks inside does not wait for itself.

        `when_empty` is called if really nobody is inside; another thread that shuts waits for its end.
        """
        own = {threading.get_ident()}
        with self._changed:
            self._shut += 1
            self._changed.wait_for(lambda: self._inside.keys() <= own)
            if when_empty is not None and not self._inside:
                when_empty()

    def open(self) -> None:
        """Let threads in again."""
        with self._changed:
            self._shut -= 1
            self._changed.notify_all()
