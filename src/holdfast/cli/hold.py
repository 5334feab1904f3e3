"""`holdfast hold`: legal holds, which keep what they cover from being removed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import safe

if TYPE_CHECKING:
    from holdfast.application.holding import Hold


@click.group("hold", no_args_is_help=True)
def command() -> None:
    """Keep a workflow, a person's data or the whole store from being removed.

    While a hold stands, pruning, deleting and erasing what it covers is
    refused, and the refusal is in the trail.

    \b
    Example:
      holdfast hold place --workflow WF-2026-001 --reason "case 17"
    """


@command.command("place", cls=StoreCommand)
@click.option("--workflow", metavar="WORKFLOW", help="Keep this workflow.")
@click.option("--subject", metavar="NAME", help="Keep everything that is about this person.")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays in the trail, so name nobody.")
def place(call: Call, workflow: str | None, subject: str | None, reason: str) -> None:
    """Place a hold; without --workflow and --subject it covers the whole store.

    \b
    Example:
      holdfast hold place --subject alice@example.com --reason "claim 4"
    """
    if workflow and subject:
        raise click.UsageError("--workflow and --subject exclude each other")
    if workflow:
        with reading(call) as kit:
            find_workflow(kit, workflow)
    with writing(call) as service:
        hold = service.holds.place(workflow_id=workflow, subject=subject, reason=reason)
    _print(call, hold, "Placed")


@command.command("release", cls=StoreCommand)
@click.argument("hold_id", metavar="HOLD")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays in the trail.")
def release(call: Call, hold_id: str, reason: str) -> None:
    """Release a hold.

    \b
    Example:
      holdfast hold release 3f2a91c0 --reason "case closed"
    """
    with writing(call) as service:
        hold = service.holds.release(hold_id, reason=reason)
    _print(call, hold, "Released")


@command.command("list", cls=StoreCommand)
def listing(call: Call) -> None:
    """List the holds that stand.

    \b
    Example:
      holdfast hold list
    """
    from holdfast.application.holding import standing

    with reading(call) as kit:
        holds = standing(kit.store)
    if call.output.as_json:
        call.output.data({"holds": [asdict(hold) for hold in holds]})
        return
    if not holds:
        call.output.note("No hold stands.")
        return
    rows = [
        (hold.id, hold.covers, time_text(hold.placed_at), hold.placed_by or "", hold.reason) for hold in holds
    ]
    call.output.table(("HOLD", "COVERS", "SINCE", "BY", "REASON"), rows)


def _print(call: Call, hold: Hold, done: str) -> None:
    if call.output.as_json:
        call.output.data(asdict(hold))
    else:
        call.output.line(f"{done} hold {safe(hold.id)} on {safe(hold.covers)}")
