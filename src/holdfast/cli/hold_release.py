"""`holdfast hold release`: let what a hold covers be removed again."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import safe


@click.command("release", cls=StoreCommand)
@click.argument("hold_id", metavar="HOLD")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays in the trail, so name nobody.")
def command(call: Call, hold_id: str, reason: str) -> None:
    """Release a hold.

    \b
    Example:
      holdfast hold release 3f2a91c0 --reason "case closed"
    """
    with writing(call) as service:
        hold = service.holds.release(hold_id, reason=reason)
    if call.output.as_json:
        call.output.data(asdict(hold))
    else:
        call.output.line(f"Released hold {safe(hold.id)} on {safe(hold.covers)}")
