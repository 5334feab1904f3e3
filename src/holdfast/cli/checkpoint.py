"""`holdfast checkpoint`: ask whoever runs a workflow for a checkpoint, now."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading
from holdfast.cli.output import safe
from holdfast.cli.run_requests import Wish, ask, check_running, newest_sequence, tell_asking, timeout_option


@click.command("checkpoint", cls=StoreCommand)
@click.argument("workflow_id", metavar="ID")
@timeout_option
@changes()
def command(call: Call, workflow_id: str, timeout_seconds: float, change: Change) -> None:
    """Ask a running workflow for a checkpoint.

    Waits until it is made. Ends with 31 if nobody runs the workflow, with 8 if
    nobody heard it in time, and with 3 if the workflow makes no checkpoints on
    request.

    \b
    Example:
      holdfast checkpoint WF-2026-001 --reason "before the network goes down"
    """
    runner = check_running(call, workflow_id)
    if change.dry_run:
        tell_asking(call, workflow_id, "checkpoint", runner)
        return
    with reading(call) as kit:
        before = newest_sequence(kit, workflow_id)
    request = ask(call, Wish(workflow_id, "checkpoint", reason=change.reason), timeout_seconds)
    with reading(call) as kit:
        newest = newest_sequence(kit, workflow_id)
    if newest == before:
        raise Failure(
            "not_made",
            Exit.PARTIAL,
            "the request was heard, and no checkpoint was made",
            place=workflow_id,
            hint="The triggers of the workflow leave out those that are asked for.",
        )
    if call.output.as_json:
        call.output.data(
            {"workflow_id": workflow_id, "checkpoint": f"{workflow_id}@{newest}", "request": request.id}
        )
        return
    call.output.line(f"{safe(workflow_id)}@{newest}")
