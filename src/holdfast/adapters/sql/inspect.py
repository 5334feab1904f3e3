"""Looking at the tables as a whole: what is wrong with them, and how much they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.adapters.sql import cutting, rows
from holdfast.adapters.sql.database import NOTHING, Parameters, Reads, Row
from holdfast.adapters.sql.pieces import RECORDS_AT_ONCE, pieces
from holdfast.adapters.sql.trail_check import check_trails
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.ports import Finding

#: What must not be, and the query that finds it; its columns say where.
_RULES = {
    "its record is gone": """
        select workflow_id, sequence from checkpoints where data is null and not pruned
    """,
    "checkpoints before it are gone": """
        select workflow_id, max(sequence) from checkpoints
        group by workflow_id having count(*) <> max(sequence) - min(sequence) + 1
    """,
    "events before it are gone": """
        select workflow_id, max(seq) from events
        group by workflow_id having count(*) <> max(seq) - min(seq) + 1
    """,
    "the events it was made after are gone": """
        select workflow_id, sequence from checkpoints where event_seq > (
            select max(seq) from events where events.workflow_id = checkpoints.workflow_id
        )
    """,
    "a blob it refers to is gone": """
        select workflow_id, sequence from blob_uses
        where not exists (select 1 from blobs where blobs.sha256 = blob_uses.sha256)
    """,
}

_RECORDS = f"""
select workflow_id, {", ".join(cutting.RECORD_NAMES)} from checkpoints
where length(data) <> length and (workflow_id, sequence) > (:workflow_id, :sequence)
order by workflow_id, sequence limit :at_once
"""

_KEYFRAME_NAMES = "select workflow_id, sequence from keyframes order by workflow_id, sequence"
_KEYFRAME = """
select sha256, data from keyframes where workflow_id = :workflow_id and sequence = :sequence
"""
_BLOB_NAMES = "select sha256 from blobs order by sha256"
_BLOB = "select sha256, data from blobs where sha256 = :sha256"

_COUNTS = {
    "workflows": """
        select count(*), 0 from (
            select workflow_id from events union select workflow_id from checkpoints
        ) as ids
    """,
    "checkpoints": """
        select sum(case when pruned then 0 else 1 end), sum(length(data)) from checkpoints
    """,
    "events": "select count(data), sum(length(data)) from events",
    "keyframes": "select count(*), sum(length) from keyframes",
    "blobs": "select count(*), sum(length(data)) from blobs",
    "sessions": "select count(distinct session_id), 0 from audit",
    "audit_entries": "select count(*), sum(length(line) + coalesce(length(payload), 0)) from audit",
    "files": "select count(*), sum(length(data)) from files",
}
#: Those that have no bytes of their own.
_ONLY_COUNTED = ("workflows", "sessions")


def check_tables(database: Reads) -> Iterator[Finding]:
    """Compare what the tables say about each other, and every keyframe and blob with its SHA-256.

    Damage is told, never raised: the rest is looked at all the same.
    """
    for problem, query in _RULES.items():
        for row in _asked(database, query):
            yield row if isinstance(row, Finding) else Finding(f"{row[0]}@{row[1]}", problem)
    yield from _check_lengths(database)
    for row in _asked(database, _KEYFRAME_NAMES):
        if isinstance(row, Finding):
            yield row
        else:
            key = {"workflow_id": row[0], "sequence": row[1]}
            yield from _verify(database, _KEYFRAME, key, f"keyframe {row[0]}@{row[1]}")
    for row in _asked(database, _BLOB_NAMES):
        if isinstance(row, Finding):
            yield row
        else:
            yield from _verify(database, _BLOB, {"sha256": row[0]}, f"blob {row[0]}")
    yield from check_trails(database)


def count_tables(database: Reads) -> dict[str, Any]:
    """Count what is kept and its bytes, by kind."""
    counts: dict[str, Any] = {}
    kinds: dict[str, int] = {}
    for kind, query in _COUNTS.items():
        [(count, size)] = database.rows(query)
        counts[kind] = int(count or 0)
        kinds[kind] = int(size or 0)
    for kind in _ONLY_COUNTED:
        del kinds[kind]
    return {**counts, "bytes": sum(kinds.values()), "kinds": kinds}


def _check_lengths(database: Reads) -> Iterator[Finding]:
    """Find records that are not as long as they were, once the columns beside them are put back."""
    keys = ("workflow_id", "sequence")
    try:
        for name, *row in pieces(database, _RECORDS, NOTHING, keys, ("", 0), RECORDS_AT_ONCE):
            try:
                is_whole = len(rows.read_record(tuple(row), name)) == row[-2]
            except CheckpointCorruptError:
                is_whole = False
            if not is_whole:
                yield Finding(f"{name}@{row[0]}", "its record is cut or too long")
    except CheckpointCorruptError as damage:
        yield Finding(damage.place or "the database", damage.message)


def _asked(database: Reads, query: str) -> list[Row | Finding]:
    """Answer what a query finds, or that it could not be asked."""
    try:
        return [*database.rows(query)]
    except CheckpointCorruptError as damage:
        return [Finding(damage.place or "the database", damage.message)]


def _verify(database: Reads, query: str, key: Parameters, place: str) -> Iterator[Finding]:
    try:
        # It may have been pruned since it was listed.
        for sha256, data in database.rows(query, key):
            rows.verified(data, rows.read_text(sha256, place), place)
    except CheckpointCorruptError as damage:
        yield Finding(place, damage.message)
