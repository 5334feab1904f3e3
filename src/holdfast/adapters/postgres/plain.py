"""The statement of a plain commit: one event, perhaps a checkpoint, and the audit entry that tells of it.

Nearly every commit is one. It either gets in as a whole, and then the statement answers a row; or nothing of
it does, and `statement` is left to find out why. That is what makes it short: a server starts and ends every
part of a statement, whether it comes to anything or not, and here are three inserts and four looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.statement import ENTRY, EVENT, kind_of
from holdfast.adapters.postgres.telling import kind_of_told
from holdfast.adapters.postgres.trails import ENTRY_NAMES, SESSION_LOCK, Chained
from holdfast.adapters.sql.cutting import cut_event, cut_record
from holdfast.adapters.sql.rows import entry_row
from holdfast.domain.record import Commit


class NotIn(Exception):
    """A plain commit did not get in, and it is not known why."""


class _Places:
    """Gives each parameter its number, and one that is named twice the same."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, name: str, kind: str) -> str:
        number = self._numbers.setdefault(name, len(self._numbers) + 1)
        return f"${number}::{kind}"


def _text(*, has_record: bool) -> str:
    place = _Places()
    workflow, session = place("workflow_id", "text"), place("session_id", "text")
    sequence, checksum = place("sequence", "bigint"), place("checksum", "text")
    event_seq, event_hash = place("event_seq", "bigint"), place("event_hash", "text")
    token = place("token", "bigint")
    seq, digest = place("seq", "bigint"), place("hash", "text")

    def stands(table: str, key: str, columns: str, of: str, number: str, name: str) -> str:
        last = columns.partition(",")[0]
        # Bounded from below: else the server reads a whole page of an index to find its last row.
        return (
            f"coalesce((select ({columns}) = ({number}, {name}) from {table} "
            f"where {key} = {of} and {last} >= {number} order by {last} desc limit 1), "
            f"({number}, {name}) = (0, 'GENESIS'))"
        )

    conditions = (
        f"pg_try_advisory_xact_lock({SESSION_LOCK.replace('session_id', session)})",
        stands("audit", "session_id", "seq, hash", session, seq, digest),
        stands("checkpoints", "workflow_id", "sequence, checksum", workflow, sequence, checksum),
        stands("events", "workflow_id", "seq, hash", workflow, event_seq, event_hash),
        # Locked, so that a takeover waits for this commit; by the clock of the server.
        f"""coalesce((
            select case when {token} = 0 then released
                or expires_at <= to_char(clock_timestamp(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
            else token = {token} and not released end
            from (select * from leases where workflow_id = {workflow} for share) as lease
        ), {token} = 0)""",
    )
    events = [workflow, *(place(f"e_{name}", kind_of(name)) for name in EVENT[1:])]
    records = [workflow, *(place(f"r_{name}", kind_of(name)) for name in ENTRY[1:])] if has_record else []
    entries = [
        session if name == "session_id" else place(f"l_{name}", kind_of_told(name)) for name in ENTRY_NAMES
    ]
    ctes = [
        f"first as (insert into events ({', '.join(EVENT)}) select {', '.join(events)} "
        f"where {' and '.join(conditions)} on conflict do nothing returning 1)",
        f"told as (insert into audit ({', '.join(ENTRY_NAMES)}) select {', '.join(entries)} from first)",
    ]
    if has_record:
        ctes.append(
            f"record as (insert into checkpoints ({', '.join(ENTRY)}) select {', '.join(records)} from first)"
        )
    return " ".join(f"with {', '.join(ctes)} select 1 from first".split())


_TEXTS = {has_record: _text(has_record=has_record) for has_record in (True, False)}


def is_plain(units: Sequence[Unit], chained: Chained) -> bool:
    """Whether units are one plain commit, and one entry tells of it."""
    return len(units) == 1 and len(chained.records) == 1 and units[0].is_plain


def send(connection: Connection, unit: Unit, chained: Chained) -> bool:
    """Send a plain commit with its entry; answer whether it got in."""
    commit = unit.commits[0]
    query = _TEXTS[commit.record is not None]
    return bool(connection.send(query, _parameters(commit, chained)).ntuples)


def _parameters(commit: Commit, chained: Chained) -> list[Any]:
    expected, event, record = commit.expected, commit.events[0], commit.record
    [before], [told] = chained.before.values(), chained.rows()
    values: list[Any] = [
        commit.workflow_id,
        before.session_id,
        expected.sequence,
        expected.checksum,
        expected.event_seq,
        expected.event_hash,
        commit.token,
        before.seq,
        before.hash,
        event.seq,
        event.timestamp,
        event.hash,
        cut_event(commit.workflow_id, event),
    ]
    if record is not None:
        values += entry_row(record.entry)
        values.append(cut_record(commit.workflow_id, record) or None)
    values += told[1:]
    return values
