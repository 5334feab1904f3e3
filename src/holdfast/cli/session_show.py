"""`holdfast session show`: what a session left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import entry_of, reading, tell
from holdfast.cli.output import Output, safe
from holdfast.cli.session_list import session_fields
from holdfast.cli.values import pretty
from holdfast.domain.audit_type import AuditType
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.domain.session_record import Session

_LABEL_WIDTH = 13


@click.command("show", cls=StoreCommand)
@click.argument("session_id", metavar="SESSION")
def command(call: Call, session_id: str) -> None:
    """Show what a session left.

    How it stands, its summary, its payload and its workflows.

    Nothing changes; `holdfast session resume` takes over.

    \b
    Example:
      holdfast session show s-2026-001 --json
    """
    from holdfast.application.session_files import SessionFiles
    from holdfast.domain.ids import check_session_id

    with reading(call) as kit:
        files = SessionFiles(kit)
        session = files.with_workflows(files.confirmed(check_session_id(session_id)).session)
        tell(call, kit, [entry_of(kit, AuditType.STATE_READ, None, {"session": session.id})])
    if call.output.as_json:
        call.output.data({"session": session_fields(session), **as_json_tree(session.context.to_block())})
        return
    _print(call.output, session)


def session_at(call: Call, session_id: str) -> Session:
    """Answer the record of a session, confirmed by the trail."""
    from holdfast.application.session_files import SessionFiles
    from holdfast.domain.ids import check_session_id

    with reading(call) as kit:
        return SessionFiles(kit).confirmed(check_session_id(session_id)).session


def _print(output: Output, session: Session) -> None:
    context = session.context
    usage = None if context.context_usage is None else f"{100 * context.context_usage:.0f} % full"
    shown = {
        "session": session.id,
        "status": str(session.status),
        "opened": f"{time_text(session.opened_at)} UTC",
        "since": f"{time_text(session.updated_at)} UTC",
        "from": " ".join(context.source_agent.to_fields().values()) if context.source_agent else None,
        "to": " ".join(context.target_agent.to_fields().values()) if context.target_agent else None,
        "window": usage,
        "workflows": ", ".join(context.workflow_ids) or None,
        "continues": session.continues,
        "continued by": session.continued_by,
    }
    for label, value in shown.items():
        if value:
            output.line(f"{label:<{_LABEL_WIDTH}} {safe(value)}")
    if context.summary:
        output.lines(["", *map(safe, context.summary.splitlines())])
    if context.payload:
        output.lines(["", pretty(dict(context.payload))])
