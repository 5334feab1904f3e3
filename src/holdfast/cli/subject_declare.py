"""`holdfast subject declare`: say whom a workflow is about."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe


@click.command("declare", cls=StoreCommand)
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("subject", metavar="NAME")
@changes()
def command(call: Call, workflow: str, subject: str, change: Change) -> None:
    """Say that a workflow is about a person.

    \b
    Example:
      holdfast subject declare WF-2026-001 ann@example.com --json
    """
    with reading(call) as kit:
        find_workflow(kit, workflow)
    if change.dry_run:
        text = f"Would declare that {safe(workflow)} is about {safe(subject)}"
        tell_plan(call.output, text, workflow_id=workflow, subject=subject)
        return
    with writing(call, reason=change.reason, workflow_id=workflow) as service:
        pseudonym = service.subjects.declare(workflow, subject)
    if call.output.as_json:
        call.output.data({"workflow_id": workflow, "pseudonym": pseudonym})
    else:
        call.output.line(f"{safe(workflow)} is about {pseudonym}")
