"""Files that hold a key: read only if nobody else may read them, written once and for their owner alone."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.domain.errors import CheckpointWriteError, PermissionDeniedError

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_private(path: Path, data: bytes) -> None:
    """Write a new file that only its owner may read, durably; a file that is there is left alone.

    It has its name once all of it is on the disk: a power cut leaves the whole of it, or nothing.

    Raises:
        CheckpointWriteError: if there is one already, or it cannot be written.
    """
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        _fill(fresh, data)
        _name(fresh, path)
    except OSError as fault:
        with suppress(OSError):
            fresh.unlink()
        raise _unwritten(fault, path) from None
    try:
        sync_folder(path.parent)
    except OSError as fault:
        with suppress(OSError):
            path.unlink()
        raise _unwritten(fault, path) from None


def _name(fresh: Path, path: Path) -> None:
    """Give a file its name unless another has it."""
    try:
        os.link(fresh, path, follow_symlinks=False)
    except OSError as fault:
        # Not every file system has links; there two who come at once may replace each other's.
        if fault.errno not in _NO_LINKS or os.path.lexists(path):
            raise
        fresh.rename(path)
    else:
        fresh.unlink()


def _fill(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, _NEW, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_shared(status: os.stat_result, path: Path) -> None:
    """Refuse a key that others could read.

    Raises:
        PermissionDeniedError: if they can, or it is no plain file.
    """
    is_private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o077
    if not is_private or status.st_uid not in (os.geteuid(), 0):
        raise PermissionDeniedError(
            "a key file may be read by others, or is no plain file of yours",
            place=str(path),
            hint="Give it to its owner alone (chmod 600); if others could have read it, take a new key.",
        )


def _unwritten(fault: OSError, path: Path) -> CheckpointWriteError:
    is_there = isinstance(fault, FileExistsError)
    hint = "An existing key is never replaced: give another path, or move the old key away."
    return CheckpointWriteError(
        f"a private key could not be written ({fault.strerror})",
        place=str(path),
        hint=hint if is_there else "",
    )
