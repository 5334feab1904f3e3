"""A conflict, a value or a limit is no fault of the store; a disk, a right or a server is."""

from __future__ import annotations

import pytest

from holdfast.application.storage_faults import is_away, is_fault, no_room, reason_of
from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
    StoreClosedError,
    StoreLockedError,
    StoreReadOnlyError,
)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DiskFullError("x"), True),
        (PermissionDeniedError("x"), True),
        (AtomicRenameFailedError("x"), True),
        (CheckpointWriteError("x"), True),
        (CheckpointConflictError("x"), False),
        (StoreReadOnlyError("a server that takes no more writes"), True),
        (StoreClosedError("x"), False),
        (CheckpointError("x"), False),
        (ValueError("x"), False),
    ],
)
def test_only_what_is_wrong_with_the_store_is_a_fault(error, expected):
    assert is_fault(error) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CheckpointReadError("the server does not answer"), True),
        (StoreLockedError("x"), True),
        (CheckpointNotFoundError("x"), False),
        (CheckpointCorruptError("x"), False),
        (DiskFullError("x"), False),
    ],
)
def test_only_a_store_that_does_not_answer_is_away(error, expected):
    assert is_away(error) is expected


def test_that_nothing_has_room_says_what_to_do_and_why():
    cause = DiskFullError("full")
    error = no_room(cause)
    assert error.__cause__ is cause and "emergency_path" in str(error)


def test_a_reason_is_what_went_wrong_and_no_advice() -> None:
    assert reason_of(DiskFullError("no space left", place="file:/x", hint="Free some.")) == "no space left"
    assert (reason_of(OSError("busy")), reason_of(None)) == ("busy", "")
