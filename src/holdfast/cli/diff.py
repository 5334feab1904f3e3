"""`holdfast diff`: what changed between two points, as operations a person can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import at_its_store, is_file, reading
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.pointer import parse_pointer
from holdfast.cli.points import app_for, app_option, find_point, tell_points, travel_in
from holdfast.cli.trees import Branch
from holdfast.cli.values import short_json
from holdfast.domain.audit_type import AuditType
from holdfast.domain.plainjson import as_json_tree
from holdfast.domain.tree import NOTHING

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.domain.delta import Operation

#: Operations, each with what it replaces.
Shown = Sequence[tuple["Operation", Any]]

_VALUE_WIDTH = 48
_KINDS = ("added", "removed", "changed")


@click.command("diff", cls=StoreCommand)
@click.argument("a", metavar="A", callback=read_point)
@click.argument("b", metavar="[B]", required=False, callback=read_point)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "tree", "stat", "patch", "json"]),
    default="text",
    show_default=True,
    help="How to show the changes; patch is JSON Patch (RFC 6902).",
)
@click.option("--path", metavar="POINTER", default="", help="Only what changed there: --path /messages.")
@click.option("--ignore", metavar="POINTER", multiple=True, help="Not what changed there; may be repeated.")
@click.option("--exit-code", is_flag=True, help="End with 5 if there are differences.")
@app_option
def command(
    call: Call,
    a: str,
    b: str | None,
    layout: str,
    path: str,
    ignore: tuple[str, ...],
    exit_code: bool,
    app: str | None,
) -> None:
    """Show what changed between two checkpoints.

    With A alone: what A changed, compared with the checkpoint before it.
    A and B may be points between checkpoints: WF@event:41, or
    WF@time:2026-01-11T14:30:00Z.

    \b
    Example:
      holdfast diff WF-2026-001@7 WF-2026-001@9 --format stat
    """
    pointer = parse_pointer(path)
    passed_over = [parse_pointer(one) for one in ignore]
    if () in passed_over:
        raise click.UsageError("--ignore of the whole state leaves nothing to compare")
    if b is None or is_file(b):
        # Where just one is a file, the other's store is the one that is meant.
        call = at_its_store(call, a)
    with reading(call, app=app_for(app, a, b)) as kit:
        first = find_point(kit, a)
        old, new = (first, find_point(kit, b)) if b is not None else (travel_in(kit).before(first), first)
        compared = _compared(kit, old.tree if old else {}, new.tree, pointer, passed_over)
        points = [point for point in (old, new) if point]
        tell_points(call, kit, AuditType.STATE_READ, points)
    for note in (note for point in points for note in point.remarks):
        call.output.note(f"note: {safe(note)}")
    _print(call.output, layout, (str(old) if old else None, str(new)), compared)
    if exit_code and compared.ops:
        raise click.exceptions.Exit(Exit.DIFFERENT)


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two plain trees without what is passed over, a place in them, and the operations between them there."""

    before: Any
    after: Any
    pointer: tuple[str, ...]
    ops: list[Operation]


def _compared(
    kit: Kit, before: Any, after: Any, pointer: tuple[str, ...], passed_over: Iterable[Sequence[str]]
) -> _Compared:
    from holdfast.application.insight.stored_changes import operations_at
    from holdfast.domain.pointer import without

    for one in passed_over:
        before, after = without(before, one), without(after, one)
    return _Compared(before, after, pointer, operations_at(before, after, pointer, kit.packer))


def _print(output: Output, layout: str, names: tuple[str | None, str], compared: _Compared) -> None:
    """Print the changes as they are asked for."""
    from holdfast.application.insight.differences import edits_at, patch
    from holdfast.application.insight.stored_changes import with_old_values

    if layout == "patch":
        output.data(as_json_tree(patch(edits_at(compared.before, compared.after, compared.pointer))))
    elif output.as_json or layout == "json":
        output.data({"from": names[0], "to": names[1], "operations": as_json_tree(compared.ops)})
    else:
        shown = list(_without_moves(list(with_old_values(compared.ops, compared.before))))
        output.line(_heading(output, names, len(shown)))
        _LAYOUTS[layout](output, shown)


def _without_moves(shown: Shown) -> Iterator[tuple[Operation, Any]]:
    """Leave out fields that only stand elsewhere among others: their order is stored, and tells nothing."""
    from holdfast.application.insight.differences import is_same

    gone = {tuple(op["path"]): old for op, old in shown if op["op"] == "delete"}
    come = {tuple(op["path"]) for op, old in shown if op["op"] == "set" and old is NOTHING}
    for op, old in shown:
        path = tuple(op["path"])
        if path not in gone or path not in come:
            yield op, old
        elif op["op"] == "set" and not is_same(gone[path], op["value"]):
            yield op, gone[path]


def _print_tree(output: Output, shown: Shown) -> None:
    """Print the changes below the places of the state that they belong to."""
    root = Branch("state")
    places: dict[tuple[str | int, ...], Branch] = {(): root}
    for op, old in shown:
        owner = tuple(op["path"][:-1])
        for depth in range(len(owner)):
            if owner[: depth + 1] not in places:
                places[owner[: depth + 1]] = Branch(str(owner[depth]))
                places[owner[:depth]].below.append(places[owner[: depth + 1]])
        # Only the last step: the others stand above it.
        short = {**op, "path": op["path"][len(owner) :]}
        places[owner].below.extend(Branch(click.unstyle(line)) for line in _op_lines(output, short, old))
    if shown:
        output.tree(root)


def _print_stat(output: Output, shown: Shown) -> None:
    """Count what came, went and changed in each field."""
    rows: dict[str, Counter[str]] = {}
    for op, old in shown:
        field = str(op["path"][0]) if op["path"] else "(the state)"
        rows.setdefault(field, Counter()).update(_counts(op, old))
    if rows:
        cells = [(name, *(str(counts[kind]) for kind in _KINDS)) for name, counts in sorted(rows.items())]
        output.table(("FIELD", *(kind.upper() for kind in _KINDS)), cells, right=" rrr")


def _print_text(output: Output, shown: Shown) -> None:
    for op, old in shown:
        output.lines(_op_lines(output, op, old))


_LAYOUTS = {"text": _print_text, "stat": _print_stat, "tree": _print_tree}


def _heading(output: Output, names: tuple[str | None, str], count: int) -> str:
    return output.bold(f"{safe(names[0] or '(nothing)')} -> {safe(names[1])}: {counted(count, 'change')}")


def _counts(op: Operation, old: Any) -> dict[str, int]:
    if op["op"] == "splice":
        return {"added": len(op["insert"]), "removed": op.get("remove", 0)}
    if op["op"] == "delete":
        return {"removed": 1}
    return {"added" if old is NOTHING else "changed": 1}


def _op_lines(output: Output, op: Operation, old: Any) -> list[str]:
    """Write one operation: `+` for what came, `-` for what went, `~` for what is different."""
    from holdfast.domain.delta import show_path

    where = safe(show_path(op["path"]))
    if op["op"] == "append":
        return [f"~ {where} grew by {_shown(op['text'])}"]
    if op["op"] == "delete":
        return [output.paint(f"- {where} was {_shown(old)}", "removed")]
    if op["op"] == "splice":
        return _splice_lines(output, op, old, where)
    if old is NOTHING:
        return [output.paint(f"+ {where} = {_shown(op['value'])}", "added")]
    return [f"~ {where} = {_shown(op['value'])}, was {_shown(old)}"]


def _splice_lines(output: Output, op: Operation, removed: list[Any], where: str) -> list[str]:
    gone = enumerate(removed, start=op["at"])
    come = enumerate(op["insert"], start=op["at"])
    return [
        *(output.paint(f"- {where}[{index}] was {_shown(item)}", "removed") for index, item in gone),
        *(output.paint(f"+ {where}[{index}] = {_shown(item)}", "added") for index, item in come),
    ]


def _shown(value: Any) -> str:
    return "nothing" if value is NOTHING else safe(short_json(value, _VALUE_WIDTH))
