"""`holdfast subject`: who workflows are about, and giving them everything about them."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import counted, safe, size_text


@click.group("subject", no_args_is_help=True)
def command() -> None:
    """Say whom a workflow is about, and give people what is about them.

    The trail names people by a pseudonym; their names are where they can be
    erased.

    \b
    Example:
      holdfast subject export alice@example.com --out alice
    """


@command.command("declare", cls=StoreCommand)
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("subject", metavar="NAME")
def declare(call: Call, workflow: str, subject: str) -> None:
    """Say that a workflow is about a person.

    \b
    Example:
      holdfast subject declare WF-2026-001 alice@example.com
    """
    with reading(call) as kit:
        find_workflow(kit, workflow)
    with writing(call) as service:
        pseudonym = service.subjects.declare(workflow, subject)
    if call.output.as_json:
        call.output.data({"workflow_id": workflow, "pseudonym": pseudonym})
    else:
        call.output.line(f"{safe(workflow)} is about {pseudonym}")


@command.command("export", cls=StoreCommand)
@click.argument("subject", metavar="NAME")
@click.option("--out", metavar="FOLDER", required=True, help="A folder that is empty, or not there.")
def export(call: Call, subject: str, out: str) -> None:
    """Write everything about a person into a folder, as JSON, with proofs.

    \b
    Example:
      holdfast subject export alice@example.com --out alice
    """
    with writing(call) as service:
        done = service.subject_export.write(subject, out)
    if call.output.as_json:
        fields = {"folder": str(done.folder), "files": done.files, "bytes": done.bytes}
        workflows = {"workflows": done.workflows, "shared_workflows": done.shared_workflows}
        call.output.data({**fields, **workflows})
        return
    told = (
        f"{counted(len(done.workflows), 'workflow')}, {counted(done.files, 'file')}, {size_text(done.bytes)}"
    )
    call.output.line(f"Wrote {told} to {safe(done.folder)}")
    for workflow_id in done.shared_workflows:
        call.output.note(
            f"{safe(workflow_id)} is about others too: only what was sealed for the person is in it"
        )
