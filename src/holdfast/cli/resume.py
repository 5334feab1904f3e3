"""`holdfast resume`: go on with a workflow, or run a part of it again under another name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import find, find_workflow, reading
from holdfast.cli.points import is_point
from holdfast.cli.run_inputs import read_inputs
from holdfast.cli.run_options import Manner, program_named, run_options
from holdfast.cli.run_standing import begun_with, standing

if TYPE_CHECKING:
    from holdfast.cli.run_carrying import Order, Start
    from holdfast.execution.workflow import Workflow


@click.command("resume", cls=StoreCommand)
@click.argument("target", metavar="ID|CHECKPOINT", callback=read_point)
@click.option("--app", metavar="MODULE:WORKFLOW", help="The program that goes on with it.")
@click.option("--as", "new_id", metavar="NEW-ID", help="Go on under this name, and leave ID as it is.")
@click.option("--from", "agent", metavar="AGENT", help="Run this agent and all after it again; needs --as.")
@click.option(
    "--input",
    "inputs",
    metavar="FILE|JSON|KEY=VALUE",
    multiple=True,
    help="With --from: inputs to change; may be repeated.",
)
@run_options
def command(
    call: Call,
    target: str,
    app: str | None,
    new_id: str | None,
    agent: str | None,
    inputs: tuple[str, ...],
    **manner: Any,
) -> None:
    """Go on with a workflow, or run a part of it again.

    What was committed is kept and not done again. The program is named by
    --app, HOLDFAST_PROGRAM or holdfast.toml, never by the store; without it the
    name that the run was begun with is told. WF@42 with --as goes on from an
    earlier checkpoint, --from AGENT with --as from an agent. Ends as
    `holdfast run` does.

    \b
    Example:
      holdfast resume WF-2026-001 --app research.py:team
      holdfast resume WF-2026-001@42 --as WF-2026-001-b --app research.py:team
      holdfast resume WF-2026-001 --from write --as WF-2026-001-c --input tone=dry
    """
    how = Manner(**manner)
    how.check(call)
    _check_together(target, new_id, agent, inputs)
    from holdfast.cli.run_carrying import carry_out, tell_order
    from holdfast.cli.run_summary import conclude

    start = partial(_start, target=target, new_id=new_id, agent=agent, given=read_inputs(inputs))
    order = _order(call, how, app, _workflow_of(call, target), new_id, start)
    if how.change.dry_run:
        tell_order(call, order)
    else:
        conclude(call, carry_out(call, order))


def _order(
    call: Call,
    how: Manner,
    app: str | None,
    origin: str,
    new_id: str | None,
    start: Callable[[Workflow], Start],
) -> Order:
    """Find the program and what the run was begun with, and put together what is to be run."""
    from holdfast.cli.points import app_named
    from holdfast.cli.program_loading import load_workflow
    from holdfast.cli.run_carrying import Order

    types = app_named(None)
    fields = standing(call, origin, app=types) or {}
    known = begun_with(fields)
    program = program_named(app, known, origin)
    if not fields:
        call.output.note("warning: what it was begun with cannot be read; give --config again if it had any")
    workflow = load_workflow(program)
    return Order(
        program,
        workflow,
        new_id or origin,
        start(workflow),
        how.options(program, known),
        # Of a fork it is not known yet how much is kept.
        fields if new_id is None else {},
        workflow.app or types,
        events=how.events,
        change=how.change,
    )


def _check_together(target: str, new_id: str | None, agent: str | None, inputs: tuple[str, ...]) -> None:
    """Refuse what does not go together."""
    is_checkpoint = _is_checkpoint(target)
    if is_point(target):
        raise click.UsageError(
            f"{target} is no checkpoint: make a workflow of it with `holdfast fork`, and resume that"
        )
    if agent is not None and new_id is None:
        raise click.UsageError("--from needs --as: the workflow itself is left as it is")
    if agent is not None and is_checkpoint:
        raise click.UsageError("--from goes with the ID of a workflow, not with a checkpoint")
    if is_checkpoint and new_id is None:
        raise click.UsageError("a checkpoint is resumed under another name: give --as")
    if new_id is not None and agent is None and not is_checkpoint:
        raise click.UsageError("--as needs to know from where: ID@42, or --from AGENT")
    if inputs and agent is None:
        raise click.UsageError("--input needs --from: a run keeps the inputs it was begun with")


def _is_checkpoint(target: str) -> bool:
    """Tell whether a checkpoint was written; an "@" alone does not say so, ids may have one."""
    from holdfast.domain.ids import parse_ref

    return parse_ref(target).workflow_id != target


def _workflow_of(call: Call, target: str) -> str:
    """Answer the workflow that is meant, once what was written is known to be there."""
    with reading(call) as kit:
        return find(kit, target).workflow_id if _is_checkpoint(target) else find_workflow(kit, target)


def _start(
    workflow: Workflow, target: str, new_id: str | None, agent: str | None, given: Mapping[str, Any]
) -> Start:
    """Choose how the run begins."""
    if new_id is None:
        return lambda service, options: workflow.run(service, target, options=options)
    if agent is None:
        return lambda service, options: workflow.resume_from_checkpoint(
            service, target, new_workflow_id=new_id, options=options
        )
    return lambda service, options: workflow.rerun_from(
        service, target, agent, new_workflow_id=new_id, inputs=given or None, options=options
    )
