"""`holdfast session hand-off`: end a session and leave what its successor needs."""

from __future__ import annotations

from typing import Any

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import safe
from holdfast.cli.session_show import session_at
from holdfast.domain.json_reading import read_json


@click.command("hand-off", cls=StoreCommand)
@click.argument("session_id", metavar="SESSION")
@click.option("--to", "target", metavar="AGENT", help="Who is to go on. [default: the same agent]")
@click.option(
    "--summary", metavar="TEXT", help="What was done, what comes next. [default: as the states say]"
)
@click.option("--payload", metavar="FILE", type=click.File("rb"), help="A JSON object to leave; - for stdin.")
@click.option(
    "--context-usage", metavar="F", type=click.FloatRange(0, 1), help="How full the window is, from 0 to 1."
)
@changes()
def command(
    call: Call,
    session_id: str,
    target: str | None,
    summary: str | None,
    payload: Any,
    context_usage: float | None,
    change: Change,
) -> None:
    """End a session and leave what its successor needs.

    \b
    Example:
      holdfast session hand-off s-2026-001 --to reviewer --summary "Half done."
    """
    left = None if payload is None else _object(payload.read())
    if change.dry_run:
        session = session_at(call, session_id)
        text = f"Would hand off {safe(session_id)}, which is {session.status}, to {safe(target or 'itself')}"
        tell_plan(call.output, text, session_id=session_id, status=str(session.status), to=target)
        return
    with writing(call, reason=change.reason) as service:
        handed = service.sessions.hand_off(session_id, target, summary, left, context_usage=context_usage)
    for warning in handed.warnings:
        call.output.note(f"note: {safe(warning)}")
    if call.output.as_json:
        when = {"session_id": handed.session_id, "handed_off_at": handed.handed_off_at}
        call.output.data({**when, "checksum": handed.checksum, "warnings": list(handed.warnings)})
        return
    call.output.line(f"Handed off {safe(handed.session_id)}")
    call.output.note(f"Go on with `{safe(handed.command)}`.")


def _object(data: bytes) -> dict[str, Any]:
    try:
        left = read_json(data)
    except ValueError as fault:
        raise click.UsageError(f"--payload is no JSON ({fault})") from None
    if not isinstance(left, dict):
        raise click.UsageError("--payload is no JSON object")
    return left
