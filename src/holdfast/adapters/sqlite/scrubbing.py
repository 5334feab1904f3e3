"""Leaving nothing of what was erased, removed or replaced in the journals beside the file.

In the file itself SQLite overwrites it (`secure_delete`). A write-ahead log keeps every page that was written
since it was last emptied, a rollback journal the pages as they were before the last transactions.
"""

from __future__ import annotations

import time
from contextlib import suppress

from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.opening import APPLICATION_ID
from holdfast.domain.errors import CheckpointError, StoreLockedError

_LOOK_SECONDS = 0.001
_EMPTY_LOG = "pragma wal_checkpoint(truncate)"
#: Changes nothing, and is a transaction all the same.
_NOTHING_NEW = f"pragma application_id = {APPLICATION_ID}"


class Scrubber:
    """Knows whether the log may hold what has to go, and empties the journals."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._must_empty_log = False

    def note(self, *, is_urgent: bool = False) -> None:
        """Take in that something was erased, removed or replaced; if it is urgent, empty the log at once.

        That is durable already: a log which cannot be emptied now waits for `scrub`.
        """
        self._must_empty_log = True
        if is_urgent:
            with suppress(CheckpointError):
                self._empty_log()

    def scrub(self) -> None:
        """Empty both journals. If nothing has to go nobody is waited for: what readers need stays in the log.

        Raises:
            StoreLockedError: others read in the log for too long.
        """
        self._empty_journal()
        deadline = time.monotonic() + self._database.busy_seconds
        while not self._empty_log() and self._must_empty_log:
            if time.monotonic() >= deadline:
                raise StoreLockedError(
                    "others read in the write-ahead log, and so it still holds what was erased",
                    place=self._database.path,
                    hint="End what reads for so long, then settle again.",
                )
            time.sleep(_LOOK_SECONDS)

    def _empty_log(self) -> bool:
        """Move the log into the file and cut it off, as far as others let us; answer whether it is empty."""
        # What another thread notes from now on is not forgotten by what is done here.
        had_to, self._must_empty_log = self._must_empty_log, False
        is_empty = False
        try:
            [(is_busy, *_)] = self._database.outside(_EMPTY_LOG)
            is_empty = not is_busy
        finally:
            if had_to and not is_empty:
                self._must_empty_log = True
        return is_empty

    def _empty_journal(self) -> None:
        """Cut off what a rollback journal that is kept still holds of earlier transactions."""
        if files.size_bytes(f"{self._database.path}-journal"):
            with self._database.transaction(leaves_no_journal=True) as transaction:
                transaction.rows(_NOTHING_NEW)
