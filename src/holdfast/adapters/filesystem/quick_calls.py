"""System calls that return at once, made without letting go of the interpreter's lock.

Whatever Python's own `os` and `fcntl` do lets go of it, and where another thread computes, it may take a
whole switch interval, 5 ms, to get it back: longer than a commit. Only what takes long lets go: the sync.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from functools import lru_cache
from typing import Protocol

#: To wait for nothing, as opposed to the other two flags.
_START_WRITING = 2


class Calls(Protocol):
    """What a commit asks of the system beside its sync."""

    def write(self, handle: int, data: bytes, offset: int) -> int:
        """Write at an offset; answers how many bytes."""

    def hurry(self, handle: int, offset: int, length: int) -> None:
        """Ask for bytes to be on their way to the device already when they are synced."""

    def flock(self, handle: int, flags: int) -> None:
        """Take or release a lock. It must not be waited for: with `LOCK_NB`, or `LOCK_UN`."""


class PlainCalls:
    """Python's own, where there is nothing better."""

    def write(self, handle: int, data: bytes, offset: int) -> int:
        return os.pwrite(handle, data, offset)

    def hurry(self, handle: int, offset: int, length: int) -> None:
        """Do nothing: it is no more than a wish."""

    def flock(self, handle: int, flags: int) -> None:
        fcntl.flock(handle, flags)


class QuickCalls(PlainCalls):
    """The C library's, called with the lock held."""

    def __init__(self) -> None:
        """Find them.

        Raises:
            ImportError, AttributeError, OSError: this Python, or this C library, has them not.
        """
        import ctypes

        library = ctypes.PyDLL(None, use_errno=True)
        number, size, text = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
        self._pwrite, self._flock = library.pwrite, library.flock
        self._pwrite.argtypes, self._pwrite.restype = (number, text, size, ctypes.c_int64), ctypes.c_ssize_t
        self._flock.argtypes, self._flock.restype = (number, number), number
        self._errno = ctypes.get_errno
        #: Linux only.
        self._start = getattr(library, "sync_file_range", None)
        if self._start is not None:
            self._start.argtypes = (number, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)

    def write(self, handle: int, data: bytes, offset: int) -> int:
        written: int = self._pwrite(handle, data, len(data), offset)
        if written >= 0:
            return written
        problem = self._problem()
        if problem.errno == errno.EINTR:
            return 0
        raise problem

    def hurry(self, handle: int, offset: int, length: int) -> None:
        if self._start is not None:
            # What it answers says nothing: the sync writes what is not written by then, or tells.
            self._start(handle, offset, length, _START_WRITING)

    def flock(self, handle: int, flags: int) -> None:
        if self._flock(handle, flags):
            raise self._problem()

    def _problem(self) -> OSError:
        code = self._errno()
        return OSError(code, os.strerror(code))


@lru_cache(maxsize=1)
def quick_calls() -> Calls:
    """Give the best there is; made when the first commit needs it."""
    try:
        # Where numbers are shorter, so are the offsets of these calls.
        return QuickCalls() if sys.maxsize > 1 << 32 else PlainCalls()
    except (ImportError, AttributeError, OSError):
        return PlainCalls()
