"""`holdfast run`: run a workflow of a program, and show how it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.run_inputs import read_inputs
from holdfast.cli.run_options import Manner, run_options
from holdfast.domain.ids import check_workflow_id

if TYPE_CHECKING:
    from holdfast.execution.workflow import Workflow


@click.command("run", cls=StoreCommand)
@click.argument("program", metavar="MODULE:WORKFLOW")
@click.option("--id", "workflow_id", metavar="ID", help="Name of the run. [default: a new one]")
@click.option(
    "--input",
    "inputs",
    metavar="FILE|JSON|KEY=VALUE",
    multiple=True,
    help="What the agents are given; may be repeated; - for stdin.",
)
@run_options
def command(
    call: Call, program: str, workflow_id: str | None, inputs: tuple[str, ...], **manner: Any
) -> None:
    """Run a workflow, and show how it goes on.

    MODULE:WORKFLOW names an object in a module or in a file: `flows:team`,
    `flows.py:team`. An ID that exists is resumed, and nothing that was
    committed is done again. Ends with 1 if the store does not have all of it,
    with 7 if an agent failed, with 8 if it waits for an answer, with 9 if it
    was paused and with 14 if it was cancelled. SIGTERM and SIGINT end it with a
    last checkpoint.

    \b
    Example:
      holdfast run research.py:team --id WF-2026-001 --input question=kelp
    """
    how = Manner(**manner)
    how.check(call)
    given = read_inputs(inputs)
    from holdfast.cli.points import app_named
    from holdfast.cli.program_loading import load_workflow
    from holdfast.cli.run_carrying import Order, carry_out, tell_order
    from holdfast.cli.run_standing import begun_with, standing
    from holdfast.cli.run_summary import conclude

    workflow = load_workflow(program)
    app = workflow.app or app_named(None)
    named = _new_id(workflow) if workflow_id is None else _checked(workflow_id)
    fields = (standing(call, named, app=app) if workflow_id is not None else None) or {}
    if workflow_id is None and not how.change.dry_run:
        _tell_id(call, named)
    order = Order(
        program,
        workflow,
        named,
        lambda service, options: workflow.run(service, named, given, options=options),
        how.options(program, begun_with(fields)),
        fields,
        app,
        creates=True,
        events=how.events,
        change=how.change,
    )
    if how.change.dry_run:
        tell_order(call, order)
    else:
        conclude(call, carry_out(call, order))


def _checked(workflow_id: str) -> str:
    """Answer an id that the other commands can be given as it is."""
    from holdfast.domain.ids import parse_ref

    check_workflow_id(workflow_id)
    if workflow_id.startswith("-") or parse_ref(workflow_id).workflow_id != workflow_id:
        raise click.UsageError(f"--id {workflow_id}: elsewhere that would mean an option or a checkpoint")
    return workflow_id


def _new_id(workflow: Workflow) -> str:
    """Name a run by its workflow, the time, and something that no other has."""
    import secrets
    from datetime import UTC, datetime

    return f"{workflow.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _tell_id(call: Call, workflow_id: str) -> None:
    """Say first of all what the run is called: whoever kills it has to know."""
    if not call.output.as_json:
        click.echo(workflow_id)
