"""Audit trails, the order of the tree, and the store's own small files, in tables.

A session's head is its last row. `leaf` is the place of an entry in the tree, NULL while it has none. The
payload lies in a column of its own: once it is NULL, the line and every proof of it are as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.adapters.sql import cutting, rows
from holdfast.adapters.sql.database import Database, Parameters, Reads, Row, Transaction
from holdfast.adapters.sql.pieces import LISTED_AT_ONCE, pieces
from holdfast.domain.audit_entry import AuditRecord, TrailHead
from holdfast.domain.errors import InvalidIdError
from holdfast.domain.ids import check_file_name
from holdfast.domain.record import Commit

#: Columns of `audit`, in the order of `audit_row`.
AUDIT_NAMES = (
    "session_id",
    "seq",
    "timestamp",
    "type",
    "workflow_id",
    "hash",
    "line",
    "payload",
    "leaf",
)

INSERT_ENTRY = f"""
insert into audit ({", ".join(AUDIT_NAMES)}) values ({", ".join(f":{name}" for name in AUDIT_NAMES)})
"""

ERASE_PAYLOAD = """
update audit set payload = null where session_id = :session_id and seq = :seq and payload is not null
"""

PUT_FILE = """
insert into files (name, data) values (:name, :data) on conflict (name) do update set data = excluded.data
"""

DROP_FILE = "delete from files where name = :name"

FILE = "select data from files where name = :name"

TRAIL_HEAD = """
select seq, hash, timestamp, type from audit where session_id = :session_id order by seq desc limit 1
"""

# Jumping from one id to the next reads as many rows as there are sessions, not as there are entries.
_SESSIONS = """
with recursive ids(id) as (
    select min(session_id) from audit
    union all
    select (select min(session_id) from audit where session_id > ids.id) from ids where ids.id is not null
)
select id from ids where id is not null
"""

_LINE = ", ".join(cutting.LINE_NAMES)

_TRAIL = f"""
select seq, {_LINE} from audit
where session_id = :session_id and seq > :after order by seq limit :at_once
"""

_PAYLOAD = "select payload from audit where session_id = :session_id and seq = :seq"

_PLACE = "select leaf from audit where session_id = :session_id and seq = :seq"

_TREE_SIZE = "select max(leaf) from audit"

_LEAVES = f"select leaf, {_LINE} from audit where leaf > :after order by leaf limit :at_once"

_WAITING = f"""
select {_LINE} from audit
where leaf is null and (session_id, seq) > (:session_id, :seq)
order by session_id, seq limit :at_once
"""

_FILES = """
select name from files where name > :after and name >= :prefix and name < :beyond
order by name limit :at_once
"""


class TrailReading:
    """Reads trails, the tree's leaves and files of the store out of the tables."""

    def __init__(self, database: Database) -> None:
        self._tables = database

    def trail_head(self, session_id: str) -> TrailHead:
        return read_trail_head(self._tables, session_id)

    def sessions(self) -> Iterator[str]:
        found = self._tables.rows(_SESSIONS)
        return iter([rows.read_text(row[0], "the list of sessions") for row in found])

    def trail(self, session_id: str, *, after: int = 0) -> Iterator[bytes]:
        wanted = {"session_id": session_id}
        for _, *row in pieces(self._tables, _TRAIL, wanted, ("after",), (after,), LISTED_AT_ONCE):
            yield rows.read_line(tuple(row))

    def payload(self, session_id: str, seq: int) -> bytes | None:
        found = self._tables.rows(_PAYLOAD, {"session_id": session_id, "seq": seq})
        if not found or found[0][0] is None:
            return None
        return rows.read_bytes(found[0][0], f"payload of audit entry {seq} of session {session_id}")

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        for _, *row in pieces(self._tables, _LEAVES, {}, ("after",), (after - 1,), LISTED_AT_ONCE):
            yield rows.read_line(tuple(row))

    def waiting(self) -> Iterator[bytes]:
        keys = ("session_id", "seq")
        for row in pieces(self._tables, _WAITING, {}, keys, ("", 0), LISTED_AT_ONCE):
            yield rows.read_line(row)

    def place(self, session_id: str, seq: int) -> int | None:
        found = self._tables.rows(_PLACE, {"session_id": session_id, "seq": seq})
        if not found or found[0][0] is None:
            return None
        return rows.read_whole(found[0][0], f"audit entry {seq} of session {session_id}")

    def file(self, name: str) -> bytes | None:
        return read_file(self._tables, check_file_name(name))

    def files(self, prefix: str) -> Iterator[str]:
        span = {"prefix": prefix, "beyond": prefix + rows.LAST_CHARACTER}
        for (name,) in pieces(self._tables, _FILES, span, ("after",), ("",), LISTED_AT_ONCE):
            yield rows.read_text(name, "the list of files")


def read_trail_head(reads: Reads, session_id: str) -> TrailHead:
    """Answer where the trail of a session stands."""
    found = reads.rows(TRAIL_HEAD, {"session_id": session_id})
    return rows.read_trail_head(found[0], session_id) if found else TrailHead(session_id)


def read_file(reads: Reads, name: str) -> bytes | None:
    """Answer what a file of the store holds, None if there is none."""
    found = reads.rows(FILE, {"name": name})
    return rows.read_bytes(found[0][0], name) if found else None


def tree_size(reads: Reads) -> int:
    """Count the entries that have their place in the tree."""
    [(last,)] = reads.rows(_TREE_SIZE)
    return 0 if last is None else rows.read_whole(last, "the last leaf of the tree") + 1


def audit_row(record: AuditRecord, leaf: int | None = None) -> Row:
    """Write an entry as the values of `AUDIT_NAMES`."""
    head = record.head
    return (
        head.session_id,
        head.seq,
        head.timestamp,
        record.type,
        record.workflow_id,
        head.hash,
        cutting.cut_line(record),
        record.payload or None,
        leaf,
    )


def audit_parameters(record: AuditRecord, leaf: int | None = None) -> Parameters:
    """Write an entry as the parameters of `INSERT_ENTRY`."""
    return dict(zip(AUDIT_NAMES, audit_row(record, leaf), strict=True))


def append(transaction: Transaction, records: Sequence[AuditRecord], leaf: int | None = None) -> None:
    """Append chained entries to their trails, and from a given leaf on to the tree."""
    for at, record in enumerate(records):
        place = None if leaf is None else leaf + at
        transaction.run(INSERT_ENTRY, audit_parameters(record, place))


def keep_files(transaction: Transaction, commit: Commit) -> None:
    """Replace and remove the files, and erase the payloads, that a commit names."""
    for name, data in commit.files.items():
        if data is None:
            transaction.run(DROP_FILE, {"name": name})
        else:
            transaction.run(PUT_FILE, {"name": name, "data": data})
    for session_id, seq in commit.erased:
        transaction.run(ERASE_PAYLOAD, {"session_id": session_id, "seq": seq})


def file_refusal(reads: Reads, commit: Commit) -> Exception | None:
    """Say why the files of a commit cannot be what it wants; None if they can."""
    try:
        for name in (*commit.files, *commit.expected_files):
            check_file_name(name)
    except InvalidIdError as problem:
        return problem
    for name, data in commit.expected_files.items():
        if read_file(reads, name) != data:
            return commit.file_conflict(name)
    return None
