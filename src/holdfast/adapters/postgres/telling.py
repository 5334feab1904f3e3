"""The part of a commit's statement that tells audit entries; they are chained, so it does all or nothing.

trail    where the writer believes that each trail stands
tip      where it stands, and whether its session could be locked at once
ready    whether every trail is as believed, and every unit of the statement fits
told     the entries. If a unit has lost its race after all a line is NULL, and the table refuses all of it.
answer   a row for each unit that is not in and, where nothing is, for each trail
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.postgres import arrays
from holdfast.adapters.postgres.trails import ENTRY_NAMES, SESSION_LOCK, Chained
from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Row
from holdfast.domain.audit_entry import TrailHead

_TRAIL = ("session_id", "seq", "hash")

_TIP = f"""
tip as (
    select t.*, l.seq as at, l.hash as top, l.timestamp, l.type,
        pg_try_advisory_xact_lock({SESSION_LOCK}) as is_mine
    from trail t left join lateral (
        select seq, hash, timestamp, type from audit a
        where a.session_id = t.session_id order by seq desc limit 1
    ) l on true
)"""
_STALE = "select from tip where not is_mine or (coalesce(at, 0), coalesce(top, 'GENESIS')) <> (seq, hash)"
_ALL_FIT = "and (select count(*) from fit) = (select count(*) from asked)"
_ALL_IN = "(select count(*) from first) = (select count(*) from asked)"
#: Short names for the columns of entries.
_LETTERS = "abcdefgh"
_LINE = _LETTERS[ENTRY_NAMES.index("line")]

_UNITS = """
select false, workflow_id in (select workflow_id from fit), workflow_id, last_sequence, last_checksum,
    last_seq, last_hash, owner, lease, expires_at, released, is_live
from seen where workflow_id not in (select workflow_id from first)
union all """
_TRAILS = """
select true, is_mine, session_id, at, top, null, timestamp, type, null, null, null, null
from tip where not (select yes from ready)
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """Why nothing got in: what each unit met and whether it would fit, and where the trails stand."""

    met: list[Row]
    misfits: frozenset[str]
    heads: list[TrailHead]
    #: Whether somebody else is just changing one of the trails.
    is_busy: bool


def read_answer(found: Iterable[Row]) -> Answer:
    """Sort the rows that a statement with entries answers."""
    met: list[Row] = []
    misfits: set[str] = set()
    heads: list[TrailHead] = []
    is_busy = False
    for is_trail, is_right, name, *told in found:
        if not is_trail:
            met.append((name, *told))
            misfits.update(() if is_right else (name,))
            continue
        is_busy = is_busy or not is_right
        seq, digest, _, timestamp, kind, *_ = told
        is_new = seq is None
        heads.append(
            TrailHead(name) if is_new else rows.read_trail_head((seq, digest, timestamp, kind), name)
        )
    return Answer(met, frozenset(misfits), heads, is_busy)


def answer(*, has_units: bool) -> str:
    """Write the end of the statement."""
    return _UNITS + _TRAILS if has_units else _TRAILS


def judging(*, is_one: bool, has_units: bool) -> list[str]:
    """Write what comes before anything is inserted."""
    fit = _ALL_FIT if has_units else ""
    return [
        f"trail({', '.join(_TRAIL)}) as ({_relation('s', _TRAIL, is_one=is_one)})",
        _TIP,
        f"ready as (select not exists ({_STALE}) {fit} as yes)",
    ]


def inserting(*, is_one: bool, has_units: bool) -> str:
    """Write what inserts the entries."""
    written = [
        f"case when {_ALL_IN} then {letter} end" if has_units and letter == _LINE else letter
        for letter in _LETTERS
    ]
    return (
        f"told as (insert into audit ({', '.join(ENTRY_NAMES)}) select {', '.join(written)} "
        f"from ({_relation('l', ENTRY_NAMES, is_one=is_one)}) as n({','.join(_LETTERS)}) "
        "where (select yes from ready))"
    )


def parameters(chained: Chained) -> dict[str, Any]:
    """Name the values of entries."""
    believed = [(head.session_id, head.seq, head.hash) for head in chained.before.values()]
    if len(chained.records) == 1:
        [trail], [entry] = believed, chained.rows()
        return {f"s_{name}": value for name, value in zip(_TRAIL, trail, strict=True)} | {
            f"l_{name}": value for name, value in zip(ENTRY_NAMES, entry, strict=True)
        }
    return _columns("s", _TRAIL, believed) | _columns("l", ENTRY_NAMES, chained.rows())


def kind_of_told(name: str) -> str:
    """Name the type of a column of entries."""
    return _KINDS[name][0]


def _relation(prefix: str, names: Sequence[str], *, is_one: bool) -> str:
    if is_one:
        return "values (" + ", ".join(f":{prefix}_{name}::{_KINDS[name][0]}" for name in names) + ")"
    columns = ", ".join(f":{prefix}_{name}::{_KINDS[name][0]}[]" for name in names)
    return f"select * from unnest({columns})"


def _columns(prefix: str, names: Sequence[str], written: Sequence[Row]) -> dict[str, arrays.Array]:
    columns = zip(*written, strict=True)
    return {f"{prefix}_{name}": _KINDS[name][1](column) for name, column in zip(names, columns, strict=True)}


_Maker = Callable[[Sequence[Any]], arrays.Array]
_KINDS: dict[str, tuple[str, _Maker]] = {
    **dict.fromkeys(ENTRY_NAMES, ("text", arrays.text_array)),
    "seq": ("bigint", arrays.int8_array),
    "line": ("bytea", arrays.bytes_array),
    "payload": ("bytea", arrays.bytes_array),
}
