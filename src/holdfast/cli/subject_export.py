"""`holdfast subject export`: everything about a person, for that person."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import counted, safe, size_text


@click.command("export", cls=StoreCommand)
@click.argument("subject", metavar="NAME")
@click.option("--out", metavar="FOLDER", required=True, help="A folder that is empty, or not there.")
def command(call: Call, subject: str, out: str) -> None:
    """Write everything about a person into a folder.

    States, events and audit entries as JSON, with a proof for each entry that
    a signed head covers. What is about others too is left out.

    \b
    Example:
      holdfast subject export ann@example.com --out ann
    """
    with writing(call) as service:
        done = service.subject_export.write(subject, out)
    if call.output.as_json:
        fields = {"folder": str(done.folder), "files": done.files, "bytes": done.bytes}
        workflows = {"workflows": done.workflows, "shared_workflows": done.shared_workflows}
        call.output.data({**fields, **workflows})
        return
    counts = counted(len(done.workflows), "workflow"), counted(done.files, "file"), size_text(done.bytes)
    call.output.line(f"Wrote {', '.join(counts)} to {safe(done.folder)}")
    for workflow_id in done.shared_workflows:
        call.output.note(f"{safe(workflow_id)}: only what was sealed for the person, it is about others too")
