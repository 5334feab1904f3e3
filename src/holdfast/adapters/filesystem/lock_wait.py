"""Telling of a lock that nobody gives up: whoever waits for it would wait without a word.

The kernel gives a lock to the next in turn and knows no limit of time, so another thread looks on. It is
started by the first who has to wait: most processes never do.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

#: A lock is held for less than a millisecond at a time.
PATIENCE_SECONDS = 5.0
_STOPPED = ("T", "t")
_LOG = logging.getLogger("holdfast")


class Onlooker:
    """Knows who waits for a lock, and says so of those who have waited for long, once for each wait."""

    def __init__(self) -> None:
        #: Since when threads wait, for which open file, of which store.
        self._waits: dict[int, tuple[float, int, str]] = {}
        self._thread: threading.Thread | None = None
        self._told: set[tuple[float, int, str]] = set()

    def wait(self, handle: int, root: str, lock: Callable[[], None]) -> None:
        """Take a lock that somebody else has."""
        me = threading.get_ident()
        # A signal handler may wait in the middle of a wait.
        before = self._waits.get(me)
        try:
            self._waits[me] = time.monotonic(), handle, root
            self._start()
            lock()
        finally:
            if before is None:
                self._waits.pop(me, None)
            else:
                self._waits[me] = before

    def _start(self) -> None:
        """Have somebody look on; of two at once both may start one: what the second says was said."""
        if self._thread is None:
            thread = threading.Thread(target=self._look_on, name="holdfast-locks", daemon=True)
            # At a limit of threads, or the end of the process, it is waited for without a word.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _look_on(self) -> None:
        while True:
            time.sleep(PATIENCE_SECONDS / 5)
            waits = set(self._waits.copy().values())
            self._told &= waits
            for one in waits - self._told:
                if time.monotonic() - one[0] >= PATIENCE_SECONDS:
                    self._told.add(one)
                    _LOG.warning("%s", _said(one[1], one[2]))


def _said(handle: int, root: str) -> str:
    """Say who keeps a lock, as far as the system tells, and what to do."""
    waiting = f"file:{root} is waited for: another process has had its lock for {PATIENCE_SECONDS:.0f} s"
    pid = None
    with suppress(OSError):
        pid = _holder(os.fstat(handle))
    if pid is None:
        return waiting
    if _is_stopped(pid):
        return f"{waiting}: {pid}, which is stopped; `kill -CONT {pid}` lets it go on"
    return f"{waiting}: {pid}"


def _holder(file: os.stat_result) -> str | None:
    """Find the process that has the lock of a file; only Linux tells."""
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        words = line.split()
        # Those who wait as well stand behind an arrow.
        if words[1] == "FLOCK" and words[5] == place:
            return words[4]
    return None


def _is_stopped(pid: str) -> bool:
    with suppress(OSError):
        # The name of the program, in brackets, may hold anything.
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return told.rpartition(")")[2].split()[0] in _STOPPED
    return False


@lru_cache(maxsize=1)
def onlooker() -> Onlooker:
    """Give the one of this process."""
    return Onlooker()


# Threads are their parent's.
os.register_at_fork(after_in_child=onlooker.cache_clear)
