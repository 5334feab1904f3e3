"""Operating system errors in our words."""

from __future__ import annotations

import errno

import pytest

from holdfast.adapters.filesystem.apply import RenameFailed
from holdfast.adapters.filesystem.faults import Writing, reading
from holdfast.adapters.filesystem.journal import JournalPoisoned
from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointCorruptError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
)


@pytest.mark.parametrize(
    "error, kind",
    [
        (OSError(errno.ENOSPC, "full"), DiskFullError),
        (OSError(errno.EDQUOT, "quota"), DiskFullError),
        (OSError(errno.EACCES, "no"), PermissionDeniedError),
        (OSError(errno.EROFS, "ro"), PermissionDeniedError),
        (OSError(errno.EIO, "io"), CheckpointWriteError),
        (RenameFailed(errno.EBUSY, "held"), AtomicRenameFailedError),
        (RenameFailed(errno.ENOSPC, "full"), DiskFullError),
        (JournalPoisoned("sync failed"), CheckpointWriteError),
    ],
)
def test_what_fails_while_writing(error, kind):
    with pytest.raises(kind) as caught, Writing("here"):
        raise error
    assert caught.value.place == "here" and caught.value.hint and caught.value.__cause__ is error


@pytest.mark.parametrize(
    "code, kind", [(errno.ELOOP, CheckpointCorruptError), (errno.EIO, CheckpointReadError)]
)
def test_what_fails_while_reading(code, kind):
    with pytest.raises(kind), reading("here"):
        raise OSError(code, "said")


def test_a_file_that_may_not_be_read_is_named() -> None:
    with pytest.raises(CheckpointReadError) as caught, reading("file:/store"):
        raise PermissionError(errno.EACCES, "Permission denied", "checkpoints/w/manifest.jsonl")
    assert caught.value.place == "file:/store/checkpoints/w/manifest.jsonl" and "mode" in caught.value.hint
