"""Large values leave the tree: a blob holds the bytes once, the tree a reference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.domain.delta import Operation
from holdfast.domain.plain import LoadBlob, read_blob
from holdfast.domain.tree import TAG

LIFT_THRESHOLD_BYTES = 16 * 1024

#: Where an operation carries what is new.
_CARRIED = {"set": "value", "splice": "insert", "append": "text", "delete": None}

Seal = Callable[[bytes], bytes]


def lift(
    plain: Any, threshold_bytes: int = LIFT_THRESHOLD_BYTES, seal: Seal | None = None
) -> tuple[Any, dict[str, bytes]]:
    """Replace strings and bytes longer than the threshold by references; answer the tree and the blobs.

    The given tree is not changed, and answered as it is where nothing in it is that long. With `seal` a
    blob holds what that makes of the value, and is named by it.
    """
    blobs: dict[str, bytes] = {}
    if not _holds_large(plain, threshold_bytes):
        return plain, blobs

    def swap(value: Any) -> Any:
        data = _large(value, threshold_bytes)
        if data is None:
            return value
        stored = data if seal is None else seal(data)
        sha256 = hashlib.sha256(stored).hexdigest()
        blobs[sha256] = stored
        kind = "str" if type(value) is str else "bytes"
        return {TAG: "blob", "kind": kind, "sha256": sha256, "len": len(data)}

    return _swap(plain, _SIZED, swap), blobs


def lift_ops(
    ops: Iterable[Operation], threshold_bytes: int = LIFT_THRESHOLD_BYTES, seal: Seal | None = None
) -> tuple[list[Operation], dict[str, bytes]]:
    """Lift the values that operations carry; paths stay as they are."""
    blobs: dict[str, bytes] = {}
    lifted = list(ops)
    for at, op in enumerate(lifted):
        member = _CARRIED[op["op"]]
        if member is not None and _holds_large(op[member], threshold_bytes):
            value, found = lift(op[member], threshold_bytes, seal)
            lifted[at] = {**op, member: value}
            blobs.update(found)
    return lifted, blobs


def lower(plain: Any, load_blob: LoadBlob) -> Any:
    """Put the values of blobs back in place of their references. The given tree is not changed."""

    def swap(value: Any) -> Any:
        return read_blob(value, load_blob) if value.get(TAG) == "blob" else value

    return _swap(plain, _OBJECT, swap)


def blob_refs(plain: Any) -> set[str]:
    """Name every blob a tree refers to."""
    refs: set[str] = set()
    todo = [plain]
    while todo:
        value = todo.pop()
        if type(value) is dict:
            if value.get(TAG) == "blob":
                refs.add(value["sha256"])
            todo.extend(value.values())
        elif type(value) is list:
            todo.extend(value)
    return refs


_SIZED = frozenset({str, bytes})
_OBJECT = frozenset({dict})


def _holds_large(plain: Any, threshold_bytes: int) -> bool:
    """Tell whether a tree holds a value above the threshold, without copying any of it."""
    if type(plain) is not dict and type(plain) is not list:
        return type(plain) in _SIZED and _large(plain, threshold_bytes) is not None
    todo: list[Any] = [plain]
    while todo:
        value = todo.pop()
        kind = type(value)
        if kind is dict:
            todo += value.values()
        elif kind is list:
            todo += value
        elif kind in _SIZED and len(value) * 4 > threshold_bytes and _large(value, threshold_bytes):
            return True
    return False


def _large(value: str | bytes, threshold_bytes: int) -> bytes | None:
    """Give the bytes of a value above the threshold; a letter has at most four."""
    if len(value) * 4 <= threshold_bytes:
        return None
    data = value.encode() if isinstance(value, str) else value
    return data if len(data) > threshold_bytes else None


def _swap(plain: Any, kinds: frozenset[type], swap: Callable[[Any], Any]) -> Any:
    """Copy a tree, swapping the values of some types."""
    root = [plain]
    todo: list[Any] = [root]
    while todo:
        owner = todo.pop()
        for key, value in owner.items() if type(owner) is dict else enumerate(owner):
            swapped = swap(value) if type(value) in kinds else value
            if swapped is value and type(value) in (dict, list):
                owner[key] = value.copy()
                todo.append(owner[key])
            elif swapped is not value:
                owner[key] = swapped
    return root[0]
