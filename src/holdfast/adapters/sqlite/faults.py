"""SQLite's errors said in Holdfast's words. The one place that knows result codes."""

from __future__ import annotations

import os
import resource

from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    InvalidIdError,
    PermissionDeniedError,
    StateTooLargeError,
    StoreLockedError,
    UnstorableValueError,
)

# Primary result codes, the lowest byte of an extended one.
PERM, BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL = 3, 5, 6, 8, 10, 11, 13
CANTOPEN, PROTOCOL, TOOBIG, CONSTRAINT, AUTH, NOTADB = 14, 15, 18, 19, 23, 26

_PRIMARY_BITS = 0xFF
#: Pages that cannot be read as they were written are damage, not a fault of the moment.
_IOERR_SHORT_READ, _IOERR_DATA, _IOERR_CORRUPTFS = 522, 8202, 8458

_FOREIGN_KEY, _PRIMARY_KEY, _UNIQUE = 787, 1555, 2067

#: A file or disk this close to its limit is taken for full when a write fails.
_BLOCKS_TO_SPARE = 16
_FILE_ENDINGS = ("", "-journal", "-wal")

_DOCTOR = "Run `holdfast doctor`."


def primary(code: int) -> int:
    """Leave the details of a result code out."""
    return code & _PRIMARY_BITS


def is_busy(code: int) -> bool:
    """Tell whether others are in the way, and nothing else."""
    return primary(code) in (BUSY, LOCKED, PROTOCOL)


def is_serious(code: int) -> bool:
    """Tell whether an error is more than a refusal: the disk or the database itself may have failed."""
    return not is_busy(code) and primary(code) not in (FULL, TOOBIG, CONSTRAINT)


def needs_writing(code: int) -> bool:
    """Tell whether a reader failed only because it may not write."""
    return primary(code) in (READONLY, CANTOPEN)


def unbindable(error: Exception, path: str) -> CheckpointError:
    """Say that a value cannot even be handed to SQLite."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidIdError(
            "text that is no valid Unicode can be neither stored nor looked for", place=path
        )
    return UnstorableValueError(f"a value cannot be stored in SQLite ({error})", place=path)


def unreadable(error: Exception, path: str) -> CheckpointError:
    """Say that a text in the database is none."""
    return CheckpointCorruptError(f"the database is damaged ({error})", place=path, hint=_DOCTOR)


def fault(said: str, code: int, path: str, *, writing: bool, waited_seconds: float = 0) -> CheckpointError:
    """Translate what SQLite said, and the result code it said it with."""
    kind = primary(code)
    if is_busy(code):
        return _locked(path, writing=writing, waited_seconds=waited_seconds)
    if kind == NOTADB:
        return CheckpointCorruptError(
            "the file is no SQLite database", place=path, hint="Is it the right one?"
        )
    if kind == CORRUPT or code in (_IOERR_SHORT_READ, _IOERR_CORRUPTFS, _IOERR_DATA):
        return CheckpointCorruptError(f"the database is damaged ({said})", place=path, hint=_DOCTOR)
    if kind == FULL or (kind == IOERR and _is_at_a_limit(path)):
        return DiskFullError(
            f"no space left ({said})", place=path, hint="Free space or prune, then try again."
        )
    if kind in (PERM, READONLY, AUTH) or (kind == CANTOPEN and not _may_write(path)):
        return PermissionDeniedError(
            f"not allowed ({said})", place=path, hint="Check owner and mode of the file and of its folder."
        )
    if kind == CONSTRAINT:
        return _refused(said, code, path)
    if kind == TOOBIG:
        return StateTooLargeError(f"a value is larger than SQLite takes ({said})", place=path)
    if writing:
        return CheckpointWriteError(
            f"the database failed ({said})",
            place=path,
            hint="Whether the last commit is durable is unknown; read it back before repeating it.",
        )
    return CheckpointReadError(f"cannot read ({said})", place=path, hint=_DOCTOR)


def _refused(said: str, code: int, path: str) -> CheckpointError:
    if code == _FOREIGN_KEY:
        return CheckpointNotFoundError(
            "a blob that is referred to is gone", place=path, hint="Commit it with its bytes."
        )
    if code in (_PRIMARY_KEY, _UNIQUE):
        return CheckpointConflictError(
            f"something is stored under that key already ({said})", place=path, hint="Load the latest state."
        )
    return UnstorableValueError(f"the database refuses a value ({said})", place=path)


def _locked(path: str, *, writing: bool, waited_seconds: float) -> CheckpointError:
    said = f"others hold the database; waited {waited_seconds:g} seconds"
    if writing:
        return CheckpointWriteError(said, place=path, hint="Nothing was written: try again.")
    return StoreLockedError(said, place=path, hint="Try again.")


def _may_write(path: str) -> bool:
    """Tell whether this process may write a file, and others beside it."""
    return os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)


def _is_at_a_limit(path: str) -> bool:
    """Tell whether the disk is full, or a file as large as this process may make it.

    SQLite names only a full disk; what the system said otherwise, Python's module does not tell.
    """
    files = [path + ending for ending in _FILE_ENDINGS if os.path.exists(path + ending)]
    try:
        disk = os.statvfs(path)
        largest_bytes = max(os.stat(file).st_size for file in files)
    except (OSError, ValueError):
        return False
    spare_bytes = _BLOCKS_TO_SPARE * disk.f_frsize
    limit_bytes = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    is_limited = limit_bytes != resource.RLIM_INFINITY and largest_bytes + spare_bytes > limit_bytes
    return is_limited or disk.f_bavail * disk.f_frsize < spare_bytes
