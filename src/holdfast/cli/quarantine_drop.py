"""`holdfast quarantine drop`: remove evidence for good."""

from __future__ import annotations

import click

from holdfast.cli.asking import confirm
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.cli.quarantine_list import as_fields


@click.command("drop", cls=StoreCommand)
@click.argument("name")
@click.option("--reason", metavar="TEXT", required=True, help="Why; it stays in the trail, so name nobody.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def command(call: Call, name: str, reason: str, yes: bool) -> None:
    """Remove evidence for good.

    What is damaged in the store itself stays unusable: its checksum is still
    wrong. A legal hold prevents it.

    \b
    Example:
      holdfast quarantine drop NAME --reason "case closed" --yes
    """
    from holdfast.application.quarantine_files import report_or_remains

    with reading(call) as kit:
        found = report_or_remains(kit.store, name)
    confirm(call.output, f"Drop the evidence of {found.place} for good?", yes=yes)
    with writing(call) as service:
        report = service.quarantine.drop(name, reason)
    if call.output.as_json:
        call.output.data(as_fields(report))
    else:
        call.output.line(f"Dropped the evidence of {safe(report.place)}")
