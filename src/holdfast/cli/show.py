"""`holdfast show`: one checkpoint, whatever it is encoded in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import meta_fields, time_text
from holdfast.cli.moments import read_point
from holdfast.cli.opening import at_its_store, find, reading, tell_looked
from holdfast.cli.output import Output, counted, json_safe, safe, size_text
from holdfast.cli.pointer import look_up, parse_pointer
from holdfast.cli.points import (
    app_for,
    app_option,
    find_point,
    is_point,
    point_fields,
    tell_points,
)
from holdfast.cli.values import pretty, summary
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.resolve import Found
    from holdfast.application.travel.travelling import Point

_LABEL_WIDTH = 12
_SUMMARY_WIDTH = 60


class _ShowCommand(StoreCommand):
    """Lets --state stand without a value, and never take the checkpoint's name for one."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = ["--state=" if word == "--state" else word for word in args[:end]]
        return super().parse_args(context, options + args[end:])


@click.command("show", cls=_ShowCommand)
@click.argument("checkpoint", metavar="ID", callback=read_point)
@click.option(
    "--state", metavar="[=POINTER]", help="Print the state as JSON, or a place in it: --state=/messages/0."
)
@click.option("--meta", is_flag=True, help="Print what is known about it, and do not read the state.")
@click.option("--raw", is_flag=True, help="Print the stored record, byte for byte.")
@click.option("--parents", is_flag=True, help="List what it grew out of, the nearest first.")
@click.option("--web", is_flag=True, help="Print its address in the dashboard, and nothing else.")
@click.option("--web-url", metavar="URL", help="Where the dashboard is. [default: as web_url says]")
@app_option
def command(call: Call, checkpoint: str, state: str | None, app: str | None, **how: Any) -> None:
    """Show one checkpoint: what it is, and its state.

    ID is WF@42, WF@latest, WF@42~2, WF@phase:2, WF@stage:NAME, a UUID or its
    beginning, the path of a checkpoint file, or WF for its newest checkpoint.
    WF@event:41 and WF@time:2026-01-11T14:30:00Z are points between checkpoints:
    the events after the checkpoint before are replayed.

    \b
    Example:
      holdfast show WF-2026-001@latest --state=/messages/0
    """
    view = View(state=state, **how)
    if is_point(checkpoint):
        if not view.is_of_state:
            raise click.UsageError("a point has a state and nothing else: --state is all that can be asked")
        _show_point(call, checkpoint, state, view.pointer, app)
        return
    call = at_its_store(call, checkpoint)
    with reading(call) as kit:
        found = find(kit, checkpoint)
        if view.web:
            _show_address(call, found, view.web_url)
            return
        show = _shown(kit, found, view)
        tell_looked(call, kit, AuditType.STATE_READ, [found])
        show(call.output)


@dataclass(frozen=True, slots=True)
class View:
    """What of a checkpoint is asked for."""

    state: str | None = None
    meta: bool = False
    raw: bool = False
    parents: bool = False
    web: bool = False
    web_url: str | None = None

    def __post_init__(self) -> None:
        if sum((self.state is not None, self.meta, self.raw, self.parents, self.web)) > 1:
            raise click.UsageError("--state, --meta, --raw, --parents and --web exclude each other")
        parse_pointer(self.state or "")

    @property
    def pointer(self) -> tuple[str, ...]:
        """The place in the state that is meant."""
        return parse_pointer(self.state or "")

    @property
    def is_of_state(self) -> bool:
        """Whether the state is enough to answer."""
        return not (self.meta or self.raw or self.parents or self.web)


def _shown(kit: Kit, found: Found, view: View) -> Callable[[Output], None]:
    """Read and verify what is asked for; answer how to print it."""
    if view.raw:
        return partial(_show_raw, found, _raw(kit, found))
    if view.meta:
        return partial(_show_meta, described(kit, found))
    if view.parents:
        from holdfast.cli.ancestors import ancestors, show_ancestors

        return partial(show_ancestors, found, ancestors(kit, found))
    if view.state is not None:
        tree, notes = state_of(kit, found)
        return partial(_show_state, found, look_up(tree, view.pointer), notes)
    return partial(_show_both, described(kit, found), *state_of(kit, found))


def _show_address(call: Call, found: Found, web_url: str | None) -> None:
    """Print where the dashboard shows a checkpoint; whether one is served there is not looked at."""
    from urllib.parse import quote

    from holdfast.config import Config

    base = Config.load({"web_url": web_url}).web_url
    address = f"{base.rstrip('/')}/#/checkpoints/{quote(str(found), safe='')}"
    if call.output.as_json:
        call.output.data({"id": str(found), "url": address})
    else:
        call.output.line(safe(address))


def _show_point(call: Call, text: str, state: str | None, pointer: tuple[str, ...], app: str | None) -> None:
    """Show the state at a point between checkpoints."""
    with reading(call, app=app_for(app, text)) as kit:
        point = find_point(kit, text)
        part = look_up(point.tree, pointer)
        tell_points(call, kit, AuditType.STATE_READ, [point])
    notes = point.remarks
    if state is not None:
        _show_state(point, part, notes, call.output)
    elif call.output.as_json:
        call.output.data({"point": point_fields(point), "state": as_json_tree(point.tree), "notes": notes})
    else:
        _tell_notes(call.output, notes)
        call.output.lines(_point_lines(point))
        _show_fields(point.tree, "replayed", call.output)


def _point_lines(point: Point) -> list[str]:
    shown = {
        "point": str(point),
        "from": str(point.found) if point.found else "the first event",
        "replayed": counted(point.replayed, "event"),
    }
    return [f"{label:<{_LABEL_WIDTH}} {safe(value)}" for label, value in shown.items()]


def _raw(kit: Kit, found: Found) -> bytes:
    from holdfast.application.loading import record_fields

    record_fields(kit.store, found.workflow_id, found.entry)
    return next(iter(kit.store.records(found.workflow_id, found.entry.sequence, found.entry.sequence)))


def _show_raw(found: Found, data: bytes, output: Output) -> None:
    """Print the record's bytes: exactly into a pipe, spelled out on a terminal."""
    if output.as_json:
        from base64 import b64encode

        output.data({"id": str(found), "record_base64": b64encode(data).decode()})
    elif sys.stdout.isatty():
        output.line(json_safe(data.decode("utf-8", "backslashreplace").rstrip("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def _show_meta(fields: dict[str, Any], output: Output) -> None:
    if output.as_json:
        output.data({"checkpoint": fields})
    else:
        output.lines(_meta_lines(output, fields))


def _show_state(found: Found | Point, part: Any, notes: list[str], output: Output) -> None:
    if output.as_json:
        output.data({"id": str(found), "state": as_json_tree(part), "notes": notes})
        return
    _tell_notes(output, notes)
    output.line(pretty(part))


def _show_both(fields: dict[str, Any], tree: dict[str, Any], notes: list[str], output: Output) -> None:
    if output.as_json:
        output.data({"checkpoint": fields, "state": as_json_tree(tree), "notes": notes})
        return
    _tell_notes(output, notes)
    output.lines(_meta_lines(output, fields))
    _show_fields(tree, "verified", output)


def _show_fields(tree: dict[str, Any], how: str, output: Output) -> None:
    """Print a line for each field of a state."""
    output.line()
    output.line(output.bold(f"state, {counted(len(tree), 'field')}, {how}"))
    label_width = max((len(safe(name)) for name in tree), default=0)
    for name, value in tree.items():
        output.line(f"  {safe(name):<{label_width}}  {safe(summary(value, _SUMMARY_WIDTH))}")


def _tell_notes(output: Output, notes: list[str]) -> None:
    for note in notes:
        output.note(f"note: {safe(note)}")


def state_of(kit: Kit, found: Found) -> tuple[dict[str, Any], list[str]]:
    """Answer a checkpoint's state as a plain tree, verified, and what damage was worked around."""
    from holdfast.application.reading import Reader

    reader = Reader(kit)
    restored = reader.restored(found)
    return reader.whole(found, restored), list(restored.notes)


def described(kit: Kit, found: Found) -> dict[str, Any]:
    """Answer everything about a checkpoint but the state, as it stands in its verified record."""
    from holdfast.application.loading import record_fields

    record = record_fields(kit.store, found.workflow_id, found.entry)
    keyframes = {keyframe.sequence: keyframe for keyframe in kit.store.keyframes(found.workflow_id)}
    keyframe = keyframes.get(found.entry.sequence)
    return {
        **meta_fields(found.workflow_id, found.entry),
        "agent_version": record.get("agent_version"),
        "schema_version": record.get("schema"),
        "resume_handler": record.get("handler"),
        "max_retries": record.get("max_retries", DEFAULT_MAX_RETRIES),
        "depends_on": record.get("deps", []),
        "forked_from": record.get("forked_from"),
        "events_since_parent": record.get("events", 1),
        "operations": len(record["ops"]) if "ops" in record else None,
        "keyframe": {"format": keyframe.suffix, "bytes": keyframe.length} if keyframe else None,
        "blobs": list(found.entry.blobs),
        "stage_state": as_json_tree(record.get("stage_state")),
        "agent_state": as_json_tree(record.get("agent_state")),
        **_said(kit, found),
        **_vouched(kit, found),
    }


def _said(kit: Kit, found: Found) -> dict[str, Any]:
    """Answer what people said of a checkpoint since it was made."""
    from holdfast.application.annotating import annotation_of
    from holdfast.application.reading import Reader

    said = annotation_of(Reader(kit), found)
    return {"labels": list(said.labels), "note": said.note, "noted_by": said.by}


def _vouched(kit: Kit, found: Found) -> dict[str, Any]:
    """Answer how far the trail vouches for a checkpoint, and which Holdfast made it."""
    from holdfast.application.audit.vouching import vouch
    from holdfast.cli.audit_opening import log_over

    said = vouch(kit.store, log_over(kit), found)
    names = ("index", "session_id", "seq", "size", "key", "is_own_key", "problem")
    signature = {"state": str(said.standing), **{name: getattr(said, name) for name in names}}
    return {"producer": said.producer, "signature": signature}


def _meta_lines(output: Output, fields: dict[str, Any]) -> list[str]:
    shown = {
        "checkpoint": fields["id"],
        "uuid": fields["uuid"],
        "created": f"{time_text(fields['created_at'])} UTC",
        "type": fields["type"],
        "status": fields["status"] + (", pinned" if fields["pinned"] else ""),
        "stage": fields["stage_id"],
        "agent": _agent(fields),
        "session": fields["session_id"],
        "phase": fields["phase"],
        "labels": ", ".join(filter(None, (fields["label"], *fields["labels"]))) or None,
        "note": fields["note"] or None,
        "parent": fields["parent"],
        "forked from": _origin(fields["forked_from"]),
        "handler": fields["resume_handler"],
        "state": size_text(fields["size_bytes"]),
        "stored": _stored(fields),
        "checksum": fields["checksum"],
        "signature": _signature(fields["signature"]),
        "made with": f"Holdfast {fields['producer']}" if fields["producer"] else None,
    }
    given = {label: value for label, value in shown.items() if value is not None}
    return [f"{label:<{_LABEL_WIDTH}} {safe(value)}" for label, value in given.items()]


def _signature(said: dict[str, Any]) -> str:
    """Say in words how far the trail vouches for a checkpoint."""
    words = {
        "signed": f"signed, entry {said['index']} under the head of {said['size']:,}",
        "waiting": "waits for the next signed head",
        "untold": "no entry of the trail tells of it",
        "broken": "does not verify",
        "unknown": "not known",
    }[said["state"]]
    return f"{words} ({said['problem']})" if said["problem"] else words


def _agent(fields: dict[str, Any]) -> str | None:
    version = fields["agent_version"]
    return f"{fields['agent_id']} {version}" if fields["agent_id"] and version else fields["agent_id"]


def _origin(forked_from: dict[str, Any] | None) -> str | None:
    if not forked_from:
        return None
    event_seq = forked_from.get("event_seq")
    point = forked_from.get("seq") if event_seq is None else f"event:{event_seq}"
    return f"{forked_from.get('wf')}@{point}"


def _stored(fields: dict[str, Any]) -> str:
    parts = [f"record of {size_text(fields['stored_bytes'])}"]
    if fields["operations"] is not None:
        parts.append(counted(fields["operations"], "change"))
    if fields["keyframe"]:
        parts.append(f"keyframe {fields['keyframe']['format']} of {size_text(fields['keyframe']['bytes'])}")
    if fields["blobs"]:
        parts.append(counted(len(fields["blobs"]), "blob"))
    return ", ".join(parts)
