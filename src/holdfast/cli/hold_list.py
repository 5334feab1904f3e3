"""`holdfast hold list`: the holds that stand."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import reading


@click.command("list", cls=StoreCommand)
def command(call: Call) -> None:
    """List the holds that stand.

    \b
    Example:
      holdfast hold list --json
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
