"""`holdfast quarantine drop`: remove evidence for good."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.cli.quarantine_list import as_fields


@click.command("drop", cls=StoreCommand)
@click.argument("name")
@changes(needs_reason=True)
def command(call: Call, name: str, change: Change) -> None:
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
    if change.dry_run:
        tell_plan(call.output, f"Would drop the evidence of {safe(found.place)}", **as_fields(found))
        return
    change.confirm(call.output, f"Drop the evidence of {found.place} for good?")
    with writing(call) as service:
        report = service.quarantine.drop(name, change.why)
    if call.output.as_json:
        call.output.data(as_fields(report))
    else:
        call.output.line(f"Dropped the evidence of {safe(report.place)}")
