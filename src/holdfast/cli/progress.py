"""`holdfast progress`: print the progress report of a workflow."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import safe
from holdfast.cli.run_standing import report_path
from holdfast.domain.audit_type import AuditType


@click.command("progress", cls=StoreCommand)
@click.argument("workflow_id", metavar="ID")
def command(call: Call, workflow_id: str) -> None:
    """Print the progress report of a workflow.

    It is made from the journal, so it is whole also where a process died before
    it wrote the file, and where no file is kept. Nothing is changed.

    \b
    Example:
      holdfast progress WF-2026-001 --store .holdfast
    """
    from holdfast.application.progress_files import ProgressFiles

    with reading(call) as kit:
        find_workflow(kit, workflow_id)
        text = ProgressFiles(kit).rebuild(workflow_id)
        path = report_path(kit, workflow_id)
        tell(call, kit, [entry_of(kit, AuditType.EVENTS_READ, workflow_id)])
    if call.output.as_json:
        call.output.data({"workflow_id": workflow_id, "report": text, "file": path})
        return
    call.output.lines(safe(line) for line in text.splitlines())
    if path is not None:
        call.output.note(f"note: it is also in {safe(path)}")
