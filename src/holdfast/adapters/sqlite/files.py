"""The file a database lies in: making it, naming it for SQLite, measuring it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from urllib.parse import quote

from holdfast.domain.errors import (
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
    StoreNotFoundError,
)

_MODE = 0o600
#: File format versions of writers and readers in the header; 1 where there is a rollback journal.
_LOG_MARK_AT, _LOG_MARK = 18, b"\x02\x02"
_FOLDER_MODE = 0o700

_DENIED = (PermissionDeniedError, "Check owner and mode of the folder.")
_FULL = (DiskFullError, "Free space, then try again.")
_FAULTS: dict[int, tuple[type[CheckpointWriteError], str]] = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
}


def create(path: str) -> None:
    """Make an empty file that only its owner may read, unless there is one: to SQLite an empty database.

    Raises:
        PermissionDeniedError: the folder may not be written.
        DiskFullError: there is no space.
        CheckpointWriteError: anything else went wrong.
    """
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
        # Closing a file that this process has open elsewhere would drop the locks SQLite has on it: a new
        # one cannot be open anywhere.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, _MODE))
        _sync_folder(folder)
    except FileExistsError:
        return
    except OSError as error:
        kind, hint = _FAULTS.get(error.errno or 0, (CheckpointWriteError, ""))
        raise kind(f"the file cannot be made ({error.strerror})", place=path, hint=hint) from error


#: Files that were opened beside SQLite, by device and number, for as long as the process lives: closing one
#: would drop the locks that SQLite may have on the same file elsewhere in this process.
_HELD: dict[tuple[int, int], int] = {}


def held(path: str) -> int:
    """Open a file to read beside SQLite; it stays open."""
    found = os.stat(path)
    key = (found.st_dev, found.st_ino)
    if key not in _HELD:
        _HELD[key] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return _HELD[key]


def forget(path: str) -> None:
    """Let the kernel drop what it remembers of a database and its log, after the disk failed.

    ext4 takes blocks for written whose first writing failed: what is written to them again is synced without
    an error, and zeros are read from there after the next mount. What is read anew is not.
    """
    with suppress(OSError):
        _drop(held(path))
    # SQLite locks nothing in its log. It is deleted with the last connection: held open it would take room.
    with suppress(OSError), open(f"{path}-wal", "rb") as log:
        _drop(log.fileno())


def _drop(handle: int) -> None:
    with suppress(OSError):
        # Only what is clean is dropped; whether this succeeds says nothing.
        os.fsync(handle)
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def require(path: str) -> None:
    """Refuse a path where there is no file."""
    if not os.path.isfile(path):
        what = "a folder is where the database should be" if os.path.isdir(path) else "there is no database"
        raise StoreNotFoundError(what, place=path, hint="Is the path right? `holdfast init` makes a store.")


def uri(path: str, mode: str, *, is_immutable: bool = False) -> str:
    """Name a file for SQLite; `mode` is rw or ro."""
    said = f"file:{quote(os.fsencode(path))}?mode={mode}"
    return f"{said}&immutable=1" if is_immutable else said


def size_bytes(path: str) -> int:
    """Measure a file; one that is not there has no bytes."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def has_log_mark(path: str) -> bool:
    """Tell whether the header of a database says that it is written through a write-ahead log."""
    with open(path, "rb") as file:
        return file.read(_LOG_MARK_AT + len(_LOG_MARK))[_LOG_MARK_AT:] == _LOG_MARK
