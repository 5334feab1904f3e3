"""A state read once into bytes, and the change between two such snapshots.

A snapshot never holds the caller's objects, and operations are made from the bytes of two snapshots only:
what is recorded as the change is exactly what lies between them, whatever other threads do to the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.application.comparison import compare
from holdfast.application.nodes import (
    ListNode,
    Node,
    NodeReader,
    ObjectNode,
    Promise,
    plain_of,
    value_at,
    without_patches,
)
from holdfast.domain import delta
from holdfast.domain.delta import Operation
from holdfast.domain.errors import UnstorableValueError, UnsupportedTypeError
from holdfast.domain.tree import TAG
from holdfast.ports import Packer


class Snapshot:
    """One state, as bytes."""

    __slots__ = ("root",)

    def __init__(self, root: Node) -> None:
        self.root = root

    @property
    def size(self) -> int:
        """Bytes of the whole state, packed."""
        return len(self.root)

    def plain(self, packer: Packer) -> Any:
        """Decode the whole state to a plain tree."""
        return plain_of(self.root, packer)

    def value_at(self, path: Sequence[str | int], packer: Packer) -> Any:
        """Decode the value at a path."""
        return value_at(self.root, path, packer)


def take(
    fields: Mapping[str, Any],
    packer: Packer,
    base: Snapshot | None = None,
    append_only: frozenset[str] = frozenset(),
) -> Snapshot:
    """Read a state into a snapshot.

    Args:
        fields: the state's fields. Other threads may change what they hold meanwhile.
        packer: the encoder.
        base: the snapshot before, whose shape is followed and whose equal parts are shared.
        append_only: fields, or dotted paths, of lists that only grow: what the base has is not read again.

    Raises:
        UnsupportedTypeError: a value has a type nobody registered.
        UnstorableValueError: a value contains itself or is nested too deep.
    """
    root = base.root if base else _EMPTY
    copy = dict(fields)
    promises = _promises(append_only) if append_only else None
    try:
        return Snapshot(NodeReader(packer).node(copy, root, promises, 0))
    except (UnsupportedTypeError, UnstorableValueError):
        # A part knows only the path inside itself; packing the whole names the full one.
        packer.pack({key: without_patches(value) for key, value in copy.items()})
        raise


def from_plain(plain: Any, packer: Packer) -> Snapshot:
    """Make the snapshot of a state that is a plain tree already, as read back from a store."""
    if type(plain) is not dict or TAG in plain:
        return Snapshot(packer.pack_plain(plain))
    reader = NodeReader(packer)
    return Snapshot(ObjectNode({key: reader.plain_node(value, 1) for key, value in plain.items()}))


def promise_broken(
    append_only: frozenset[str], fields: Mapping[str, Any], snapshot: Snapshot, packer: Packer
) -> list[str]:
    """Name the append-only paths whose stored items are not what the state holds, by reading all of them."""
    return [path for path in sorted(append_only) if _is_broken(path, fields, snapshot.root, packer)]


def changes(base: Snapshot | None, new: Snapshot, packer: Packer) -> list[Operation]:
    """Find the operations that turn the state of `base` into that of `new`; without a base, one `set`."""
    if base is None:
        return [delta.set_value([], new.plain(packer))]
    return compare(base.root, new.root, packer)


_EMPTY = ObjectNode({})


def _promises(append_only: frozenset[str]) -> Promise:
    """Turn dotted paths into a tree by key."""
    tree: dict[str, Any] = {}
    for path in append_only:
        *above, last = path.split(".")
        at: Any = tree
        for key in above:
            at = at.setdefault(key, {}) if at is not True else True
        if at is not True:
            at[last] = True
    return tree


def _is_broken(path: str, fields: Any, node: Node, packer: Packer) -> bool:
    """Compare one path; only lists in chunks were taken on trust."""
    for key in path.split("."):
        if not isinstance(node, ObjectNode) or not isinstance(fields, Mapping) or key not in node.children:
            return False
        node, fields = node.children[key], fields.get(key)
    if not isinstance(node, ListNode):
        return False
    if type(fields) is not list:
        return True
    # Items that came after the snapshot are no breach.
    return NodeReader(packer).node(fields[: node.count], node, None, 0) is not node
