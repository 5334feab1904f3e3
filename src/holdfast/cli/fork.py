"""`holdfast fork`: a new workflow that starts where another one was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.cli.points import app_for, app_option, find_point
from holdfast.domain.errors import CheckpointConflictError
from holdfast.domain.ids import check_workflow_id

if TYPE_CHECKING:
    from holdfast.application.kit import Kit


@click.command("fork", cls=StoreCommand)
@click.argument("point", metavar="POINT")
@click.argument("new", metavar="NEW")
@app_option
def command(call: Call, point: str, new: str, app: str | None) -> None:
    """Start a new workflow from any point of another.

    POINT is a checkpoint, or WF@event:41 or WF@time:2026-01-11T14:30:00Z: then
    the events after the checkpoint before it are replayed. NEW is the id of the
    new workflow. The other workflow is left as it is.

    \b
    Example:
      holdfast fork WF-2026-001@event:41 WF-2026-001-b --json
    """
    program = app_for(app, point)
    # Looked for first: whoever mistyped it is told what may have been meant, and nothing was opened to write.
    with reading(call, app=program) as kit:
        start = str(find_point(kit, point))
        _check_free(kit, new)
    with writing(call, app=program) as service:
        forked = service.fork_workflow(start, new)
    if call.output.as_json:
        call.output.data({"id": str(forked), "workflow_id": new, "forked_from": start})
    else:
        call.output.line(f"{safe(forked)} starts from {safe(start)}")


def _check_free(kit: Kit, new: str) -> None:
    """Refuse the name of a workflow that is there."""
    if kit.store.head(check_workflow_id(new)).sequence:
        raise CheckpointConflictError(
            "there is a workflow of that name already", place=new, hint="Give the new workflow another name."
        )
