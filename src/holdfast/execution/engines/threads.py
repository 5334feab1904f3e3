"""Threads for plain functions, which no process waits for when it ends.

Those of the standard library's pool are joined at the end of the process: an agent that was given up, and
sleeps for another hour, would keep it alive for as long.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

_Work = tuple[Future[Any], Callable[[], Any]]
#: In each thread, the threads that it is one of.
_HERE = threading.local()


@contextmanager
def waiting() -> Iterator[None]:
    """Wait for others without taking a place from them: what is waited for may need a thread itself."""
    threads: Threads | None = getattr(_HERE, "threads", None)
    if threads is None:
        yield
        return
    threads.add_places(1)
    try:
        yield
    finally:
        threads.add_places(-1)


class Threads:
    """At most so many threads, started when they are needed."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._works: SimpleQueue[_Work | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._count = 0
        self._idle = 0
        self._is_closed = False

    def submit(self, function: Callable[[], Any]) -> Future[Any]:
        """Call a function in one of the threads."""
        future: Future[Any] = Future()
        with self._mutex:
            if self._is_closed:
                raise RuntimeError("the threads were let go")
            if self._idle:
                self._idle -= 1
            else:
                self._start()
            self._works.put((future, function))
        return future

    def add_places(self, count: int) -> None:
        """Let there be so many threads more, or less once they have no work."""
        with self._mutex:
            self._count_max += count
            if not self._works.empty() and not self._is_closed:
                self._start()

    def _start(self) -> None:
        if self._count < self._count_max:
            self._count += 1
            threading.Thread(target=self._serve, name="holdfast-agent", daemon=True).start()

    def close(self) -> None:
        """Let the threads end, each when its work does; nobody waits for them."""
        with self._mutex:
            if self._is_closed:
                return
            self._is_closed = True
            for _ in range(self._count):
                self._works.put(None)

    def _serve(self) -> None:
        _HERE.threads = self
        while (work := self._works.get()) is not None:
            _carry_out(*work)
            # Kept beyond its end it would keep whatever the agent held.
            del work
            with self._mutex:
                # Whoever waits in the queue is served next: only who finds it empty is idle.
                if self._works.empty():
                    self._idle += 1


def _carry_out(future: Future[Any], function: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function())
    except BaseException as fault:
        future.set_exception(fault)
