"""`holdfast quarantine release`: let a checkpoint be used again."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.cli.quarantine_list import as_fields


@click.command("release", cls=StoreCommand)
@click.argument("name")
@changes(needs_reason=True)
def command(call: Call, name: str, change: Change) -> None:
    """Let a checkpoint be used that verifies again.

    Its bytes are checked first; where they are still wrong it is refused. The
    evidence stays.

    \b
    Example:
      holdfast quarantine release NAME --reason "restored from backup"
    """
    if change.dry_run:
        from holdfast.application.quarantine_files import report_of

        with reading(call) as kit:
            found = report_of(kit.store, name)
        tell_plan(call.output, f"Would release {safe(found.place)} if it verifies again", **as_fields(found))
        return
    with writing(call) as service:
        report = service.quarantine.release(name, change.why)
    if call.output.as_json:
        call.output.data(as_fields(report))
    else:
        call.output.line(f"Released {safe(report.place)}: it may be restored again")
