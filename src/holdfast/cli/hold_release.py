"""`holdfast hold release`: let what a hold covers be removed again."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.domain.errors import CheckpointNotFoundError


@click.command("release", cls=StoreCommand)
@click.argument("hold_id", metavar="HOLD")
@changes(needs_reason=True)
def command(call: Call, hold_id: str, change: Change) -> None:
    """Release a hold.

    \b
    Example:
      holdfast hold release 3f2a91c0 --reason "case closed"
    """
    if change.dry_run:
        _plan(call, hold_id)
        return
    with writing(call) as service:
        hold = service.holds.release(hold_id, reason=change.why)
    if call.output.as_json:
        call.output.data(asdict(hold))
    else:
        call.output.line(f"Released hold {safe(hold.id)} on {safe(hold.covers)}")


def _plan(call: Call, hold_id: str) -> None:
    """Tell which hold would be released."""
    from holdfast.application.holding import standing

    with reading(call) as kit:
        hold = next((one for one in standing(kit.store) if one.id == hold_id), None)
    if hold is None:
        raise CheckpointNotFoundError("no such hold stands", place=hold_id, hint="See `holdfast hold list`.")
    tell_plan(call.output, f"Would release hold {safe(hold.id)} on {safe(hold.covers)}", **asdict(hold))
