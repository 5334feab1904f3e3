"""`holdfast session resume`: take over from a session that ended or crashed."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import safe
from holdfast.cli.points import app_named
from holdfast.cli.session_show import session_at
from holdfast.domain.plainjson import as_json_tree


@click.command("resume", cls=StoreCommand)
@click.argument("session_id", metavar="SESSION")
@click.option("--as", "new_id", metavar="NAME", help="Name of the session that goes on. [default: a new one]")
@click.option("--agent", metavar="AGENT", help="Who goes on. [default: whom the hand-off named]")
@click.option(
    "--app", metavar="MODULE:OBJECT", help="The program whose types, reducers and migrations to use."
)
@click.option("--skip-validation", is_flag=True, help="Believe a record that the trail does not confirm.")
@changes()
def command(
    call: Call,
    session_id: str,
    new_id: str | None,
    agent: str | None,
    app: str | None,
    skip_validation: bool,
    change: Change,
) -> None:
    """Take over from a session that ended or crashed.

    Prints the briefing for the next context window: the summary, open
    decisions, pending events and the workflows as they stand. Of several who
    try at once one succeeds; the others are told who did, and end with 11.

    \b
    Example:
      holdfast session resume s-2026-001 --as s-2026-002
    """
    if change.dry_run:
        session = session_at(call, session_id)
        text = f"Would take over from {safe(session_id)}, which is {session.status}"
        tell_plan(call.output, text, session_id=session_id, status=str(session.status), new_session_id=new_id)
        return
    with writing(call, app=app_named(app), reason=change.reason) as service:
        sessions = service.sessions
        # Not the session of the command line, which is that of a whole day.
        name = new_id or sessions.new_name()
        state = sessions.resume_session(session_id, name, agent=agent, skip_validation=skip_validation)
        fields = sessions.fields(state)
    if call.output.as_json:
        call.output.data(as_json_tree(fields))
        return
    call.output.lines(safe(line) for line in state.briefing().splitlines())
