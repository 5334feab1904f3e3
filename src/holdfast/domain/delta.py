"""Operations: the change from one state to the next, as data that a person can read too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.domain.errors import CheckpointError, StateReconstructionError
from holdfast.domain.plain import LoadBlob, read_blob
from holdfast.domain.tree import TAG

Operation = dict[str, Any]
#: Keys and indexes from the root of the state.
Path = Sequence[str | int]

_SHOWN_LETTERS = 60


def set_value(path: Path, value: Any) -> Operation:
    """Set a key of an object or an item of a list; the empty path replaces the state."""
    return {"op": "set", "path": list(path), "value": value}


def delete(path: Path) -> Operation:
    """Remove a key of an object."""
    return {"op": "delete", "path": list(path)}


def splice(path: Path, at: int, remove: int, insert: list[Any]) -> Operation:
    """Remove and insert items of a list; that none is removed goes without saying."""
    if not remove:
        return {"op": "splice", "path": list(path), "at": at, "insert": insert}
    return {"op": "splice", "path": list(path), "at": at, "remove": remove, "insert": insert}


def append(path: Path, text: str) -> Operation:
    """Append to a string."""
    return {"op": "append", "path": list(path), "text": text}


def apply(ops: Iterable[Operation], tree: Any, load_blob: LoadBlob | None = None) -> Any:
    """Apply operations in order and return the tree, which is changed in place.

    The values the operations carry become part of the tree: do not use them again.

    Args:
        ops: the operations.
        tree: the plain tree they change.
        load_blob: gives the bytes of a blob by SHA-256, for appending to a string kept in one.

    Raises:
        StateReconstructionError: an operation does not fit the tree.
    """
    root = [tree]
    for number, op in enumerate(ops):
        try:
            owner: Any = root
            key: Any = 0
            for step in op["path"]:
                owner = owner[key]
                key = step
                if type(owner) is not (list if type(step) is int else dict):
                    raise TypeError(f"{step!r} does not lead into {type(owner).__name__}")
            if type(key) is int and key < 0:
                raise IndexError("a negative index")
            _apply_one(op, owner, key, load_blob)
        except (CheckpointError, KeyError, IndexError, TypeError, ValueError) as fault:
            raise _misfit(number, op, fault) from fault
    return root[0]


def _misfit(number: int, op: Any, fault: Exception) -> StateReconstructionError:
    what, path = (op.get("op"), op.get("path")) if type(op) is dict else (op, None)
    return StateReconstructionError(
        f"operation {number} ({what!r}) does not fit the state ({fault})",
        place=show_path(path if type(path) is list else []),
        hint="The stored change is damaged, or belongs to another state.",
    )


def _apply_one(op: Operation, owner: Any, key: Any, load_blob: LoadBlob | None) -> None:
    what = op["op"]
    if what == "set":
        owner[key] = op["value"]
    elif what == "splice":
        _apply_splice(owner[key], op["at"], op.get("remove", 0), op["insert"])
    elif what == "append":
        owner[key] = _text(owner[key], load_blob) + _text(op["text"], load_blob)
    elif what == "delete":
        if type(owner) is not dict:
            raise TypeError("only a key of an object can be deleted")
        del owner[key]
    else:
        raise ValueError(f"unknown operation {what!r}")


def _apply_splice(items: Any, at: int, remove: int, insert: list[Any]) -> None:
    if type(items) is not list or type(insert) is not list:
        raise TypeError("a splice needs a list")
    if not 0 <= at <= at + remove <= len(items):
        raise IndexError(f"{remove} items at {at} of {len(items)}")
    items[at : at + remove] = insert


def _text(value: Any, load_blob: LoadBlob | None) -> str:
    if type(value) is dict and value.get(TAG) == "blob":
        value = read_blob(value, load_blob)
    if type(value) is not str:
        raise TypeError(f"cannot append with {type(value).__name__}, a string is needed")
    return value


def describe(op: Operation) -> str:
    """Tell in one line what an operation does."""
    where, what = show_path(op["path"]), op["op"]
    if what == "set":
        return f"set {where} = {_show(op['value'])}"
    if what == "delete":
        return f"delete {where}"
    if what == "append":
        return f"append to {where}: {_show(op['text'])}"
    return _describe_splice(where, op["at"], op.get("remove", 0), op["insert"])


def show_path(path: Iterable[Any]) -> str:
    """Write a path as a person would: `tasks[3].name`."""
    words = [f".{step}" if type(step) is str and step.isidentifier() else f"[{step!r}]" for step in path]
    return "".join(words).removeprefix(".") or "(the state)"


def _describe_splice(where: str, at: int, remove: int, insert: list[Any]) -> str:
    if not remove and len(insert) == 1:
        return f"insert {where}[{at}] = {_show(insert[0])}"
    parts = [f"remove {remove}"] if remove else []
    parts += [f"insert {len(insert)}"] if insert else []
    return f"in {where} at {at}: {', '.join(parts) or 'nothing'}"


def _show(value: Any) -> str:
    if type(value) is dict and value.get(TAG) == "blob":
        return f"({value.get('kind')} of {value.get('len')} bytes in blob {str(value.get('sha256'))[:12]})"
    if type(value) is dict and TAG in value:
        return f"{value.get('t', value[TAG])}({_show_untagged(value.get('v'))})"
    return _show_untagged(value)


def _show_untagged(value: Any) -> str:
    if type(value) is dict:
        return f"{{{len(value)} keys: {', '.join(list(value)[:4])}}}" if value else "{}"
    if type(value) is list:
        return f"[{len(value)} items]"
    if type(value) in (str, bytes) and len(value) > _SHOWN_LETTERS:
        return f"{value[:_SHOWN_LETTERS]!r}... ({len(value)} long)"
    return repr(value)
