"""`holdfast quarantine release`: let a checkpoint be used again."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import safe
from holdfast.cli.quarantine_list import as_fields


@click.command("release", cls=StoreCommand)
@click.argument("name")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays in the trail, so name nobody.")
def command(call: Call, name: str, reason: str) -> None:
    """Let a checkpoint be used that verifies again.

    Its bytes are checked first; where they are still wrong it is refused. The
    evidence stays.

    \b
    Example:
      holdfast quarantine release NAME --reason "restored from backup"
    """
    with writing(call) as service:
        report = service.quarantine.release(name, reason)
    if call.output.as_json:
        call.output.data(as_fields(report))
    else:
        call.output.line(f"Released {safe(report.place)}: it may be restored again")
