"""The reading half of a store, over any SQL database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.adapters.sql import cutting, inspect, rows
from holdfast.adapters.sql.database import Parameters, Row
from holdfast.adapters.sql.evidence import evidence
from holdfast.adapters.sql.pieces import LISTED_AT_ONCE, RECORDS_AT_FIRST, RECORDS_AT_ONCE, pieces
from holdfast.adapters.sql.trail import TrailReading
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.quarantine_marks import FOLDER
from holdfast.domain.record import Entry, Head, KeyframeEntry
from holdfast.ports import Finding

_LAST = "workflow_id = :workflow_id order by"

#: Each of the two rows is looked up once; every read of a newest state begins with this.
HEAD = f"""
select checkpoint.sequence, checkpoint.checksum, event.seq, event.hash
from (select 1) as always
left join (
    select sequence, checksum from checkpoints where {_LAST} sequence desc limit 1
) as checkpoint on true
left join (select seq, hash from events where {_LAST} seq desc limit 1) as event on true
"""

# Jumping from one id to the next reads as many rows as there are workflows, not as there are events. A
# workflow that arrived from another store may have checkpoints alone.
_WORKFLOWS = """
with recursive ids(id) as (
    select min(id) from (
        select min(workflow_id) as id from events union all select min(workflow_id) from checkpoints
    ) as first
    union all
    select (
        select min(id) from (
            select min(workflow_id) as id from events where workflow_id > ids.id
            union all
            select min(workflow_id) from checkpoints where workflow_id > ids.id
        ) as next
    )
    from ids where ids.id is not null
)
select id from ids where id is not null
"""

_ENTRIES = f"""
select {rows.ENTRY_COLUMNS} from checkpoints
where workflow_id = :workflow_id and sequence > :after order by sequence limit :at_once
"""

_ENTRIES_BACKWARDS = f"""
select {rows.ENTRY_COLUMNS} from checkpoints
where workflow_id = :workflow_id and sequence < :before order by sequence desc limit :at_once
"""

# What the index holds is looked at first: the beginnings of UUIDs, which tell nearly all of them apart.
_FIND = f"""
select workflow_id, {rows.ENTRY_COLUMNS} from checkpoints
where substr(uuid, 1, 8) >= substr(:first, 1, 8) and substr(uuid, 1, 8) <= substr(:beyond, 1, 8)
and uuid >= :first and uuid < :beyond order by workflow_id, sequence
"""

_RECORDS = f"""
select {", ".join(cutting.RECORD_NAMES)} from checkpoints
where workflow_id = :workflow_id and sequence > :after and sequence <= :last and data is not null
order by sequence limit :at_once
"""

_KEYFRAMES = f"""
select {rows.KEYFRAME_COLUMNS} from keyframes where workflow_id = :workflow_id order by sequence
"""

_NEWEST_KEYFRAME = f"""
select {rows.KEYFRAME_COLUMNS} from keyframes
where workflow_id = :workflow_id and sequence <= :through order by sequence desc limit 1
"""

_KEYFRAME = "select sha256, data from keyframes where workflow_id = :workflow_id and sequence = :sequence"

_EVENTS = f"""
select {", ".join(cutting.EVENT_NAMES)} from events
where workflow_id = :workflow_id and seq > :after and data is not null order by seq limit :at_once
"""

_HAS_BLOB = "select 1 from blobs where sha256 = :sha256"
_BLOB = "select data from blobs where sha256 = :sha256"

_BEYOND_EVERY_SEQUENCE = 2**63 - 1


class Reading(TrailReading):
    """Reads checkpoints, events, keyframes and blobs out of the tables, and the trails."""

    def head(self, workflow_id: str) -> Head:
        [row] = self._tables.rows(HEAD, {"workflow_id": workflow_id})
        return rows.read_head(row, workflow_id)

    def workflows(self) -> Iterator[str]:
        found = self._tables.rows(_WORKFLOWS)
        return iter([rows.read_text(row[0], "the list of workflows") for row in found])

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        query, side, start = (
            (_ENTRIES_BACKWARDS, "before", _BEYOND_EVERY_SEQUENCE) if newest_first else (_ENTRIES, "after", 0)
        )
        for row in self._pieces(query, {"workflow_id": workflow_id}, side, start, LISTED_AT_ONCE):
            yield rows.read_entry(row, f"{workflow_id}@{row[0]}")

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        span = {"first": uuid_prefix, "beyond": uuid_prefix + rows.LAST_CHARACTER}
        return [
            (
                rows.read_text(row[0], "the list of checkpoints"),
                rows.read_entry(row[1:], f"{row[0]}@{row[1]}"),
            )
            for row in self._tables.rows(_FIND, span)
        ]

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        wanted = {"workflow_id": workflow_id, "last": last}
        latest = None
        for row in pieces(
            self._tables, _RECORDS, wanted, ("after",), (first - 1,), RECORDS_AT_ONCE, RECORDS_AT_FIRST
        ):
            if latest is None and row[0] != first:
                break
            latest = row[0]
            yield rows.read_record(row, workflow_id)
        if latest != last:
            raise rows.no_checkpoint(workflow_id, first if latest is None else last)

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        return self._keyframes(_KEYFRAMES, workflow_id)

    def newest_keyframe(self, workflow_id: str, through: int) -> KeyframeEntry | None:
        return next(iter(self._keyframes(_NEWEST_KEYFRAME, workflow_id, through=through)), None)

    def _keyframes(self, query: str, workflow_id: str, **bounds: int) -> list[KeyframeEntry]:
        found = self._tables.rows(query, {"workflow_id": workflow_id, **bounds})
        return [rows.read_keyframe_entry(row, f"keyframe {workflow_id}@{row[0]}") for row in found]

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        found = self._tables.rows(_KEYFRAME, {"workflow_id": workflow_id, "sequence": sequence})
        if not found:
            raise rows.no_checkpoint(workflow_id, sequence, "keyframe")
        [(sha256, data)] = found
        return rows.verified(data, sha256, f"keyframe {workflow_id}@{sequence}")

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        wanted = {"workflow_id": workflow_id}
        for row in self._pieces(_EVENTS, wanted, "after", after, LISTED_AT_ONCE):
            data = rows.read_bytes(row[-1], f"event {row[0]} of {workflow_id}")
            yield cutting.whole_event(workflow_id, row, data)

    def has_blob(self, sha256: str) -> bool:
        return bool(self._tables.rows(_HAS_BLOB, {"sha256": sha256}))

    def blob(self, sha256: str) -> bytes:
        found = self._tables.rows(_BLOB, {"sha256": sha256})
        if not found:
            raise CheckpointNotFoundError("there is no such blob", place=sha256)
        return rows.verified(found[0][0], sha256, f"blob {sha256}")

    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        return evidence(self._tables, workflow_id, sequence)

    def check(self) -> Iterator[Finding]:
        # Whoever opens a store to use it reads no reports.
        from holdfast.adapters.set_aside import check_quarantine

        yield from inspect.check_tables(self._tables)
        yield from check_quarantine(self.files(FOLDER), self.file)

    def stats(self) -> dict[str, Any]:
        return inspect.count_tables(self._tables)

    def _pieces(self, query: str, wanted: Parameters, side: str, start: int, at_once: int) -> Iterator[Row]:
        """Yield the rows of a query piece by piece; the first column is what they are ordered by."""
        return pieces(self._tables, query, wanted, (side,), (start,), at_once)
