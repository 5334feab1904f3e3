"""`holdfast quarantine list`: what was set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.opening import reading
from holdfast.cli.output import size_text

if TYPE_CHECKING:
    from holdfast.domain.quarantine import Quarantined


@click.command("list", cls=StoreCommand)
@click.option("--open", "only_open", is_flag=True, help="Leave out what was released or rebuilt.")
def command(call: Call, only_open: bool) -> None:
    """List what was set aside.

    \b
    Example:
      holdfast quarantine list --open --json
    """
    from holdfast.application.quarantine_files import reports

    with reading(call) as kit:
        found = [one for one in reports(kit.store) if not (only_open and one.released)]
    if call.output.as_json:
        call.output.data({"quarantined": [as_fields(one) for one in found]})
        return
    if not found:
        call.output.note("Nothing is in quarantine.")
        return
    rows = [
        (one.name, one.place, status(one), time_text(one.found_at), size_text(one.size_bytes), one.reason)
        for one in found
    ]
    call.output.table(("NAME", "WHAT", "STATUS", "FOUND (UTC)", "SIZE", "REASON"), rows, right="    r")


def status(one: Quarantined) -> str:
    """Say how it stands."""
    if one.released is not None:
        return "released"
    return "refused" if one.bars else "kept"


def as_fields(one: Quarantined) -> dict[str, Any]:
    """Write a report for programs."""
    from dataclasses import asdict

    return {**asdict(one), "status": status(one)}
