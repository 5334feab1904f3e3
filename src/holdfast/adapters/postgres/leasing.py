"""Leases in PostgreSQL: the clock of the server, locks on rows, and a barrier before the first lease.

A commit locks the row of its workflow's lease, so that a takeover waits for it. Where there has never been a
lease there is no row to lock: one is placed first, and commits that began before it was seen are waited for.
"""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.adapters.sql import leasing
from holdfast.adapters.sql.database import Reads
from holdfast.domain.errors import StoreLockedError
from holdfast.domain.record import Lease

_PLACE = """
insert into leases (workflow_id, owner, token, expires_at, released) values (:workflow_id, '', 0, '', true)
on conflict do nothing
"""

# Whoever writes events holds this lock, from before its snapshot is taken until its transaction has ended.
_WRITERS = """
select virtualtransaction from pg_locks
where locktype = 'relation' and relation = to_regclass('events') and mode = 'RowExclusiveLock'
and database = (select oid from pg_database where datname = current_database())
"""

_FOR_UPDATE = "for update"


class ServerClock:
    """The time of the server, within a transaction or outside."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads

    def now(self) -> datetime:
        [(now,)] = self._reads.rows("select clock_timestamp()")
        moment: datetime = now
        return moment.astimezone(UTC)


class Leases:
    """Grants, renews and takes back leases."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def acquire(self, workflow_id: str, owner: str, ttl_seconds: float) -> Lease:
        self._place(workflow_id)
        return self._database.atomically(
            lambda transaction: leasing.acquire(
                transaction, ServerClock(transaction), workflow_id, owner, ttl_seconds, row_lock=_FOR_UPDATE
            )
        )

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        return self._database.atomically(
            lambda transaction: leasing.renew(
                transaction, ServerClock(transaction), lease, ttl_seconds, row_lock=_FOR_UPDATE
            )
        )

    def release(self, lease: Lease) -> None:
        self._database.atomically(lambda transaction: leasing.release(transaction, lease))

    def last(self, workflow_id: str) -> Lease | None:
        return leasing.last_lease(self._database, ServerClock(self._database), workflow_id)

    def _place(self, workflow_id: str) -> None:
        """Give commits a row to lock, and wait for those that could not see it yet."""
        key = {"workflow_id": workflow_id}
        if not self._database.atomically(lambda transaction: transaction.run(_PLACE, key)):
            return
        deadline = self._database.connections.deadline()
        waited_for = {name for (name,) in self._database.rows(_WRITERS)}
        while waited_for:
            if deadline.is_over:
                raise StoreLockedError(
                    "a client has been in the middle of a transaction for long",
                    place=self._database.place,
                    hint="No lease was granted: end that transaction and try again.",
                )
            deadline.pause()
            waited_for &= {name for (name,) in self._database.rows(_WRITERS)}
