"""`holdfast fork`: a new workflow that starts where another one was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.cli.pointer import no_such_place, parse_pointer
from holdfast.cli.points import app_for, app_option, find_point
from holdfast.cli.run_inputs import read_value
from holdfast.domain.errors import InvalidStateError
from holdfast.domain.json_patch import EditError, Step
from holdfast.domain.tree import TAG, has_tags

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.travel.travelling import Point
    from holdfast.domain.state import WorkflowState


#: Threads of LangGraph begin so. What LangGraph knows of one is in its journal, which no fork takes along.
_THREADS = "langgraph/"


@click.command("fork", cls=StoreCommand)
@click.argument("point", metavar="POINT", callback=read_point)
@click.argument("new", metavar="NEW")
@click.option(
    "--set",
    "assignments",
    metavar="POINTER=JSON",
    multiple=True,
    help="Change the state there: --set /context/tone=dry; may be repeated.",
)
@app_option
@changes()
def command(
    call: Call, point: str, new: str, assignments: tuple[str, ...], app: str | None, change: Change
) -> None:
    """Start a new workflow from any point of another.

    POINT is a checkpoint, or WF@event:41 or WF@time:2026-01-11T14:30:00Z: then
    the events after the checkpoint before it are replayed. NEW is the id of the
    new workflow. The other workflow is left as it is. With --set the changed
    state is the second checkpoint of the new one.

    \b
    Example:
      holdfast fork WF-2026-001@event:41 WF-2026-001-b --json
    """
    from holdfast.application.edited_forks import check_free, fork_edited

    edits = _edits(assignments)
    program = app_for(app, point)
    # Looked for first: whoever mistyped it is told what may have been meant, and nothing was opened to write.
    with reading(call, app=program) as kit:
        found = find_point(kit, point)
        start = str(found)
        check_free(kit.store, new)
        # What does not fit is refused before there is a fork.
        changed = _edited(kit, found, new, edits) if edits else None
    places = {"set": [place for place, _ in edits]} if edits else {}
    told = {"workflow_id": new, "forked_from": start, **places}
    with_edits = f", with {safe(', '.join(place for place, _ in edits))} set" if edits else ""
    if change.dry_run:
        tell_plan(call.output, f"{safe(new)} would start from {safe(start)}{with_edits}", **told)
        return
    with writing(call, app=program, reason=change.reason, workflow_id=new) as service:
        if changed is None:
            forked = service.fork_workflow(start, new)
        else:
            forked = fork_edited(service, start, new, changed)
    if call.output.as_json:
        call.output.data({"id": str(forked), **told})
    else:
        call.output.line(f"{safe(forked)} starts from {safe(start)}{with_edits}")
    if start.startswith(_THREADS):
        call.output.note("note: LangGraph finds no thread in a fork; `copy_thread` of its saver makes one.")


def _edits(assignments: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Read what is to be set: a pointer, and a value as JSON where it is some, else as text."""
    edits = []
    for text in assignments:
        place, equals, value = text.partition("=")
        if not equals or not parse_pointer(place):
            raise click.UsageError(f"--set {text}: write /place/in/the/state=value")
        edits.append((place, read_value(value)))
        if has_tags([edits[-1][1]]):
            raise click.UsageError(f"--set {place}: a value must not hold the key {TAG}")
    return edits


def _edited(kit: Kit, found: Point, new: str, edits: list[tuple[str, Any]]) -> WorkflowState:
    """Answer the state with what is to be set, as that of the new workflow."""
    from holdfast.application.edited_forks import edited_state

    try:
        return edited_state(kit, found, new, [Step("put", place, value) for place, value in edits])
    except EditError as wrong:
        raise no_such_place(wrong.why, edits[wrong.index][0]) from None
    except InvalidStateError as wrong:
        raise click.UsageError(wrong.message) from None
