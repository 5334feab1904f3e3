"""Every result code of SQLite becomes an error of ours that says what to do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import holdfast
from holdfast.adapters.sqlite import faults
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

IOERR_WRITE, IOERR_FSYNC, IOERR_SHORT_READ, READONLY_ROLLBACK, BUSY_RECOVERY = 778, 1034, 522, 776, 261


@pytest.mark.parametrize(
    ("code", "in_writing", "in_reading"),
    [
        (faults.BUSY, CheckpointWriteError, StoreLockedError),
        (BUSY_RECOVERY, CheckpointWriteError, StoreLockedError),
        (faults.LOCKED, CheckpointWriteError, StoreLockedError),
        (faults.PROTOCOL, CheckpointWriteError, StoreLockedError),
        (faults.NOTADB, CheckpointCorruptError, CheckpointCorruptError),
        (faults.CORRUPT, CheckpointCorruptError, CheckpointCorruptError),
        (IOERR_SHORT_READ, CheckpointCorruptError, CheckpointCorruptError),
        (faults.FULL, DiskFullError, DiskFullError),
        (faults.READONLY, PermissionDeniedError, PermissionDeniedError),
        (READONLY_ROLLBACK, PermissionDeniedError, PermissionDeniedError),
        (faults.PERM, PermissionDeniedError, PermissionDeniedError),
        (faults.TOOBIG, StateTooLargeError, StateTooLargeError),
        (faults.CANTOPEN, CheckpointWriteError, CheckpointReadError),
        (IOERR_WRITE, CheckpointWriteError, CheckpointReadError),
        (IOERR_FSYNC, CheckpointWriteError, CheckpointReadError),
        (1, CheckpointWriteError, CheckpointReadError),
        (787, CheckpointNotFoundError, CheckpointNotFoundError),
        (1555, CheckpointConflictError, CheckpointConflictError),
        (2067, CheckpointConflictError, CheckpointConflictError),
        (1299, UnstorableValueError, UnstorableValueError),
    ],
)
def test_codes_become_errors(
    code: int, in_writing: type[CheckpointError], in_reading: type[CheckpointError], tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    path.touch()
    for writing, kind in ((True, in_writing), (False, in_reading)):
        error = faults.fault("what SQLite said", code, str(path), writing=writing, waited_seconds=2)
        assert type(error) is kind
        assert str(path) in str(error)


def test_a_wait_that_was_in_vain_says_how_long_it_was() -> None:
    assert "2.5 seconds" in str(faults.fault("", faults.BUSY, "x.db", writing=True, waited_seconds=2.5))


def test_an_unknown_outcome_is_said_to_be_unknown(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch()
    assert "unknown" in str(faults.fault("", IOERR_FSYNC, str(path), writing=True))


def test_what_cannot_be_handed_over_is_refused() -> None:
    surrogate = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    assert isinstance(faults.unbindable(surrogate, "x.db"), InvalidIdError)
    assert isinstance(faults.unbindable(OverflowError("too large"), "x.db"), UnstorableValueError)


def test_a_refusal_is_nothing_serious_and_a_fault_of_the_disk_is() -> None:
    for code in (faults.BUSY, faults.FULL, faults.TOOBIG, 787):
        assert not faults.is_serious(code)
    for code in (faults.IOERR, IOERR_FSYNC, faults.CORRUPT, 1):
        assert faults.is_serious(code)


def test_a_reader_may_need_to_write() -> None:
    assert faults.needs_writing(READONLY_ROLLBACK) and faults.needs_writing(faults.CANTOPEN)
    assert not faults.needs_writing(faults.CORRUPT)


def test_a_text_in_the_database_that_is_none_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with holdfast.open(f"sqlite:{path}") as service:
        service.create_checkpoint("wf", {"i": 1})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update checkpoints set uuid = cast(x'ff00' as text)")
    with (
        holdfast.open(f"sqlite:{path}", read_only=True) as service,
        pytest.raises(CheckpointCorruptError, match="the database is damaged"),
    ):
        service.list_checkpoints("wf")
