"""The append lock: held by whoever writes to the journal, and knows what everybody committed before."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from types import TracebackType

from holdfast.adapters.filesystem.journal import Journal


class AppendLock:
    """Keeps other threads and processes from appending, for as long as one is inside."""

    def __init__(
        self,
        mutex: RLock,
        journal: Journal,
        check_open: Callable[[], None],
        follow: Callable[[], object],
    ) -> None:
        """Take what keeps threads apart and what keeps processes apart.

        Args:
            check_open: raises if there is nothing to write to any more.
            follow: takes up what others committed.
        """
        self._mutex = mutex
        self._journal = journal
        self._check_open = check_open
        self._follow = follow

    def __enter__(self) -> None:
        self._mutex.acquire()
        try:
            self._check_open()
            self._journal.lock()
            try:
                self._follow()
            except BaseException:
                self._journal.unlock()
                raise
        except BaseException:
            self._mutex.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._journal.unlock()
        finally:
            self._mutex.release()
