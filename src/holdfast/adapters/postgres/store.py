"""`PostgresStore`: checkpoints in the PostgreSQL that a team runs, or in one that is started on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from holdfast.adapters.postgres import integrating, removing, space
from holdfast.adapters.postgres.address import read_address
from holdfast.adapters.postgres.committer import Committer
from holdfast.adapters.postgres.connections import Connections
from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.adapters.postgres.leasing import Leases
from holdfast.adapters.set_aside import check_quarantine
from holdfast.adapters.sql import inspect, keyframes
from holdfast.adapters.sql.migrations import migrate, read_migrations, require_current
from holdfast.adapters.sql.reading import Reading
from holdfast.adapters.sql.trail import tree_size
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointError,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from holdfast.domain.quarantine_marks import FOLDER
from holdfast.domain.record import Commit, Keyframe, Lease, Removal
from holdfast.ports import Finding

PACKAGE = "holdfast.adapters.postgres"


class PostgresStore(Reading):
    """A store in one schema of a database. Threads, processes and machines may use it at once.

    The schema is `holdfast`, or what the URL says: `postgresql://host/database?schema=NAME`.
    """

    def __init__(self, database: PostgresDatabase, *, read_only: bool) -> None:
        super().__init__(database)
        self._database = database
        self._read_only = read_only
        self._committer = Committer(database)
        self._leases = Leases(database)
        self._removed_bytes = 0

    @classmethod
    def open(cls, url: str, *, read_only: bool = False, create: bool = True) -> PostgresStore:
        """Open the store that a URL names, or create its tables there.

        Args:
            url: `postgresql://...` as libpq reads it, or `postgresql+embedded:PATH` for a server of our own.
            read_only: Never write; every session is told so, too.
            create: Make the store if there is none.

        Raises:
            ConfigError: the URL cannot be understood.
            CheckpointReadError: the server cannot be reached.
            PermissionDeniedError: it does not let this user in, or not do what is needed.
            StoreNotFoundError: there is no such database; or no store in it, and none is to be created.
            UnsupportedVersionError: the server is too old, or the store too new.
        """
        connections = Connections(read_address(url), read_only=read_only, create=create)
        try:
            database = PostgresDatabase(connections)
            _prepare(database, read_only=read_only, create=create)
        except BaseException:
            connections.close()
            raise
        return cls(database, read_only=read_only)

    @property
    def url(self) -> str:
        return self._database.place

    @property
    def read_only(self) -> bool:
        return self._read_only

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self._writable()
        outcomes = self._committer.commit(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            if commit.erased and outcome is None:
                self._wipe()
                break
        return outcomes

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        self._writable()
        self._database.atomically(
            lambda transaction: keyframes.put_keyframe(
                # A removal that begins now waits, and takes the keyframe along.
                transaction,
                workflow_id,
                keyframe,
                checkpoint=f"{keyframes.CHECKPOINT} for share",
            )
        )

    def remove(self, workflow_id: str, removal: Removal) -> int:
        self._writable()
        freed_bytes = removing.remove(self._database, workflow_id, removal)
        self._removed_bytes += freed_bytes
        return freed_bytes

    def integrate(self) -> int:
        """As promised; who may only read is told how far others got."""
        return tree_size(self._database) if self._read_only else integrating.integrate(self._database)

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        self._writable()
        return self._leases.acquire(workflow_id, owner, ttl_seconds, audit)

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        self._writable()
        return self._leases.renew(lease, ttl_seconds)

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        self._writable()
        self._leases.release(lease, audit)

    def lease(self, workflow_id: str) -> Lease | None:
        return self._leases.last(workflow_id)

    def check(self) -> Iterator[Finding]:
        yield from inspect.check_tables(self._database.scans())
        yield from check_quarantine(self.files(FOLDER), self.file)
        [(fsync,)] = self._database.rows("select current_setting('fsync')")
        if fsync != "on":
            yield Finding("fsync", "is off on the server: a crash may lose what was acknowledged", harm=False)

    def stats(self) -> dict[str, Any]:
        return {**inspect.count_tables(self._database.scans()), **space.sizes(self._database)}

    def settle(self) -> None:
        """Give back the room of what was removed here; without removals there is nothing to do."""
        if self._removed_bytes < space.WORTH_VACUUMING_BYTES or self._read_only:
            self._database.rows("select 1")
            return
        self._removed_bytes = 0
        space.vacuum(self._database)

    def close(self) -> None:
        # A server that is away by now cannot be settled; autovacuum will do it.
        try:
            with suppress(CheckpointError):
                if self._removed_bytes:
                    self.settle()
        finally:
            self._database.connections.close()

    def _wipe(self) -> None:
        """Have the room of erased payloads freed at once, as far as the server lets it be."""
        with suppress(CheckpointError):
            space.vacuum(self._database, ("audit",))

    def _writable(self) -> None:
        if self._read_only:
            raise StoreReadOnlyError("the store was opened for reading", place=self.url)


def _prepare(database: PostgresDatabase, *, read_only: bool, create: bool) -> None:
    """Bring the schema up to date, or refuse what cannot be used as it is."""
    known = read_migrations(PACKAGE)
    applied = database.applied()
    if not applied and (read_only or not create):
        raise StoreNotFoundError(
            "there is no store in the database", place=database.place, hint="Run `holdfast init`."
        )
    if read_only:
        require_current(known, applied, database.place)
    else:
        migrate(database, known, now=datetime.now(UTC), place=database.place)
