"""The clock on the wall, identifiers out of the operating system's randomness, and the room on its disks."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from datetime import UTC, datetime
from weakref import WeakSet

_IDS_PER_READ = 256
_ID_BYTES = 16
#: A random digit, and the one that stands in its place: two of its bits say which variant it is.
_VARIANTS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


class SystemClock:
    """Tells the time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    """Makes random UUIDs (version 4).

    Randomness is read for many at once: a system call for each would cost more than all the rest of it,
    and let go of the interpreter lock on the way of every commit.
    """

    def __init__(self) -> None:
        self._digits: list[str] = []
        _SOURCES.add(self)

    def new(self) -> str:
        try:
            # Taking from a list is atomic, so no two threads get the same.
            digits = self._digits.pop()
        except IndexError:
            random = os.urandom(_IDS_PER_READ * _ID_BYTES).hex()
            width = 2 * _ID_BYTES
            fresh = [random[at : at + width] for at in range(0, len(random), width)]
            digits = fresh.pop()
            self._digits.extend(fresh)
        variant = _VARIANTS[digits[16]]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"

    def forget(self) -> None:
        """Drop what was read ahead: a child of this process must not make the same ids."""
        self._digits.clear()


def space_of(url: str) -> Callable[[], tuple[int, int] | None] | None:
    """Answer what tells the size of a store's disk and its free bytes; None for stores on no disk of ours."""
    scheme, _, path = url.partition(":")
    if scheme not in ("file", "sqlite"):
        return None

    def space() -> tuple[int, int] | None:
        try:
            disk = os.statvfs(os.path.dirname(path) or ".")
        except OSError:
            return None
        return disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize

    return space


_SOURCES: WeakSet[RandomIds] = WeakSet()


def _after_fork() -> None:
    for source in list(_SOURCES):
        source.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def login_name() -> str:
    """Name who runs this process, as the trail tells it where nobody was named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A container may run as a number that nobody gave a name.
        return f"uid-{os.getuid()}"
