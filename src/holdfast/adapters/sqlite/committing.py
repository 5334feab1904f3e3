"""The statements of a commit, on the way of which every microsecond counts."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.sql import rows
from holdfast.adapters.sqlite.driver import Connection
from holdfast.domain import lease as leases
from holdfast.domain.record import Commit, Head, Lease, Record
from holdfast.ports import Clock

# Two short questions are answered faster than one that joins them.
_LAST_CHECKPOINT = """
select sequence, checksum from checkpoints where workflow_id = ? order by sequence desc limit 1
"""
_LAST_EVENT = "select seq, hash from events where workflow_id = ? order by seq desc limit 1"
_NONE = [(None, None)]

_LEASE = "select workflow_id, owner, token, expires_at from leases where workflow_id = ? and not released"
_HAS_BLOB = "select 1 from blobs where sha256 = ?"


def _insert(table: str, names: Sequence[str]) -> str:
    return f"insert into {table} ({', '.join(names)}) values ({', '.join('?' for _ in names)})"


_HEADS_MAX = 4096

_EVENT = _insert("events", ("workflow_id", "seq", "timestamp", "hash", "data"))
_CHECKPOINT = _insert("checkpoints", ("workflow_id", *rows.ENTRY_NAMES, "data"))
_KEYFRAME = _insert("keyframes", ("workflow_id", *rows.KEYFRAME_NAMES, "data"))
_BLOB = _insert("blobs", ("sha256", "data")) + " on conflict do nothing"
_USE = _insert("blob_uses", ("sha256", "workflow_id", "sequence", "kind"))

_TRANSITION = """
update checkpoints set status = ?, retry_count = ?, pinned = ? where workflow_id = ? and sequence = ?
"""


class Heads:
    """Where workflows stand, remembered from one commit to the next.

    What is remembered counts while nobody else has changed the database, which SQLite tells: asking for that
    costs a tenth of asking for a head.
    """

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._version = 0
        self._known: dict[str, Head] = {}

    def under(self, connection: Connection) -> None:
        """Take up what is true in the transaction that a connection has just begun."""
        [(version,)] = connection.execute("pragma data_version").fetchall()
        if version != self._version or connection is not self._connection or len(self._known) > _HEADS_MAX:
            self.forget()
            self._version, self._connection = version, connection

    def of(self, connection: Connection, workflow_id: str) -> Head:
        """Answer where a workflow stands."""
        head = self._known.get(workflow_id)
        return head if head is not None else _read_head(connection, workflow_id)

    def note(self, workflow_id: str, head: Head) -> None:
        """Remember where a workflow stands once the transaction is committed."""
        self._known[workflow_id] = head

    def forget(self) -> None:
        """Remember nothing: a transaction was not committed, or others changed something."""
        self._known.clear()
        self._connection = None


def commit_all(
    connection: Connection, commits: Sequence[Commit], heads: Heads, clock: Clock
) -> list[Exception | None]:
    """Write commits in the transaction that a connection has begun; one that is refused leaves no trace."""
    heads.under(connection)
    outcomes = []
    for commit in commits:
        refusal = _refusal(connection, commit, heads, clock)
        if refusal is None:
            _write(connection, commit)
            heads.note(commit.workflow_id, commit.head)
        outcomes.append(refusal)
    return outcomes


def _write(connection: Connection, commit: Commit) -> None:
    workflow_id, execute = commit.workflow_id, connection.execute
    for sha256, data in commit.blobs.items():
        execute(_BLOB, (sha256, data))
    for event in commit.events:
        execute(_EVENT, (workflow_id, event.seq, event.timestamp, event.hash, event.data))
    if commit.record is not None:
        _write_record(connection, workflow_id, commit.record)
    if commit.keyframe is not None:
        entry = commit.keyframe.entry
        execute(_KEYFRAME, (workflow_id, *rows.keyframe_row(entry), commit.keyframe.data))
        _write_uses(connection, workflow_id, entry.sequence, entry.blobs, "keyframe")
    for move in commit.transitions:
        execute(_TRANSITION, (move.status, move.retry_count, move.pinned, workflow_id, move.sequence))


def _write_record(connection: Connection, workflow_id: str, record: Record) -> None:
    entry = record.entry
    # A tombstone out of another store may come without its bytes.
    connection.execute(_CHECKPOINT, (workflow_id, *rows.entry_row(entry), record.data or None))
    if record.data:
        _write_uses(connection, workflow_id, entry.sequence, entry.blobs, "record")


def _write_uses(
    connection: Connection, workflow_id: str, sequence: int, blobs: Sequence[str], kind: str
) -> None:
    if blobs:
        connection.executemany(_USE, [(sha256, workflow_id, sequence, kind) for sha256 in set(blobs)])


def _refusal(connection: Connection, commit: Commit, heads: Heads, clock: Clock) -> Exception | None:
    fenced_off = leases.refusal(commit, _read_lease(connection, commit.workflow_id, clock))
    if fenced_off is not None:
        return fenced_off
    head = heads.of(connection, commit.workflow_id)
    if commit.expected != head:
        return commit.conflict(head)
    for sha256 in commit.needs:
        if sha256 not in commit.blobs and not connection.execute(_HAS_BLOB, (sha256,)).fetchall():
            return rows.no_blob(sha256)
    return None


def _read_head(connection: Connection, workflow_id: str) -> Head:
    checkpoint = connection.execute(_LAST_CHECKPOINT, (workflow_id,)).fetchall()
    event = connection.execute(_LAST_EVENT, (workflow_id,)).fetchall()
    return rows.read_head((*(checkpoint or _NONE)[0], *(event or _NONE)[0]), workflow_id)


def _read_lease(connection: Connection, workflow_id: str, clock: Clock) -> Lease | None:
    found = connection.execute(_LEASE, (workflow_id,)).fetchall()
    return leases.as_of(rows.read_lease(found[0], workflow_id), clock.now()) if found else None
