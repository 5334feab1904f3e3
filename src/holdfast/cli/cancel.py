"""`holdfast cancel`: end a workflow for good."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import safe
from holdfast.cli.run_requests import Wish, ask, asked, check_open, tell_asking, timeout_option


@click.command("cancel", cls=StoreCommand)
@click.argument("workflow_id", metavar="ID")
@timeout_option
@changes()
def command(call: Call, workflow_id: str, timeout_seconds: float, change: Change) -> None:
    """End a running workflow for good.

    What was committed stays, nothing else begins, and it cannot be resumed. A
    workflow that nobody runs is cancelled as soon as somebody does: that ends
    with 8, and so does a request that nobody heard in time.

    \b
    Example:
      holdfast cancel WF-2026-001 --reason "the question was withdrawn" --yes
    """
    runner = check_open(call, workflow_id)
    if change.dry_run:
        tell_asking(call, workflow_id, "cancel", runner)
        return
    change.confirm(call.output, f"Cancel {workflow_id} for good?")
    wish = Wish(workflow_id, "cancel", reason=change.reason)
    if runner is None:
        with asked(call, wish) as (_, request):
            pass
        _tell(call, workflow_id, "requested", request.id)
        raise click.exceptions.Exit(Exit.WAITING)
    _tell(call, workflow_id, "cancelling", ask(call, wish, timeout_seconds).id)


def _tell(call: Call, workflow_id: str, status: str, request_id: str) -> None:
    if call.output.as_json:
        call.output.data({"workflow_id": workflow_id, "status": status, "request": request_id})
    elif status == "requested":
        call.output.line(f"Nobody runs {safe(workflow_id)}: it is cancelled as soon as somebody does")
    else:
        call.output.line(f"{safe(workflow_id)} is being cancelled")
