"""Where a reader that may not write finds a database: in the file itself, or in what stands in for it.

Even a reader makes SQLite write: it puts the index of a write-ahead log beside the file, and after the death
of a writer it has to finish what that left in its journal. So a file that nobody is writing is read as one
that never changes, and what a dead writer left is read from a copy, until one of the files changes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time

from holdfast.adapters.sqlite import files
from holdfast.domain.errors import CheckpointReadError

_WAL, _ROLLBACK = "-wal", "-journal"
_ATTEMPTS = 5
#: The time of a change is told in steps; a change within the step of the one before could go unnoticed.
_RESTING_SECONDS = 0.1
_COPY_BYTES = 1024 * 1024

#: Of the file and its journals: number, size and time of the last change, or None if it is not there.
Stamp = tuple[tuple[int, int, int] | None, ...]


class Source:
    """Gives the URI to read from."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._folder: str | None = None
        #: The files when the stand-in was chosen; None while the file itself is read.
        self._stamp: Stamp | None = None
        self._uri = files.uri(path, "ro")
        self._generation = 0

    def current(self) -> tuple[str, int]:
        """Name what to read from now, and its generation: connections made for another are not to be used."""
        with self._lock:
            stamp = self._stamped()
            if self._stamp is not None and self._stamp != stamp:
                self._forget()
            if self._stamp is None and _is_at_rest(stamp):
                self._take_as_immutable(stamp)
            return self._uri, self._generation

    def is_unchanged(self) -> bool:
        """Tell, after something was read, whether it may be believed."""
        with self._lock:
            return self._stamp is None or self._stamp == self._stamped()

    def stand_in(self) -> None:
        """Find something that can be read without writing beside the file, which SQLite asked for."""
        with self._lock:
            self._forget()
            try:
                stamp = self._stamped()
                if _has_journal(stamp):
                    self._copy()
                else:
                    self._take_as_immutable(stamp)
            except OSError as error:
                raise CheckpointReadError(
                    f"cannot be read where it is, nor copied to where it can ({error.strerror})",
                    place=self._path,
                    hint="Open it where you may write.",
                ) from error

    def close(self) -> None:
        """Remove the stand-in."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._stamp = None
        self._uri = files.uri(self._path, "ro")
        self._generation += 1
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _take_as_immutable(self, stamp: Stamp) -> None:
        self._stamp = stamp
        self._uri = files.uri(self._path, "ro", is_immutable=True)
        self._generation += 1

    def _copy(self) -> None:
        """Copy the database with its journal, where SQLite may finish what a dead writer left."""
        self._folder = tempfile.mkdtemp(prefix="holdfast-")
        copy = os.path.join(self._folder, "copy.db")
        for _ in range(_ATTEMPTS):
            stamp = self._stamped()
            _copy_database(self._path, copy)
            for ending in (_WAL, _ROLLBACK):
                if files.size_bytes(self._path + ending):
                    shutil.copyfile(self._path + ending, copy + ending)
            if stamp == self._stamped():
                self._stamp = stamp
                self._uri = files.uri(copy, "rw")
                return
        raise CheckpointReadError(
            "the database changes while it is copied for reading",
            place=self._path,
            hint="Try again, or open it where you may write.",
        )

    def _stamped(self) -> Stamp:
        """Tell one state of the files from another."""
        return tuple(_stamp(self._path + ending) for ending in ("", _WAL, _ROLLBACK))


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _has_journal(stamp: Stamp) -> bool:
    return any(part is not None and part[1] for part in stamp[1:])


def _is_at_rest(stamp: Stamp) -> bool:
    """Tell whether nobody is writing: our writers keep a journal beside the file while they are at it."""
    if stamp[0] is None or _has_journal(stamp):
        return False
    return time.time() - stamp[0][2] / 1e9 > _RESTING_SECONDS


def _copy_database(path: str, copy: str) -> None:
    handle, at = files.held(path), 0
    with open(copy, "wb") as target:
        while data := os.pread(handle, _COPY_BYTES, at):
            at += target.write(data)
