"""`holdfast audit show`: one entry, its payload opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.audit_log import fields_of
from holdfast.cli.audit_opening import find_line, looking
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, tell
from holdfast.cli.output import Output, safe
from holdfast.cli.values import pretty
from holdfast.domain.audit_type import AuditType
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.application.audit.audit_event import AuditEvent

_LABEL_WIDTH = 12


@click.command("show", cls=StoreCommand)
@click.argument("entry", metavar="SESSION#SEQ|SESSION:ID")
def command(call: Call, entry: str) -> None:
    """Show one entry and what it holds.

    The payload is opened, and that somebody did so is told in the trail.

    \b
    Example:
      holdfast audit show cli-2026-01-31#3 --json
    """
    from holdfast.application.audit.audit_event import open_event

    with looking(call) as (kit, _):
        found, line = find_line(kit, entry)
        told = open_event(kit, line)
        place = kit.store.place(found.session_id, found.seq)
        facts: dict[str, int | str] = {"session": found.session_id, "seq": found.seq}
        type = AuditType.SECRET_REVEALED if found.payload else AuditType.TRAIL_READ
        tell(call, kit, [entry_of(kit, type, found.workflow_id, facts)])
    _print(call.output, fields_of(found), told, place)


def _print(output: Output, fields: dict[str, Any], told: AuditEvent, place: int | None) -> None:
    payload = told.data
    if output.as_json:
        shown = {"entry": fields, "payload_state": str(told.state), "payload": as_json_tree(payload)}
        output.data({**shown, "leaf": place})
        return
    for label, value in _shown(fields, place).items():
        output.line(f"{label:<{_LABEL_WIDTH}} {safe(value)}")
    if payload is None:
        output.line(f"{'payload':<{_LABEL_WIDTH}} {told.state}")
    else:
        output.line()
        output.line(output.bold("payload, verified"))
        output.line(pretty(payload))


def _shown(fields: dict[str, Any], place: int | None) -> dict[str, Any]:
    facts = {name: value for name, value in fields.get("data", {}).items() if name != "payload"}
    shown = {name: value for name, value in fields.items() if name not in ("data", "seq")}
    shown["session"] = f"{fields['session']}, entry {fields['seq']}"
    shown["leaf"] = "not in the tree yet" if place is None else f"{place} of the tree"
    return {**shown, **facts}
