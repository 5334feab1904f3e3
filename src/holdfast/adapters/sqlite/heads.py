"""Where workflows, their leases, trails and the tree stand, remembered from one commit to the next."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.sql import rows, trail
from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.transaction import SqliteTransaction
from holdfast.domain import trail as trails
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.record import Head, Lease

_HEADS_MAX = 4096

# Two short questions are answered faster than one that joins them.
_LAST_CHECKPOINT = """
select sequence, checksum from checkpoints where workflow_id = ? order by sequence desc limit 1
"""
_LAST_EVENT = "select seq, hash from events where workflow_id = ? order by seq desc limit 1"
_NONE = [(None, None)]
_LEASE = "select workflow_id, owner, token, expires_at from leases where workflow_id = ? and not released"

_LAST_ENTRY = "select seq, hash, timestamp, type from audit where session_id = ? order by seq desc limit 1"
_LAST_LEAF = "select leaf from audit order by leaf desc limit 1"
_ENTRY = (
    f"insert into audit ({', '.join(trail.AUDIT_NAMES)}) values ({', '.join('?' * len(trail.AUDIT_NAMES))})"
)


class Heads:
    """Knows heads.

    What is remembered counts while nobody else has changed the database, which SQLite tells: asking for that
    costs a tenth of asking for a head. Whoever changes a lease through the same connection says so.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._version = 0
        self._workflows: dict[str, Head] = {}
        #: The last lease granted and not released, whether it has expired or not.
        self._leases: dict[str, Lease | None] = {}
        self._trails: dict[str, TrailHead] = {}
        #: How many leaves the tree has, once that was asked.
        self._leaves: int | None = None

    def under(self, transaction: SqliteTransaction) -> None:
        """Take up what is true in a transaction that has just begun."""
        connection, version = transaction.connection, transaction.version
        is_full = max(len(self._workflows), len(self._leases), len(self._trails)) > _HEADS_MAX
        if version != self._version or connection is not self._connection or is_full:
            self.forget()
            self._version, self._connection = version, connection

    def forget(self) -> None:
        """Remember nothing: a transaction was not committed, or others changed something."""
        self._workflows.clear()
        self._leases.clear()
        self._trails.clear()
        self._leaves = None
        self._connection = None

    # -- workflows ---------------------------------------------------------------------------

    def of(self, connection: Connection, workflow_id: str) -> Head:
        """Answer where a workflow stands."""
        head = self._workflows.get(workflow_id)
        return head if head is not None else _read_head(connection, workflow_id)

    def note(self, workflow_id: str, head: Head) -> None:
        """Remember where a workflow stands once the transaction is committed."""
        self._workflows[workflow_id] = head

    def lease(self, connection: Connection, workflow_id: str) -> Lease | None:
        """Answer the last lease of a workflow that was not released; whether it is live is not told by it."""
        if workflow_id not in self._leases:
            self._leases[workflow_id] = _read_lease(connection, workflow_id)
        return self._leases[workflow_id]

    def forget_lease(self, workflow_id: str) -> None:
        """Ask again: the lease is changed in the transaction that has begun."""
        self._leases.pop(workflow_id, None)

    # -- trails ------------------------------------------------------------------------------

    def chain(self, connection: Connection, entries: Sequence[AuditEntry]) -> list[AuditRecord]:
        """Write entries as the lines that follow in their sessions.

        Raises:
            InvalidStateError, UnstorableValueError: one of them cannot be written.
        """

        def head_of(session_id: str) -> TrailHead:
            return self._trails.get(session_id) or _read_trail_head(connection, session_id)

        return trails.chain(entries, head_of)

    def append(self, connection: Connection, records: Sequence[AuditRecord]) -> None:
        """Store lines that were just chained, each at the end of its trail and of the tree."""
        leaf = _count_leaves(connection) if self._leaves is None else self._leaves
        for record in records:
            connection.execute(_ENTRY, trail.audit_row(record, leaf))
            self._trails[record.head.session_id] = record.head
            leaf += 1
        self._leaves = leaf

    def tell(self, transaction: SqliteTransaction, entries: Sequence[AuditEntry]) -> None:
        """Chain and store entries in a transaction that has just begun."""
        if entries:
            self.under(transaction)
            connection = transaction.connection
            self.append(connection, self.chain(connection, entries))


def _read_head(connection: Connection, workflow_id: str) -> Head:
    checkpoint = connection.execute(_LAST_CHECKPOINT, (workflow_id,)).fetchall()
    event = connection.execute(_LAST_EVENT, (workflow_id,)).fetchall()
    return rows.read_head((*(checkpoint or _NONE)[0], *(event or _NONE)[0]), workflow_id)


def _read_lease(connection: Connection, workflow_id: str) -> Lease | None:
    found = connection.execute(_LEASE, (workflow_id,)).fetchall()
    return rows.read_lease(found[0], workflow_id) if found else None


def _read_trail_head(connection: Connection, session_id: str) -> TrailHead:
    found = connection.execute(_LAST_ENTRY, (session_id,)).fetchall()
    return rows.read_trail_head(found[0], session_id) if found else TrailHead(session_id)


def _count_leaves(connection: Connection) -> int:
    found = connection.execute(_LAST_LEAF).fetchall()
    return rows.read_whole(found[0][0], "the last leaf of the tree") + 1 if found else 0
