"""JSON Patch (RFC 6902): changes to a tree, one after the other, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from holdfast.domain.pointer import parse_pointer
from holdfast.domain.tree import NOTHING, TAG, copy_tree, has_tags

#: So much may come of copies within one state: each could make it twice as large.
_COPIED_MAX = 16 * 1024 * 1024
#: What a value counts beside its characters.
_VALUE_CHARS = 16

#: The six of the standard.
Op: TypeAlias = Literal["add", "remove", "replace", "move", "copy", "test"]


@dataclass(frozen=True, slots=True)
class Step:
    """One change: a value goes with add, replace, test and put, a source with move and copy.

    What is put goes to a key, takes the place of an item, or is one more item: no standard has a word for it.
    """

    op: Op | Literal["put"]
    path: str
    value: Any = NOTHING
    source: str | None = None


class EditError(Exception):
    """An edit that does not fit: which one, and why."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index
        self.why = why


class _MisfitError(Exception):
    """Why one edit does not fit."""


def patched(fields: dict[str, Any], steps: Sequence[Step]) -> dict[str, Any]:
    """Answer a changed copy of a state's fields.

    Raises:
        EditError: an edit does not fit; says which.
    """
    root: dict[str, Any] = {"": copy_tree(fields)}
    copied = 0
    for index, step in enumerate(steps):
        try:
            if step.op == "copy":
                copied = _counted(root, step, copied)
            _apply(root, step)
        except _MisfitError as misfit:
            raise EditError(index, str(misfit)) from None
    whole: dict[str, Any] = root[""]
    return whole


def _apply(root: dict[str, Any], change: Step) -> None:
    path = _steps(change.path)
    if change.op in ("add", "replace", "test", "put"):
        _check_value(change)
    if change.op == "add":
        _add(root, path, copy_tree(change.value))
    elif change.op == "remove":
        _remove(root, path)
    elif change.op == "replace":
        _remove_and_add(root, path, copy_tree(change.value))
    elif change.op == "put":
        _put(root, path, copy_tree(change.value))
    elif change.op == "test":
        _check_same(_at(root, path), change.value)
    else:
        _bring(root, change, path)


def _counted(root: dict[str, Any], change: Step, copied: int) -> int:
    """Add what a copy brings to what the copies before it brought."""
    todo = [] if change.source is None else [_at(root, _steps(change.source))]
    while todo and copied <= _COPIED_MAX:
        value = todo.pop()
        copied += _VALUE_CHARS + (len(value) if isinstance(value, str | bytes) else 0)
        if isinstance(value, dict):
            copied += sum(map(len, value))
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if copied > _COPIED_MAX:
        raise _MisfitError(f"the copies bring more than {_COPIED_MAX} characters")
    return copied


def _check_value(change: Step) -> None:
    if change.value is NOTHING:
        raise _MisfitError(f"{change.op} needs a value")
    if has_tags([change.value]):
        # It would be taken for a stored type, a reference to other bytes of the store say.
        raise _MisfitError(f"a value must not hold the key {TAG}")


def _bring(root: dict[str, Any], change: Step, path: list[str]) -> None:
    """Move or copy what stands elsewhere."""
    if change.source is None:
        raise _MisfitError(f"{change.op} needs a from")
    source = _steps(change.source)
    value = copy_tree(_at(root, source))
    if change.op == "move":
        if path[: len(source)] == source and path != source:
            raise _MisfitError("a value cannot be moved into itself")
        _remove(root, source)
    _add(root, path, value)


def _steps(pointer: str) -> list[str]:
    """Take a pointer apart; the state itself is the value of the key "" of the root."""
    return ["", *parse_pointer(pointer)]


def _at(root: Any, path: Sequence[str]) -> Any:
    value = root
    for step in path:
        value = _into(value, step)
    return value


def _into(value: Any, step: str) -> Any:
    if isinstance(value, dict) and TAG not in value and step in value:
        return value[step]
    if isinstance(value, list):
        return value[_index(value, step, len(value) - 1)]
    raise _MisfitError(f"the state has no {step[:100]!r} there")


def _index(items: list[Any], step: str, last: int) -> int:
    is_number = step.isascii() and step.isdecimal() and (step == "0" or not step.startswith("0"))
    if not is_number or len(step) > 9 or int(step) > last:
        raise _MisfitError(f"{step[:100]!r} is no item of a list of {len(items)}")
    return int(step)


def _add(root: dict[str, Any], path: list[str], value: Any) -> None:
    owner, key = _at(root, path[:-1]), path[-1]
    if isinstance(owner, list):
        owner.insert(len(owner) if key == "-" else _index(owner, key, len(owner)), value)
    elif isinstance(owner, dict) and TAG not in owner and key != TAG:
        _check_root(path, value)
        owner[key] = value
    else:
        raise _MisfitError("nothing can be put there")


def _remove(root: dict[str, Any], path: list[str]) -> None:
    owner, key = _at(root, path[:-1]), path[-1]
    _into(owner, key)
    if len(path) == 1:
        raise _MisfitError("the whole state cannot be removed")
    del owner[int(key) if isinstance(owner, list) else key]


def _remove_and_add(root: dict[str, Any], path: list[str], value: Any) -> None:
    owner, key = _at(root, path[:-1]), path[-1]
    _into(owner, key)
    _check_root(path, value)
    owner[int(key) if isinstance(owner, list) else key] = value


def _put(root: dict[str, Any], path: list[str], value: Any) -> None:
    is_item = isinstance(_at(root, path[:-1]), list) and path[-1] != "-"
    (_remove_and_add if is_item else _add)(root, path, value)


def _check_root(path: list[str], value: Any) -> None:
    if len(path) == 1 and not isinstance(value, dict):
        raise _MisfitError("a state is an object")


def _check_same(found: Any, wanted: Any) -> None:
    try:
        is_same = _same(found, wanted)
    except RecursionError:
        raise _MisfitError("the value is too deep to be compared") from None
    if not is_same:
        raise _MisfitError("the value there is another")


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1, and 1.0 is 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    are_alike = type(one) is type(other) or {type(one), type(other)} == {int, float}
    return are_alike and bool(one == other)
