"""The statements of a commit, on the way of which every microsecond counts."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.sql import cutting, rows, trail
from holdfast.adapters.sqlite.database import SqliteTransaction
from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.heads import Heads
from holdfast.domain import lease as leases
from holdfast.domain.errors import InvalidStateError, UnstorableValueError
from holdfast.domain.record import NO_WORKFLOW, Commit, Record
from holdfast.ports import Clock

_HAS_BLOB = "select 1 from blobs where sha256 = ?"


def _insert(table: str, names: Sequence[str]) -> str:
    return f"insert into {table} ({', '.join(names)}) values ({', '.join('?' for _ in names)})"


_EVENT = _insert("events", ("workflow_id", "seq", "timestamp", "hash", "data"))
_CHECKPOINT = _insert("checkpoints", ("workflow_id", *rows.ENTRY_NAMES, "data"))
_KEYFRAME = _insert("keyframes", ("workflow_id", *rows.KEYFRAME_NAMES, "data"))
_BLOB = _insert("blobs", ("sha256", "data")) + " on conflict do nothing"
_USE = _insert("blob_uses", ("sha256", "workflow_id", "sequence", "kind"))

_TRANSITION = """
update checkpoints set status = ?, retry_count = ?, pinned = ? where workflow_id = ? and sequence = ?
"""


def commit_all(
    transaction: SqliteTransaction, commits: Sequence[Commit], heads: Heads, clock: Clock
) -> list[Exception | None]:
    """Write commits in a transaction that has begun; one that is refused leaves no trace."""
    heads.under(transaction)
    return [_commit_one(transaction, commit, heads, clock) for commit in commits]


def _commit_one(
    transaction: SqliteTransaction, commit: Commit, heads: Heads, clock: Clock
) -> Exception | None:
    connection = transaction.connection
    refusal = _refusal(transaction, commit, heads, clock)
    if refusal is not None:
        return refusal
    try:
        records = heads.chain(connection, commit.audit)
    except (InvalidStateError, UnstorableValueError) as problem:
        return problem
    if commit.workflow_id != NO_WORKFLOW:
        _write(connection, commit)
        heads.note(commit.workflow_id, commit.head)
    heads.append(connection, records)
    if commit.files or commit.erased:
        trail.keep_files(transaction, commit)
    return None


def _write(connection: Connection, commit: Commit) -> None:
    workflow_id, execute = commit.workflow_id, connection.execute
    for sha256, data in commit.blobs.items():
        execute(_BLOB, (sha256, data))
    for event in commit.events:
        execute(
            _EVENT,
            (workflow_id, event.seq, event.timestamp, event.hash, cutting.cut_event(workflow_id, event)),
        )
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
    data = cutting.cut_record(workflow_id, record) or None
    connection.execute(_CHECKPOINT, (workflow_id, *rows.entry_row(entry), data))
    if record.data:
        _write_uses(connection, workflow_id, entry.sequence, entry.blobs, "record")


def _write_uses(
    connection: Connection, workflow_id: str, sequence: int, blobs: Sequence[str], kind: str
) -> None:
    if blobs:
        connection.executemany(_USE, [(sha256, workflow_id, sequence, kind) for sha256 in set(blobs)])


def _refusal(transaction: SqliteTransaction, commit: Commit, heads: Heads, clock: Clock) -> Exception | None:
    if commit.files or commit.expected_files:
        refusal = trail.file_refusal(transaction, commit)
        if refusal is not None:
            return refusal
    if commit.workflow_id == NO_WORKFLOW:
        return None
    connection = transaction.connection
    lease = heads.lease(connection, commit.workflow_id)
    if lease is not None and not commit.token:
        # Only then it matters whether it has expired.
        lease = leases.as_of(lease, clock.now())
    fenced_off = leases.refusal(commit, lease)
    if fenced_off is not None:
        return fenced_off
    head = heads.of(connection, commit.workflow_id)
    if commit.expected != head:
        return commit.conflict(head)
    for sha256 in commit.needs:
        if sha256 not in commit.blobs and not connection.execute(_HAS_BLOB, (sha256,)).fetchall():
            return rows.no_blob(sha256)
    return None
