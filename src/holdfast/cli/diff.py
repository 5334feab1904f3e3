"""`holdfast diff`: what changed between two checkpoints, as operations a person can read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find, reading
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.pointer import parse_pointer, step_into
from holdfast.cli.show import state_of
from holdfast.cli.values import as_json_tree, summary

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.resolve import Found
    from holdfast.domain.delta import Operation

_VALUE_WIDTH = 48
_NOTHING = object()


@click.command("diff", cls=StoreCommand)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["text", "json", "stat"]),
    default="text",
    show_default=True,
    help="How to show the changes.",
)
@click.option("--path", metavar="POINTER", default="", help="Only what changed there: --path /messages.")
@click.option("--exit-code", is_flag=True, help="End with 5 if there are differences.")
def command(call: Call, a: str, b: str | None, layout: str, path: str, exit_code: bool) -> None:
    """Show what changed between two checkpoints.

    With A alone: what A changed, compared with the checkpoint before it.

    \b
    Example:
      holdfast diff WF-2026-001@7 WF-2026-001@9 --format stat
    """
    pointer = parse_pointer(path)
    with reading(call) as kit:
        old, new = _pair(kit, a, b)
        before = state_of(kit, old)[0] if old else {}
        after = state_of(kit, new)[0]
        ops = changes_at(kit, before, after, pointer)
    names = (str(old) if old else "(nothing)", str(new))
    if call.output.as_json or layout == "json":
        call.output.data({"from": str(old) if old else None, "to": str(new), "operations": as_json_tree(ops)})
    elif layout == "stat":
        _print_stat(call.output, names, ops)
    else:
        _print_text(call.output, names, ops, before)
    if exit_code and ops:
        raise click.exceptions.Exit(Exit.DIFFERENT)


def _pair(kit: Kit, a: str, b: str | None) -> tuple[Found | None, Found]:
    """Answer what to compare: A and B, or the checkpoint before A and A."""
    from holdfast.application.resolve import Found, living

    first = find(kit, a)
    if b is not None:
        return first, find(kit, b)
    before = (
        entry for entry in living(kit.store, first.workflow_id) if entry.sequence < first.entry.sequence
    )
    parent = next(before, None)
    return (Found(first.workflow_id, parent) if parent else None), first


def changes_at(kit: Kit, before: Any, after: Any, pointer: Sequence[str]) -> list[Operation]:
    """Compare two plain trees at a place; the operations' paths begin at the root of the state."""
    from holdfast.application.snapshot import changes, from_plain
    from holdfast.domain import delta

    old, steps = _part(before, pointer)
    new, new_steps = _part(after, pointer)
    if new is _NOTHING:
        return [] if old is _NOTHING else [delta.delete(steps)]
    if old is _NOTHING:
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
            return _NOTHING, [*steps, *pointer[len(steps) :]]
    return tree, steps


def _print_stat(output: Output, names: tuple[str, str], ops: Sequence[Operation]) -> None:
    """Count the changes of each field."""
    output.line(_heading(output, names, ops))
    fields = Counter((str(op["path"][0]) if op["path"] else "(the state)", _kind(op)) for op in ops)
    rows: dict[str, dict[str, int]] = {}
    for (name, kind), count in fields.items():
        rows.setdefault(name, {})[kind] = count
    if rows:
        kinds = ("added", "removed", "changed", "appended")
        cells = [
            (name, *(str(counts.get(kind, 0)) for kind in kinds)) for name, counts in sorted(rows.items())
        ]
        output.table(("FIELD", *(kind.upper() for kind in kinds)), cells, right=" rrrr")


def _print_text(output: Output, names: tuple[str, str], ops: Sequence[Operation], before: Any) -> None:
    from holdfast.domain import delta

    output.line(_heading(output, names, ops))
    tree = as_json_tree(before)
    for op in as_json_tree(ops):
        for line in _op_lines(output, op, tree):
            output.line(line)
        # Later operations count from the state that earlier ones left.
        tree = delta.apply([op], tree) if op["op"] != "append" else tree


def _heading(output: Output, names: tuple[str, str], ops: Sequence[Operation]) -> str:
    return output.bold(f"{safe(names[0])} -> {safe(names[1])}: {counted(len(ops), 'change')}")


def _op_lines(output: Output, op: Operation, tree: Any) -> list[str]:
    """Write one operation: `+` for what came, `-` for what went, `~` for what is different."""
    from holdfast.domain.delta import show_path

    where = safe(show_path(op["path"]))
    if op["op"] == "append":
        return [output.paint(f"~ {where} grew by {_shown(op['text'])}", "added")]
    if op["op"] == "delete":
        return [output.paint(f"- {where} was {_shown(_at(tree, op['path']))}", "removed")]
    if op["op"] == "set":
        old = _at(tree, op["path"])
        if old is _NOTHING:
            return [output.paint(f"+ {where} = {_shown(op['value'])}", "added")]
        return [f"~ {where} = {_shown(op['value'])}  (was {_shown(old)})"]
    items = _at(tree, op["path"])
    gone = items[op["at"] : op["at"] + op["remove"]] if isinstance(items, list) else []
    return [
        *(
            output.paint(f"- {where}[{op['at'] + i}] was {_shown(item)}", "removed")
            for i, item in enumerate(gone)
        ),
        *(
            output.paint(f"+ {where}[{op['at'] + i}] = {_shown(item)}", "added")
            for i, item in enumerate(op["insert"])
        ),
    ]


def _at(tree: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return tree


def _shown(value: Any) -> str:
    return "nothing" if value is _NOTHING else safe(summary(value, _VALUE_WIDTH))


def _kind(op: Operation) -> str:
    if op["op"] == "splice":
        return "changed" if op["remove"] and op["insert"] else "added" if op["insert"] else "removed"
    return {"append": "appended", "delete": "removed", "set": "changed"}[op["op"]]
