"""`holdfast audit prune`: old payloads go, the entries and every proof stay."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import told_why, writing
from holdfast.cli.output import counted

if TYPE_CHECKING:
    from holdfast.application.audit.payload_pruning import PrunedPayloads


@click.command("prune", cls=StoreCommand)
@click.option(
    "--older-than-days",
    metavar="N",
    type=click.IntRange(min=0),
    required=True,
    help="Remove payloads of entries older than N days; audit_retain_days at least.",
)
@changes()
def command(call: Call, older_than_days: int, change: Change) -> None:
    """Remove old payloads; entries and proofs stay.

    Entries are never removed: they hold references only, and every proof
    rests on them. What a legal hold covers stays.

    \b
    Example:
      holdfast audit prune --older-than-days 400 --dry-run
    """
    with writing(call) as service:
        plan = service.audit.prune_payloads(older_than_days, dry_run=True)
        if change.dry_run or not plan.payloads:
            _print(call, plan)
            return
        change.confirm(call.output, f"Remove {counted(plan.payloads, 'payload')} for good?")
        with told_why(service, change.reason):
            _print(call, service.audit.prune_payloads(older_than_days))


def _print(call: Call, done: PrunedPayloads) -> None:
    if call.output.as_json:
        call.output.data(asdict(done))
        return
    verb = "Would remove" if done.dry_run else "Removed"
    call.output.line(f"{verb} {counted(done.payloads, 'payload')}; {done.held:,} kept by a legal hold")
