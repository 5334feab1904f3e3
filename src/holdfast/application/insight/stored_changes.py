"""What is different between two states as the format stores it: operations, and what each of them replaces.

Beside `differences`: a record holds operations, which are short; edits look into items of lists and find what
moved, which nobody stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from holdfast.application.insight.differences import is_same
from holdfast.application.snapshot import changes, from_plain
from holdfast.domain import delta
from holdfast.domain.delta import Operation
from holdfast.domain.plainjson import as_json_tree
from holdfast.domain.pointer import follow
from holdfast.domain.tree import NOTHING, TAG, at_path
from holdfast.ports import Packer


def operations_at(before: Any, after: Any, pointer: Sequence[str], packer: Packer) -> list[Operation]:
    """Compare two plain trees at a place; the operations' paths begin at the root of the state."""
    old, steps = follow(before, pointer)
    new, new_steps = follow(after, pointer)
    if new is NOTHING:
        return [] if old is NOTHING else [delta.delete(steps)]
    if old is NOTHING:
        return [delta.set_value(new_steps, new)]
    # Compared under one key, because what a pointer leads to need not be an object.
    ops = changes(from_plain({"at": old}, packer), from_plain({"at": new}, packer), packer)
    return [{**op, "path": [*steps, *op["path"][1:]]} for op in ops]


def with_old_values(ops: Sequence[Operation], before: Any) -> Iterator[tuple[Operation, Any]]:
    """Yield each operation with what it found at its path, which earlier operations may have changed."""
    tree = as_json_tree(before)
    for op in as_json_tree(ops):
        yield from _finer(op, _old_value(op, tree))
        # Text that grew is never looked at again by the operations of the same change.
        tree = delta.apply([op], tree) if op["op"] != "append" else tree


def _old_value(op: Operation, tree: Any) -> Any:
    """Answer what an operation replaces or removes; the tree itself goes on changing."""
    old = at_path(tree, op["path"])
    return old[op["at"] : op["at"] + op.get("remove", 0)] if op["op"] == "splice" else old


def _finer(op: Operation, old: Any) -> Iterator[tuple[Operation, Any]]:
    """Take apart the replacement of an object or a list, which is shorter to store than to read."""
    new, path = op.get("value"), op["path"]
    if isinstance(old, list) and isinstance(new, list) and is_same(old, new[: len(old)]):
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
        if was is NOTHING or not is_same(was, value):
            yield from _finer(delta.set_value((*path, key), value), was)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and TAG not in value
