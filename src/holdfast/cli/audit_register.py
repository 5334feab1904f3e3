"""`holdfast audit register`: the record of processing activities, and what its owner has to say for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_files import read_text, write_file
from holdfast.cli.audit_opening import keeping, looking
from holdfast.cli.changing import Change, changes
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import Output, counted, safe
from holdfast.domain.audit_type import AuditType
from holdfast.domain.json_reading import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("register", cls=StoreCommand)
@click.option("--set", "said_in", metavar="FILE", help="Keep what this JSON file says about the processing.")
@click.option("--html", "page", metavar="FILE", help="Write a page to print there.")
@changes()
def command(call: Call, said_in: str | None, page: str | None, change: Change) -> None:
    """Tell what is processed, why and for how long (GDPR, Art. 30).

    Purposes, categories and recipients are said once with --set; time limits
    and measures are read off the store. What nobody said is named.

    \b
    Example:
      holdfast audit register --set processing.json --html register.html
    """
    if said_in is not None:
        _keep(call, said_in, change)
    register = _register(call)
    if page is not None:
        from holdfast.application.audit.processing_register import render_register

        write_file(page, render_register(register).encode())
        call.output.note(f"Wrote {safe(page)}.")
    if call.output.as_json:
        call.output.data(register)
    elif page is None:
        _print(call.output, register)


def _keep(call: Call, path: str, change: Change) -> None:
    """Put what the owner says into the store; a dry run reads it, and keeps nothing."""
    try:
        said = read_json(read_text(path))
    except ValueError:
        raise click.UsageError(f"{path} is not JSON") from None
    if change.dry_run:
        call.output.note(f"{safe(path)} can be read. Nothing was changed; below is what holds now.")
        return
    with keeping(call, reason=change.reason) as log:
        log.set_register(said)


def _register(call: Call) -> dict[str, Any]:
    from holdfast.application.audit.reporting import Reports

    with looking(call) as (kit, log):
        tell(call, kit, [entry_of(kit, AuditType.TRAIL_EXPORTED, None, {"format": "register"})])
        return Reports(kit, log.keeper, log.trust()).register()


def _print(output: Output, register: Mapping[str, Any]) -> None:
    from holdfast.application.audit.processing_register import value_text

    for party, about in register["parties"].items():
        output.line(f"{party:<20} {safe(value_text(about))}")
    for activity in register["activities"]:
        output.line(
            f"{'activity':<20} {safe(activity['name'])}, {counted(activity['workflows_now'], 'workflow')}"
        )
        for name in ("purposes", "legal_basis", "subjects", "data", "recipients", "transfers"):
            if name in activity:
                output.line(f"  {name:<18} {safe(value_text(activity[name]))}")
    for name, value in {**register["time_limits"], **register["measures"], **register["observed"]}.items():
        output.line(f"{name:<20} {safe(value_text(value))}")
    missing = output.paint(f"{'missing':<20}", "warn")
    for name in register["missing"]:
        output.line(f"{missing} {safe(name)}")
