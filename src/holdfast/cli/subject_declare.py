"""`holdfast subject declare`: say whom a workflow is about."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe


@click.command("declare", cls=StoreCommand)
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("subject", metavar="NAME")
def command(call: Call, workflow: str, subject: str) -> None:
    """Say that a workflow is about a person.

    \b
    Example:
      holdfast subject declare WF-2026-001 ann@example.com --json
    """
    with reading(call) as kit:
        find_workflow(kit, workflow)
    with writing(call) as service:
        pseudonym = service.subjects.declare(workflow, subject)
    if call.output.as_json:
        call.output.data({"workflow_id": workflow, "pseudonym": pseudonym})
    else:
        call.output.line(f"{safe(workflow)} is about {pseudonym}")
