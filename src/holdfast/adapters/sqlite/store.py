"""`SqliteStore`: everything in one SQLite file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Self

from holdfast.adapters.sql import leasing, removing
from holdfast.adapters.sql.keyframes import put_keyframe
from holdfast.adapters.sql.reading import Reading
from holdfast.adapters.sql.trail import tree_size
from holdfast.adapters.sqlite import driver as drivers
from holdfast.adapters.sqlite import files, opening
from holdfast.adapters.sqlite.committing import commit_all
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.driver import Driver
from holdfast.adapters.sqlite.heads import Heads
from holdfast.adapters.sqlite.journaling import ROLLBACK, JournalChoice
from holdfast.adapters.sqlite.reclaiming import DROP_RECORDS, free_bytes, reclaim
from holdfast.adapters.sqlite.scrubbing import Scrubber
from holdfast.adapters.system import SystemClock
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    InvalidIdError,
    StateTooLargeError,
    UnstorableValueError,
)
from holdfast.domain.record import Commit, Keyframe, Lease, Removal
from holdfast.ports import Clock, Finding

BUSY_SECONDS = 30.0
#: What a removal and a closing reclaim themselves; the rest waits for `settle`.
_STEPS_AFTER_REMOVAL = 4
_STEPS_AT_CLOSING = 64
_PROBLEMS_MAX = 100

#: What is wrong with one commit, and not with the database: those beside it are kept.
_OWN_FAULTS = (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidIdError,
    StateTooLargeError,
    UnstorableValueError,
)


class SqliteStore(Reading):
    """A store in one SQLite file. Several threads and processes may use it at once.

    A call of `commit` is one transaction. Reads do not wait for writers where there is a write-ahead log.
    """

    def __init__(self, database: SqliteDatabase, journal: JournalChoice, clock: Clock) -> None:
        super().__init__(database)
        self._database = database
        self._journal = journal
        self._clock = clock
        self._heads = Heads()
        database.when_rolled_back = self._heads.forget
        self._scrubber = Scrubber(database)
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str,
        *,
        read_only: bool = False,
        create: bool = True,
        journal_mode: str | None = None,
        driver: Driver | None = None,
        busy_seconds: float = BUSY_SECONDS,
        clock: Clock | None = None,
    ) -> Self:
        """Open the store in a file, or create one there.

        Args:
            path: The file.
            read_only: Never write: for copies and for readers without permission.
            create: Make the store if there is none.
            journal_mode: `wal` or `rollback`; by default what is safe with this SQLite. A log is given up
                only while nobody else has the file open; a change to one is not hindered by others who are
                idle, and those whose SQLite must not write a log are refused from then on.
            driver: Another way to SQLite than the best one installed.
            busy_seconds: How long to wait while others hold the database.
            clock: What leases are measured by; the machine's by default.

        Raises:
            StoreNotFoundError: there is no store, and none is to be created.
            CheckpointCorruptError: the file is no store.
            UnsupportedVersionError: a newer Holdfast made it.
        """
        driver = driver or drivers.best()
        clock = clock or SystemClock()
        opening.require_version(driver)
        # SQLite keeps its journal beside the file itself, not beside a link to it.
        path = os.path.realpath(path)
        if create and not read_only:
            files.create(path)
        files.require(path)
        database = SqliteDatabase(path, driver, read_only=read_only, busy_seconds=busy_seconds)
        try:
            journal = opening.prepare(database, create=create, asked=journal_mode, now=clock.now())
        except BaseException:
            database.close()
            raise
        return cls(database, journal, clock)

    # -- state of this opening ---------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"sqlite:{self._database.path}"

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    @property
    def journal(self) -> JournalChoice:
        """Which journal the database is used with, and why."""
        return self._journal

    # -- writing -----------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        erases = any([commit.erased for commit in commits])
        try:
            with self._database.transaction(leaves_no_journal=erases) as transaction:
                outcomes = commit_all(transaction, commits, self._heads, self._clock)
        except _OWN_FAULTS as problem:
            # Nothing was kept. The one at fault is found by trying each on its own.
            return [problem] if len(commits) == 1 else [self.commit([commit])[0] for commit in commits]
        if erases or any([commit.files for commit in commits]):
            self._scrubber.note(is_urgent=erases)
        return outcomes

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        with self._database.transaction() as transaction:
            put_keyframe(transaction, workflow_id, keyframe)

    def remove(self, workflow_id: str, removal: Removal) -> int:
        with self._database.transaction() as transaction:
            freed_bytes = removing.remove(transaction, workflow_id, removal, drop_records=DROP_RECORDS)
            self._heads.tell(transaction, removal.audit)
        self._scrubber.note()
        with suppress(CheckpointError):
            # The removal is durable; what cannot be reclaimed now waits for the next time.
            reclaim(self._database, steps_max=_STEPS_AFTER_REMOVAL)
        return freed_bytes

    # -- leases ------------------------------------------------------------------------------

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        with self._database.transaction() as transaction:
            self._heads.forget_lease(workflow_id)
            lease = leasing.acquire(transaction, self._clock, workflow_id, owner, ttl_seconds)
            self._heads.tell(transaction, audit)
            return lease

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        with self._database.transaction() as transaction:
            self._heads.forget_lease(lease.workflow_id)
            return leasing.renew(transaction, self._clock, lease, ttl_seconds)

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        with self._database.transaction() as transaction:
            self._heads.forget_lease(lease.workflow_id)
            if leasing.release(transaction, lease):
                self._heads.tell(transaction, audit)

    def lease(self, workflow_id: str) -> Lease | None:
        return leasing.last_lease(self._database, self._clock, workflow_id)

    # -- the tree ----------------------------------------------------------------------------

    def integrate(self) -> int:
        # Commits have one order here, and each has put its entries in their place.
        return tree_size(self._database)

    # -- looking after itself ----------------------------------------------------------------

    def check(self) -> Iterator[Finding]:
        yield from self._check_pages()
        yield from super().check()

    def _check_pages(self) -> Iterator[Finding]:
        try:
            for (said,) in self._database.rows(f"pragma integrity_check({_PROBLEMS_MAX})"):
                if said != "ok":
                    yield Finding(self._database.path, str(said))
        except CheckpointCorruptError as damage:
            yield Finding(self._database.path, damage.message)

    def stats(self) -> dict[str, Any]:
        counts = super().stats()
        path = self._database.path
        return {
            "url": self.url,
            "sqlite": self._database.driver.title,
            "journal_mode": self._journal.mode,
            "journal_reason": self._journal.reason,
            **counts,
            "data_bytes": counts["bytes"],
            "bytes": sum(files.size_bytes(path + ending) for ending in ("", "-wal", "-journal")),
            "reclaimable_bytes": free_bytes(self._database),
        }

    def settle(self) -> None:
        reclaim(self._database)
        self._scrubber.scrub()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._database.is_writing:
            with suppress(CheckpointError):
                self._tidy_up()
        self._database.close()

    def _tidy_up(self) -> None:
        reclaim(self._database, steps_max=_STEPS_AT_CLOSING)
        if self._journal.mode == ROLLBACK:
            # Remove the kept journal, unless others are in the way: nobody is made to wait for that.
            self._database.outside("pragma journal_mode = delete", wait_seconds=0)
