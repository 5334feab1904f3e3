"""`holdfast hold place`: keep something from being removed."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe


@click.command("place", cls=StoreCommand)
@click.option("--workflow", metavar="WORKFLOW", help="Keep this workflow.")
@click.option("--subject", metavar="NAME", help="Keep everything that is about this person.")
@changes(needs_reason=True)
def command(call: Call, workflow: str | None, subject: str | None, change: Change) -> None:
    """Place a hold.

    Without --workflow and --subject it covers the whole store.

    \b
    Example:
      holdfast hold place --workflow WF-2026-001 --reason "case 17"
    """
    if workflow and subject:
        raise click.UsageError("--workflow and --subject exclude each other")
    if workflow:
        with reading(call) as kit:
            find_workflow(kit, workflow)
    if change.dry_run:
        covered = workflow or subject or "the whole store"
        text = f"Would place a hold on {safe(covered)}"
        tell_plan(call.output, text, workflow_id=workflow, subject=subject)
        return
    with writing(call) as service:
        hold = service.holds.place(workflow_id=workflow, subject=subject, reason=change.why)
    if call.output.as_json:
        call.output.data(asdict(hold))
    else:
        call.output.line(f"Placed hold {safe(hold.id)} on {safe(hold.covers)}")
