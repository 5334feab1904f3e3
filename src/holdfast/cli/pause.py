"""`holdfast pause`: let a running workflow stop once what is at work has ended."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import safe
from holdfast.cli.run_requests import Wish, ask, check_running, tell_asking, timeout_option


@click.command("pause", cls=StoreCommand)
@click.argument("workflow_id", metavar="ID")
@timeout_option
@changes()
def command(call: Call, workflow_id: str, timeout_seconds: float, change: Change) -> None:
    """Let a running workflow stop after what is at work.

    Agents that are at work end, nothing new begins, and a checkpoint is made.
    `holdfast resume` goes on. Ends with 31 if nobody runs the workflow, and with
    8 if nobody heard it in time.

    \b
    Example:
      holdfast pause WF-2026-001 --reason "the budget of today is used up"
    """
    runner = check_running(call, workflow_id)
    if change.dry_run:
        tell_asking(call, workflow_id, "pause", runner)
        return
    request = ask(call, Wish(workflow_id, "pause", reason=change.reason), timeout_seconds)
    if call.output.as_json:
        call.output.data({"workflow_id": workflow_id, "status": "pausing", "request": request.id})
        return
    call.output.line(f"{safe(workflow_id)} pauses once its agents at work have ended")
