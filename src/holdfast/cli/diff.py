"""`holdfast diff`: what changed between two points, as operations a person can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import reading
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.pointer import parse_pointer, step_into
from holdfast.cli.points import app_for, app_option, find_point, point_notes, tell_points, travel_in
from holdfast.cli.trees import Branch
from holdfast.cli.values import NOTHING, as_json_tree, same, short_json
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.travel.travelling import Point
    from holdfast.domain.delta import Operation

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
    with reading(call, app=app_for(app, a, b)) as kit:
        old, new = _pair(kit, a, b)
        before, after = (without(point.tree if point else {}, passed_over) for point in (old, new))
        ops = changes_at(kit, before, after, pointer)
        compared = [point for point in (old, new) if point]
        tell_points(call, kit, AuditType.STATE_READ, compared)
    for note in (note for point in compared for note in point_notes(point)):
        call.output.note(f"note: {safe(note)}")
    _print(call.output, layout, (str(old) if old else None, str(new)), ops, before)
    if exit_code and ops:
        raise click.exceptions.Exit(Exit.DIFFERENT)


def _print(
    output: Output, layout: str, names: tuple[str | None, str], ops: Sequence[Operation], before: Any
) -> None:
    """Print the changes as they are asked for."""
    if layout == "patch":
        from holdfast.cli.json_patch import json_patch

        output.data(json_patch(with_old_values(ops, before)))
    elif output.as_json or layout == "json":
        output.data({"from": names[0], "to": names[1], "operations": as_json_tree(ops)})
    elif layout == "stat":
        _print_stat(output, names, ops, before)
    elif layout == "tree":
        _print_tree(output, names, ops, before)
    else:
        _print_text(output, names, ops, before)


def without(tree: Any, pointers: Sequence[Sequence[str]]) -> Any:
    """Answer a tree without what some pointers lead to; the tree itself stays as it is."""
    for pointer in pointers:
        if not pointer:
            raise click.UsageError("--ignore of the whole state leaves nothing to compare")
        tree = _cut(tree, pointer)
    return tree


def _cut(tree: Any, pointer: Sequence[str]) -> Any:
    """Copy the way to a place, and leave that out; an item of a list becomes nothing, so that others stay."""
    key, *rest = pointer
    try:
        inner = step_into(tree, key)
    except KeyError:
        return tree
    if isinstance(tree, list):
        place = int(key)
        return [*tree[:place], _cut(inner, rest) if rest else None, *tree[place + 1 :]]
    if rest:
        return {**tree, key: _cut(inner, rest)}
    return {name: value for name, value in tree.items() if name != key}


def _pair(kit: Kit, a: str, b: str | None) -> tuple[Point | None, Point]:
    """Answer what to compare: A and B, or the checkpoint before A and A."""
    from holdfast.application.resolve import Found, living

    first = find_point(kit, a)
    if b is not None:
        return first, find_point(kit, b)
    if not first.is_checkpoint:
        return (travel_in(kit).checkpoint(first.found) if first.found else None), first
    last = first.found.entry.sequence if first.found else 0
    before = (entry for entry in living(kit.store, first.workflow_id) if entry.sequence < last)
    parent = next(before, None)
    return (travel_in(kit).checkpoint(Found(first.workflow_id, parent)) if parent else None), first


def changes_at(kit: Kit, before: Any, after: Any, pointer: Sequence[str]) -> list[Operation]:
    """Compare two plain trees at a place; the operations' paths begin at the root of the state."""
    from holdfast.application.snapshot import changes, from_plain
    from holdfast.domain import delta

    old, steps = _part(before, pointer)
    new, new_steps = _part(after, pointer)
    if new is NOTHING:
        return [] if old is NOTHING else [delta.delete(steps)]
    if old is NOTHING:
        return [delta.set_value(new_steps, new)]
    # Compared under one key, because what a pointer leads to need not be an object.
    ops = changes(from_plain({"at": old}, kit.packer), from_plain({"at": new}, kit.packer), kit.packer)
    return [{**op, "path": [*steps, *op["path"][1:]]} for op in ops]


def _part(tree: Any, pointer: Sequence[str]) -> tuple[Any, list[str | int]]:
    """Follow a pointer; answer what is there, or nothing, and the steps with indexes as numbers."""
    steps: list[str | int] = []
    for key in pointer:
        steps.append(int(key) if isinstance(tree, list) and key.isdecimal() else key)
        try:
            tree = step_into(tree, key)
        except KeyError:
            return NOTHING, [*steps, *pointer[len(steps) :]]
    return tree, steps


def _print_tree(output: Output, names: tuple[str | None, str], ops: Sequence[Operation], before: Any) -> None:
    """Print the changes below the places of the state that they belong to."""
    shown = list(with_old_values(ops, before))
    output.line(_heading(output, names, len(shown)))
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


def _print_stat(output: Output, names: tuple[str | None, str], ops: Sequence[Operation], before: Any) -> None:
    """Count what came, went and changed in each field."""
    shown = list(with_old_values(ops, before))
    output.line(_heading(output, names, len(shown)))
    rows: dict[str, Counter[str]] = {}
    for op, old in shown:
        field = str(op["path"][0]) if op["path"] else "(the state)"
        rows.setdefault(field, Counter()).update(_counts(op, old))
    if rows:
        cells = [(name, *(str(counts[kind]) for kind in _KINDS)) for name, counts in sorted(rows.items())]
        output.table(("FIELD", *(kind.upper() for kind in _KINDS)), cells, right=" rrr")


def _print_text(output: Output, names: tuple[str | None, str], ops: Sequence[Operation], before: Any) -> None:
    shown = list(with_old_values(ops, before))
    output.line(_heading(output, names, len(shown)))
    for op, old in shown:
        output.lines(_op_lines(output, op, old))


def with_old_values(ops: Sequence[Operation], before: Any) -> Iterator[tuple[Operation, Any]]:
    """Yield each operation with what it found at its path, which earlier operations may have changed."""
    from holdfast.domain import delta

    tree = as_json_tree(before)
    for op in as_json_tree(ops):
        yield from _finer(op, _old_value(op, tree))
        # Text that grew is never looked at again by the operations of the same change.
        tree = delta.apply([op], tree) if op["op"] != "append" else tree


def _old_value(op: Operation, tree: Any) -> Any:
    """Answer what an operation replaces or removes; the tree itself goes on changing."""
    old = _at(tree, op["path"])
    return old[op["at"] : op["at"] + op["remove"]] if op["op"] == "splice" else old


def _finer(op: Operation, old: Any) -> Iterator[tuple[Operation, Any]]:
    """Take apart the replacement of an object or a list, which is shorter to store than to read."""
    from holdfast.domain import delta

    new, path = op.get("value"), op["path"]
    if isinstance(old, list) and isinstance(new, list) and same(old, new[: len(old)]):
        yield delta.splice(path, len(old), 0, new[len(old) :]), []
        return
    if not (_is_object(old) and _is_object(new)):
        yield op, old
        return
    for key, value in old.items():
        if key not in new:
            yield delta.delete((*path, key)), value
    for key, value in new.items():
        was = old.get(key, NOTHING)
        if was is NOTHING or not same(was, value):
            yield from _finer(delta.set_value((*path, key), value), was)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and "$hf" not in value


def _heading(output: Output, names: tuple[str | None, str], count: int) -> str:
    return output.bold(f"{safe(names[0] or '(nothing)')} -> {safe(names[1])}: {counted(count, 'change')}")


def _counts(op: Operation, old: Any) -> dict[str, int]:
    if op["op"] == "splice":
        return {"added": len(op["insert"]), "removed": op["remove"]}
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


def _at(tree: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return NOTHING
    return tree


def _shown(value: Any) -> str:
    return "nothing" if value is NOTHING else safe(short_json(value, _VALUE_WIDTH))
