"""`holdfast audit log`: what the trail tells."""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_opening import find_session, looking
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import Cell, Output, counted, json_line
from holdfast.cli.unknown_types import warn_of_unknown
from holdfast.domain.audit_type import AuditType
from holdfast.domain.time import timestamp_text

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.audit.audit_query import AuditQuery
    from holdfast.domain.audit_entry import AuditEntry
    from holdfast.ports import Store

_DEFAULT_LIMIT = 100
#: A hash in hex; it is shown in part.
_HASH_CHARS = 64


@click.command("log", cls=StoreCommand)
@click.option("--session", metavar="S", help="Only of this session.")
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only of this type; may be given again.")
@click.option("--workflow", metavar="WF", help="Only about this workflow.")
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@click.option("--actor", metavar="NAME", help="Only by this actor.")
@click.option("--since", metavar="TIME", callback=read_moment, help="Only later ones: 2026-01-31, or 7d.")
@click.option("--until", metavar="TIME", callback=read_moment, help="Only earlier ones.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="Show at most so many, the newest.",
)
def command(
    call: Call,
    session: str | None,
    types: tuple[str, ...],
    workflow: str | None,
    agent: str | None,
    actor: str | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> None:
    """List entries of the trail, the newest last.

    Payloads are not opened: `holdfast audit show` does that. With --json each
    entry is one line.

    \b
    Example:
      holdfast audit log --type AGENT_DECISION --workflow WF-2026-001 --since 7d
    """
    from holdfast.application.audit.audit_query import AuditQuery

    types = tuple(type.upper() for type in types)
    query = AuditQuery(session, types, since, until, agent, workflow, actor)
    with looking(call) as (kit, log):
        if session is not None:
            find_session(kit, session)
        warn_of_unknown(types, tuple(AuditType), chain(kit.store.leaves(), kit.store.waiting()))
        entries, total = _newest(kit.store, log, query, limit)
        facts: dict[str, int | str] = {"entries": len(entries)}
        if session is not None:
            facts["session"] = session[:512]
        tell(call, kit, [entry_of(kit, AuditType.TRAIL_READ, workflow, facts)])
    _print(call.output, entries, total)


def _newest(store: Store, log: AuditLog, query: AuditQuery, limit: int) -> tuple[list[AuditEntry], int]:
    """Answer the newest of what is asked for, and how many there are."""
    from holdfast.application.audit.audit_query import AuditQuery
    from holdfast.domain.trail import decode_entry

    kept: deque[bytes] = deque(maxlen=limit)
    # Where everything is asked for, nobody has to read the beginning of a long trail.
    passed = max(store.integrate() - limit, 0) if query == AuditQuery() else 0
    total = passed
    for line in chain(store.leaves(after=passed), store.waiting()) if passed else log.find(query):
        kept.append(line)
        total += 1
    return [decode_entry(line, None) for line in kept], total


def _print(output: Output, entries: list[AuditEntry], total: int) -> None:
    if output.as_json:
        output.lines(json_line(fields_of(entry)) for entry in entries)
        return
    if not entries:
        output.note("The trail has no such entry.")
        return
    output.table(("ENTRY", "TIME (UTC)", "TYPE", "OUTCOME", "WORKFLOW", "WHO", "FACTS"), map(_row, entries))
    if total > len(entries):
        output.note(f"{len(entries):,} of {counted(total, 'entry')}; --limit {total} shows all.")


def _row(entry: AuditEntry) -> tuple[str, ...]:
    timestamp = timestamp_text(entry.timestamp)
    stepped = " (clock stepped back)" if entry.clock else ""
    facts = " ".join(f"{name}={_short(value)}" for name, value in entry.facts.items())
    return (
        f"{entry.session_id}#{entry.seq}",
        Cell(f"{time_text(timestamp)}{stepped}", timestamp),
        entry.type,
        entry.outcome,
        entry.workflow_id or "-",
        entry.agent or entry.actor or "-",
        f"{facts} +payload".strip() if entry.payload else facts,
    )


def _short(value: int | str) -> str:
    text = str(value)
    return f"{text[:19]}..." if len(text) >= _HASH_CHARS else text


def fields_of(entry: AuditEntry) -> dict[str, Any]:
    """Write an entry for programs: the fields of its line, in their order."""
    from holdfast.application.audit.audit_report import entry_fields

    return entry_fields(entry)
