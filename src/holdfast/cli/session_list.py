"""`holdfast session list`: sessions and how they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import reading

if TYPE_CHECKING:
    from holdfast.domain.session_record import Session

_STATUSES = ("open", "handed_off", "resumed", "closed")


@click.command("list", cls=StoreCommand)
@click.option("--status", type=click.Choice(_STATUSES), help="Only those that stand so.")
def command(call: Call, status: str | None) -> None:
    """List sessions and how they stand.

    The one that changed last comes first. One that nobody opened, handed off or resumed has a trail only: see
    `holdfast audit log`. It can be handed off and resumed all the same.

    \b
    Example:
      holdfast session list --status handed_off
    """
    from holdfast.application.session_files import SessionFiles

    with reading(call) as kit:
        sessions = [one for one in SessionFiles(kit).listing() if status in (None, one.status)]
    if call.output.as_json:
        call.output.data({"sessions": [session_fields(one) for one in sessions]})
        return
    if not sessions:
        which = f" that is {status}" if status else ""
        call.output.note(
            f"No session{which} was opened or handed off. `holdfast audit log` names those that only have a"
            " trail; they can be resumed, too."
        )
        return
    head = ("SESSION", "STATUS", "SINCE (UTC)", "AGENT", "TARGET", "WORKFLOWS", "CONTINUES", "CONTINUED BY")
    call.output.table(head, map(_row, sessions), right="     r")


def session_fields(session: Session) -> dict[str, Any]:
    """Write for programs how a session stands, without what it left."""
    context = session.context
    return {
        "session_id": session.id,
        "status": str(session.status),
        "opened_at": session.opened_at,
        "updated_at": session.updated_at,
        "source_agent": context.source_agent.to_fields() if context.source_agent else None,
        "target_agent": context.target_agent.to_fields() if context.target_agent else None,
        "workflow_ids": list(context.workflow_ids),
        "context_usage": context.context_usage,
        "continues": session.continues,
        "continued_by": session.continued_by,
        "checksum": session.checksum or None,
    }


def _row(session: Session) -> tuple[str, ...]:
    context = session.context
    return (
        session.id,
        session.status,
        time_text(session.updated_at),
        context.source_agent.id if context.source_agent else "-",
        context.target_agent.id if context.target_agent else "-",
        str(len(context.workflow_ids)),
        session.continues or "-",
        session.continued_by or "-",
    )
