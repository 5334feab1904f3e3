"""Looking at the table of audit entries: is each where it belongs, and what its line says it is.

Whether lines follow each other is not asked here: that, and what is signed, `holdfast audit verify` tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.adapters.sql import cutting, rows
from holdfast.adapters.sql.database import NOTHING, Reads, Row
from holdfast.adapters.sql.pieces import RECORDS_AT_ONCE, pieces
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.domain.payload import commitment
from holdfast.domain.trail import read_fields
from holdfast.ports import Finding

#: What must not be, and the query that finds it; its columns say where.
_RULES = {
    "entries of its session before it are gone": """
        select session_id, max(seq) from audit
        group by session_id having count(*) <> max(seq) or min(seq) <> 1
    """,
    "places of the tree before it are empty": """
        select session_id, seq from audit
        where leaf = (select max(leaf) from audit)
        and ((select count(leaf) from audit) <> leaf + 1 or (select min(leaf) from audit) <> 0)
    """,
    "it stands in the tree before an entry of its session that came earlier": """
        select later.session_id, later.seq from audit as later
        join audit as earlier on earlier.session_id = later.session_id and earlier.seq = later.seq - 1
        where later.leaf < earlier.leaf or (later.leaf is not null and earlier.leaf is null)
    """,
}

_ENTRIES = f"""
select {", ".join(cutting.LINE_NAMES)}, payload from audit
where (session_id, seq) > (:session_id, :seq) order by session_id, seq limit :at_once
"""
_FIELDS = ("session", "seq", "ts", "type", "workflow", "hash")


def check_trails(database: Reads) -> Iterator[Finding]:
    """Compare the rows of all trails with each other, with their lines, and payloads with their commitments.

    Damage is told, never raised.
    """
    for problem, query in _RULES.items():
        try:
            for session_id, seq in database.rows(query):
                yield Finding(_place(session_id, seq), problem)
        except CheckpointCorruptError as damage:
            yield Finding(damage.place or "the database", damage.message)
    try:
        for row in pieces(database, _ENTRIES, NOTHING, ("session_id", "seq"), ("", 0), RECORDS_AT_ONCE):
            problem = _problem(row)
            if problem:
                yield Finding(_place(row[0], row[1]), problem)
    except CheckpointCorruptError as damage:
        yield Finding(damage.place or "the database", damage.message)


def _problem(row: Row) -> str:
    """Say what is wrong with an entry; empty if nothing is."""
    *columns, _, payload = row
    try:
        fields = read_fields(rows.read_line(row[:-1]))
        stored = None if payload is None else rows.read_bytes(payload, "the payload")
    except CheckpointError as damage:
        return damage.message
    if columns != [fields.get(name) for name in _FIELDS]:
        return "its columns are not what its line says"
    if stored is not None and commitment(stored) != fields.get("data", {}).get("payload"):
        return "its payload is not the one it commits to"
    return ""


def _place(session_id: object, seq: object) -> str:
    return f"audit entry {seq} of session {session_id}"
