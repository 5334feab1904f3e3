"""Operating system errors said in Holdfast's words. The one place that knows errno."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from holdfast.adapters.filesystem.apply import RenameFailed
from holdfast.adapters.filesystem.journal import JournalPoisoned
from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointCorruptError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
#: What `write_error` has words for.
WRITE_FAULTS = (OSError, JournalPoisoned)


class Writing:
    """Translates what goes wrong inside of it while something is being made durable."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, WRITE_FAULTS):
            raise write_error(error, self._place) from error


def write_error(error: Exception, place: str) -> CheckpointWriteError:
    """Say what went wrong while something was being made durable."""
    if not isinstance(error, OSError):
        return CheckpointWriteError(str(error), place=place, hint="Try again: nothing was acknowledged.")
    said = error.strerror or str(error)
    if error.errno in _FULL:
        return DiskFullError(
            f"no space left ({said})", place=place, hint="Free space or prune, then try again."
        )
    if error.errno in _DENIED:
        return PermissionDeniedError(
            f"not allowed ({said})", place=place, hint="Check owner and mode of the store's folder."
        )
    if isinstance(error, RenameFailed):
        return AtomicRenameFailedError(
            f"a finished file could not be moved into its place ({said})",
            place=place,
            hint="Try again; if it stays so, look for a program that holds the file.",
        )
    return CheckpointWriteError(
        f"the disk failed ({said})",
        place=place,
        hint="Whether the last commit is durable is unknown; read it back before repeating it.",
    )


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Translate what goes wrong while something is read."""
    try:
        yield
    except OSError as error:
        said = error.strerror or str(error)
        if error.errno == errno.ELOOP:
            raise CheckpointCorruptError(
                "a symbolic link stands where a file of the store belongs",
                place=place,
                hint="Nothing was followed. Find out who put it there, then remove it.",
            ) from error
        name = error.filename
        # The store's own folder is named by its whole path.
        file = f"{place}/{name}" if isinstance(name, str) and not name.startswith("/") else place
        hint = "Check owner and mode of the file." if error.errno in _DENIED else ""
        raise CheckpointReadError(f"cannot read ({said})", place=file, hint=hint) from error
    except (KeyError, TypeError, RecursionError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CheckpointCorruptError(
            f"a file does not hold what Holdfast writes ({type(error).__name__}: {error})",
            place=place,
            hint="Run `holdfast validate --all` to see which one.",
        ) from error
