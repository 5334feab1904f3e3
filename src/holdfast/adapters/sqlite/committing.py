"""The statements of a commit, on the way of which every microsecond counts."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.sql import cutting, rows, trail
from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.heads import Heads
from holdfast.adapters.sqlite.transaction import SqliteTransaction
from holdfast.adapters.wrong_bytes import WRONG_BLOB, evidence
from holdfast.domain import lease as leases
from holdfast.domain.errors import InvalidStateError, UnstorableValueError
from holdfast.domain.record import NO_WORKFLOW, Commit, Entry, KeyframeEntry
from holdfast.ports import Clock

_HAS_BLOB = "select 1 from blobs where sha256 = ?"


def _insert(table: str, names: Sequence[str]) -> str:
    return f"insert into {table} ({', '.join(names)}) values ({', '.join('?' for _ in names)})"


_EVENT = _insert("events", ("workflow_id", "seq", "timestamp", "hash", "data"))
_CHECKPOINT = _insert("checkpoints", ("workflow_id", *rows.ENTRY_NAMES, "data"))
_KEYFRAME = _insert("keyframes", ("workflow_id", *rows.KEYFRAME_NAMES, "data"))
_BLOB = _insert("blobs", ("sha256", "data"))
_STORED_BLOB = "select data from blobs where sha256 = ?"
_MEND_BLOB = "update blobs set data = ? where sha256 = ?"
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
    connection, workflow_id = transaction.connection, commit.workflow_id
    refusal = _refusal(transaction, commit, heads, clock)
    if refusal is not None:
        return refusal
    try:
        records = heads.chain(connection, commit.audit) if commit.audit else ()
    except (InvalidStateError, UnstorableValueError) as problem:
        return problem
    if workflow_id != NO_WORKFLOW:
        _write(transaction, commit)
        heads.note(workflow_id, commit.head)
    if records:
        heads.append(connection, records)
    if commit.files or commit.erased:
        trail.keep_files(transaction, commit)
    return None


def _write(transaction: SqliteTransaction, commit: Commit) -> None:
    connection, workflow_id = transaction.connection, commit.workflow_id
    execute = connection.execute
    for sha256, data in commit.blobs.items():
        _write_blob(transaction, sha256, data)
    for event in commit.events:
        cut = cutting.cut_event(workflow_id, event)
        execute(_EVENT, (workflow_id, event.seq, event.timestamp, event.hash, cut))
    record, keyframe = commit.record, commit.keyframe
    if record is not None:
        entry = record.entry
        # A tombstone out of another store may come without its bytes.
        cut_or_none = cutting.cut_record(workflow_id, record) or None
        execute(_CHECKPOINT, (workflow_id, *rows.entry_row(entry), cut_or_none))
        if entry.blobs and record.data:
            _write_uses(connection, workflow_id, entry, "record")
    if keyframe is not None:
        execute(_KEYFRAME, (workflow_id, *rows.keyframe_row(keyframe.entry), keyframe.data))
        if keyframe.entry.blobs:
            _write_uses(connection, workflow_id, keyframe.entry, "keyframe")
    for move in commit.transitions:
        execute(_TRANSITION, (move.status, move.retry_count, move.pinned, workflow_id, move.sequence))


def _write_blob(transaction: SqliteTransaction, sha256: str, data: bytes) -> None:
    """Keep a blob once; one that is there and is not what it is called is set aside for it."""
    execute = transaction.connection.execute
    found = execute(_STORED_BLOB, (sha256,)).fetchall()
    if not found:
        execute(_BLOB, (sha256, data))
    elif found[0][0] != data:
        for name, wrong in evidence(f"blob {sha256}", WRONG_BLOB, bytes(found[0][0])).items():
            transaction.run(trail.PUT_FILE, {"name": name, "data": wrong})
        execute(_MEND_BLOB, (data, sha256))


def _write_uses(connection: Connection, workflow_id: str, entry: Entry | KeyframeEntry, kind: str) -> None:
    uses = [(sha256, workflow_id, entry.sequence, kind) for sha256 in set(entry.blobs)]
    connection.executemany(_USE, uses)


def _refusal(transaction: SqliteTransaction, commit: Commit, heads: Heads, clock: Clock) -> Exception | None:
    if commit.files or commit.expected_files:
        refusal = trail.file_refusal(transaction, commit)
        if refusal is not None:
            return refusal
    connection, workflow_id = transaction.connection, commit.workflow_id
    if workflow_id == NO_WORKFLOW:
        return None
    lease = heads.lease(connection, workflow_id)
    if lease is not None or commit.token:
        # Whether it has expired matters only to who shows no token.
        fenced_off = leases.refusal(
            commit, lease if lease is None or commit.token else leases.as_of(lease, clock.now())
        )
        if fenced_off is not None:
            return fenced_off
    head = heads.of(connection, workflow_id)
    if commit.expected != head:
        return commit.conflict(head)
    for sha256 in commit.needs:
        if sha256 not in commit.blobs and not connection.execute(_HAS_BLOB, (sha256,)).fetchall():
            return rows.no_blob(sha256)
    return None
