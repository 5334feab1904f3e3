"""Leases in PostgreSQL: the clock of the server, locks on rows, and a barrier before the first lease.

A commit locks the row of its workflow's lease, so that a takeover waits for it. Where there has never been a
lease there is no row to lock: one is placed first, and commits that began before it was seen are waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.adapters.postgres import together
from holdfast.adapters.postgres.barrier import await_writers
from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.adapters.sql import leasing
from holdfast.adapters.sql.database import Reads
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.record import Lease

_PLACE = """
insert into leases (workflow_id, owner, token, expires_at, released) values (:workflow_id, '', 0, '', true)
on conflict do nothing
"""

_TOKEN = "select token from leases where workflow_id = :workflow_id"
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

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        self._place(workflow_id)
        return together.atomically(
            self._database,
            audit,
            lambda transaction: leasing.acquire(
                transaction, ServerClock(transaction), workflow_id, owner, ttl_seconds, row_lock=_FOR_UPDATE
            ),
        )

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        return self._database.atomically(
            lambda transaction: leasing.renew(
                transaction, ServerClock(transaction), lease, ttl_seconds, row_lock=_FOR_UPDATE
            )
        )

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        together.atomically(
            self._database,
            audit,
            lambda transaction: leasing.release(transaction, lease),
            is_worth_telling=lambda was_had: was_had,
        )

    def last(self, workflow_id: str) -> Lease | None:
        return leasing.last_lease(self._database, ServerClock(self._database), workflow_id)

    def _place(self, workflow_id: str) -> None:
        """Give commits a row to lock, and wait for those that could not see it yet.

        Until a first lease is granted nobody knows whether whoever placed the row has waited: all do.
        """
        key = {"workflow_id": workflow_id}
        self._database.atomically(lambda transaction: transaction.run(_PLACE, key))
        if self._database.rows(_TOKEN, key) == [(0,)]:
            await_writers(self._database, undone="No lease was granted")
