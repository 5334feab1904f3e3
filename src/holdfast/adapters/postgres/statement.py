"""The commit as one statement: by itself a transaction, one round trip, one sync.

    asked    what each writer believes, and the row that two writers race for: the first event of a unit
    seen     where each workflow stands, and its lease, locked so that a takeover waits for this commit
    first    that row, inserted if belief and lease are right and nobody was faster
    ...      everything else, for the units whose first row got in
    answer   a row for each unit that did not get in, and what it met

A unit that brings no events (an old checkpoint from another store) races for its first checkpoint instead.

Audit entries that go with it are the matter of `telling`; a single commit that is nothing special is that of
`plain`, and comes here if it did not get in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from holdfast.adapters.postgres import arrays, mending, telling
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.database import in_dialect
from holdfast.adapters.postgres.trails import Chained
from holdfast.adapters.sql.cutting import cut_event, cut_record
from holdfast.adapters.sql.database import Row
from holdfast.adapters.sql.rows import ENTRY_NAMES, KEYFRAME_NAMES, entry_row, keyframe_row
from holdfast.domain.record import EventRecord, Keyframe, Record

_NUMBERS = frozenset(
    (
        *("sequence", "parent", "grp", "length", "state_bytes", "phase", "event_seq", "retry_count"),
        *("seq", "token"),
    )
)
_FLAGS = frozenset(("pinned", "pruned"))

_EXPECTED = ("workflow_id", "sequence", "checksum", "event_seq", "event_hash", "token")
EVENT = ("workflow_id", "seq", "timestamp", "hash", "data")
#: With events the first one stands beside the expected head, its columns under names of their own.
_FIRST = tuple(f"f_{name}" for name in EVENT[1:])
_ASKED = {True: (*_EXPECTED, *EVENT[1:]), False: _EXPECTED}
ENTRY = ("workflow_id", *ENTRY_NAMES, "data")
_KEYFRAME = ("workflow_id", *KEYFRAME_NAMES, "data")
_TRANSITION = ("workflow_id", "sequence", "status", "retry_count", "pinned")
_BLOB = ("workflow_id", "sha256", "data")
_USE = ("workflow_id", "sha256", "sequence", "kind")

# The clock of the server is the one that counts; a time is compared as the text it is kept as.
_SEEN = """
lease as materialized (
    select * from leases where workflow_id in (select workflow_id from asked) order by workflow_id for share
),
seen as materialized (
    select a.*,
        c.sequence as last_sequence, c.checksum as last_checksum, e.seq as last_seq, e.hash as last_hash,
        l.owner, l.token as lease, l.expires_at, l.released,
        l.expires_at > to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as is_live
    from asked a
    left join lateral (
        select sequence, checksum from checkpoints c
        where c.workflow_id = a.workflow_id order by sequence desc limit 1
    ) c on true
    left join lateral (
        select seq, hash from events e where e.workflow_id = a.workflow_id order by seq desc limit 1
    ) e on true
    left join lease l on l.workflow_id = a.workflow_id
),
fit as materialized (
    select * from seen where (coalesce(last_sequence, 0), coalesce(last_seq, 0)) = (sequence, event_seq)
    and (coalesce(last_checksum, 'GENESIS'), coalesce(last_hash, 'GENESIS')) = (checksum, event_hash)
    and case when token = 0 then lease is null or released or not is_live
        else lease = token and not released end
)"""

_ANSWER = """
select workflow_id, last_sequence, last_checksum, last_seq, last_hash,
    owner, lease, expires_at, released, is_live
from seen where workflow_id not in (select workflow_id from first)
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parts a statement has: what is not needed is not sent, and each shape is planned once."""

    is_single: bool
    has_events: bool = True
    has_more_events: bool = False
    has_records: bool = False
    has_keyframes: bool = False
    has_transitions: bool = False
    has_blobs: bool = False
    has_uses: bool = False
    #: How many audit entries: none, one, or as many as there are.
    entries: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether no unit is recorded."""
        return not (self.has_events or self.has_records)


#: No unit at all: there may still be entries.
_NOTHING = Shape(is_single=True, has_events=False)
ONE, MANY = "one", "many"


@dataclass(slots=True)
class Parts:
    """The rows of a statement, by where they go."""

    asked: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    records: list[Row] = field(default_factory=list)
    keyframes: list[Row] = field(default_factory=list)
    transitions: list[Row] = field(default_factory=list)
    blobs: list[Row] = field(default_factory=list)
    uses: list[Row] = field(default_factory=list)


def build(units: Sequence[Unit], chained: Chained | None = None) -> tuple[str, list[Any]]:
    """Write the statement for units that all bring events, or of which none does; and its values.

    Args:
        units: What is recorded.
        chained: Entries to be told with it, all or nothing. Then there may be no unit at all.
    """
    shape, parameters = _recording(units)
    if chained is not None and chained.records:
        parameters |= telling.parameters(chained)
        shape = replace(shape, entries=ONE if len(chained.records) == 1 else MANY)
    query, names = in_dialect(text(shape))
    return query, [parameters[name] for name in names]


def send(connection: Connection, units: Sequence[Unit], chained: Chained | None = None) -> list[Row]:
    """Send it; answered is what the units that did not get in have met, and with entries the trails then."""
    return connection.read(connection.send(*build(units, chained)))


def _recording(units: Sequence[Unit]) -> tuple[Shape, dict[str, Any]]:
    if not units:
        return _NOTHING, {}
    parts = _parts(units)
    has_events = bool(units[0].events)
    shape = Shape(
        is_single=len(units) == 1 and len(parts.records) <= 1,
        has_events=has_events,
        has_more_events=bool(parts.events),
        has_records=bool(parts.records),
        has_keyframes=bool(parts.keyframes),
        has_transitions=bool(parts.transitions),
        has_blobs=bool(parts.blobs),
        has_uses=bool(parts.uses),
    )
    parameters = _parameters("a", _ASKED[has_events], parts.asked, is_single=shape.is_single)
    parameters |= _parameters("r", ENTRY, parts.records, is_single=shape.is_single)
    for prefix, names, rows in (
        ("e", EVENT, parts.events),
        ("k", _KEYFRAME, parts.keyframes),
        ("t", _TRANSITION, parts.transitions),
        ("b", _BLOB, parts.blobs),
        ("u", _USE, parts.uses),
    ):
        parameters |= _parameters(prefix, names, rows, is_single=False)
    return shape, parameters


@lru_cache(maxsize=256)
def text(shape: Shape) -> str:
    """Write the statement of a shape, its parameters by name."""
    has_units, is_one = not shape.is_empty, shape.entries == ONE
    ctes, answer = _judging(shape) if has_units else [], _ANSWER
    if shape.entries:
        ctes += telling.judging(is_one=is_one, has_units=has_units)
        answer = telling.answer(has_units=has_units)
    if has_units:
        ctes += [*_first(shape), *_following(shape)]
    if shape.entries:
        ctes.append(telling.inserting(is_one=is_one, has_units=has_units))
    return " ".join(f"with {', '.join(ctes)} {answer}".split())


def _judging(shape: Shape) -> list[str]:
    columns = (*_EXPECTED, *(_FIRST if shape.has_events else ()))
    asked = _relation("a", _ASKED[shape.has_events], shape)
    ctes = [f"asked({', '.join(columns)}) as materialized ({asked})", _SEEN.strip()]
    if shape.has_records:
        # All columns go where they stand; by their names only some are asked for.
        names = "workflow_id" if shape.has_events else ", ".join(ENTRY)
        ctes.append(f"record({names}) as materialized ({_relation('r', ENTRY, shape)})")
    return ctes


def _first(shape: Shape) -> list[str]:
    ready = " where (select yes from ready)" if shape.entries else ""
    if shape.has_events:
        return [
            f"first as (insert into events ({', '.join(EVENT)}) "
            f"select workflow_id, {', '.join(_FIRST)} from fit{ready} order by workflow_id "
            "on conflict do nothing returning workflow_id)"
        ]
    columns = ", ".join(ENTRY)
    return [
        "lowest as (select workflow_id, min(sequence) as sequence from record group by workflow_id)",
        f"first as (insert into checkpoints ({columns}) "
        f"select {columns} from record join lowest using (workflow_id, sequence) "
        f"where workflow_id in (select workflow_id from fit{ready}) order by workflow_id "
        "on conflict do nothing returning workflow_id)",
    ]


def _following(shape: Shape) -> list[str]:
    ctes = []
    if shape.has_more_events:
        ctes.append(f"more as ({_insert('events', EVENT, 'e')})")
    if shape.has_records:
        others = (
            f"records as (insert into checkpoints ({', '.join(ENTRY)}) select r.* from record r "
            "where r.workflow_id in (select workflow_id from first)"
        )
        if not shape.has_events:
            # The first one is in: it was raced for.
            others += " and (r.workflow_id, r.sequence) not in (select workflow_id, sequence from lowest)"
        ctes.append(f"{others})")
    if shape.has_keyframes:
        ctes.append(f"frames as ({_insert('keyframes', _KEYFRAME, 'k')} on conflict do nothing)")
    if shape.has_transitions:
        ctes.append(
            "moves as (update checkpoints c "
            "set status = t.status, retry_count = t.retry_count, pinned = t.pinned "
            f"from ({_unnest('t', _TRANSITION)}) as t({', '.join(_TRANSITION)}) "
            "join first using (workflow_id) where c.workflow_id = t.workflow_id and c.sequence = t.sequence)"
        )
    if shape.has_blobs:
        ctes += mending.keeping(_unnest("b", _BLOB))
    if shape.has_uses:
        ctes.append(f"uses as ({_insert('blob_uses', _USE, 'u')} on conflict do nothing)")
    return ctes


def _insert(table: str, names: Sequence[str], prefix: str) -> str:
    columns = ", ".join(names)
    return (
        f"insert into {table} ({columns}) select n.* from ({_unnest(prefix, names)}) as n({columns}) "
        "where n.workflow_id in (select workflow_id from first)"
    )


def _relation(prefix: str, names: Sequence[str], shape: Shape) -> str:
    return _values(prefix, names) if shape.is_single else _unnest(prefix, names)


def _values(prefix: str, names: Sequence[str]) -> str:
    return "values (" + ", ".join(f":{prefix}_{name}::{kind_of(name)}" for name in names) + ")"


def _unnest(prefix: str, names: Sequence[str]) -> str:
    return "select * from unnest(" + ", ".join(f":{prefix}_{n}::{kind_of(n)}[]" for n in names) + ")"


def kind_of(name: str) -> str:
    """Name the type of a column of events, checkpoints and what goes with them."""
    if name == "data":
        return "bytea"
    return "bigint" if name in _NUMBERS else "boolean" if name in _FLAGS else "text"


# -- rows ---------------------------------------------------------------------------------------------


def _parts(units: Iterable[Unit]) -> Parts:
    parts = Parts()
    for unit in units:
        name, expected, events = unit.workflow_id, unit.expected, unit.events
        head = (
            name,
            expected.sequence,
            expected.checksum,
            expected.event_seq,
            expected.event_hash,
            unit.token,
        )
        parts.asked.append((*head, *_event(name, events[0])) if events else head)
        parts.records += [(name, *_record(name, record)) for record in unit.records()]
        if not unit.is_plain:
            _add_rest(parts, unit)
    return parts


def _add_rest(parts: Parts, unit: Unit) -> None:
    """Add what only some units have."""
    name = unit.workflow_id
    parts.events += [(name, *_event(name, event)) for event in unit.events[1:]]
    parts.keyframes += [(name, *_keyframe(keyframe)) for keyframe in unit.keyframes]
    parts.transitions += [
        (name, move.sequence, move.status, move.retry_count, move.pinned) for move in unit.transitions()
    ]
    parts.blobs += [(name, sha256, data) for sha256, data in unit.blobs.items()]
    parts.uses += [(name, *use) for use in unit.uses()]


def _event(workflow_id: str, event: EventRecord) -> Row:
    return (event.seq, event.timestamp, event.hash, cut_event(workflow_id, event))


def _record(workflow_id: str, record: Record) -> Row:
    # A tombstone from another store may have lost its bytes.
    return (*entry_row(record.entry), cut_record(workflow_id, record) or None)


def _keyframe(keyframe: Keyframe) -> Row:
    return (*keyframe_row(keyframe.entry), keyframe.data)


def _parameters(prefix: str, names: Sequence[str], rows: Sequence[Row], *, is_single: bool) -> dict[str, Any]:
    if not rows:
        return {}
    if is_single:
        return {f"{prefix}_{name}": value for name, value in zip(names, rows[0], strict=True)}
    columns = zip(*rows, strict=True)
    return {f"{prefix}_{name}": _array(name, column) for name, column in zip(names, columns, strict=True)}


def _array(name: str, column: Sequence[Any]) -> arrays.Array:
    if name == "data":
        return arrays.bytes_array(column)
    if name in _NUMBERS:
        return arrays.int8_array(column)
    return arrays.bool_array(column) if name in _FLAGS else arrays.text_array(column)
