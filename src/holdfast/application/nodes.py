"""The parts of a snapshot: packed leaves, objects of parts, and lists in packed chunks.

The shape follows the snapshot before: where that was split, the parts are packed one by one and compared as
bytes; nothing is packed twice on a steady path.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.msgpack import array_head, contains, head_bytes, shape
from holdfast.domain.tree import TAG
from holdfast.ports import Packer

#: Leaves above this are split into parts.
SPLIT_BYTES = 4 * 1024
#: A chunk of a list holds so many items, fewer if they are large.
CHUNK_ITEMS = 64
CHUNK_BYTES = 4 * 1024
#: Below so many levels of parts everything is a leaf.
PART_LEVELS = 16

#: Names declared append-only, by key; True where the path ends.
Promise = dict[str, Any] | bool | None

_TAG_HEAD = b"\xa3$hf"
_NO_PROMISES: dict[str, Any] = {}


class ObjectNode:
    """An object whose members are nodes. It is as long as its packed bytes."""

    __slots__ = ("_size", "children")

    def __init__(self, children: dict[str, Node]) -> None:
        self.children = children
        self._size = -1

    def __len__(self) -> int:
        """Count the packed bytes when first asked for."""
        if self._size < 0:
            children = self.children
            keys = sum(map(_key_bytes, children))
            self._size = head_bytes(len(children)) + keys + sum(map(len, children.values()))
        return self._size


class ListNode:
    """A list in packed chunks of `step` items, the last perhaps shorter; as long as its packed bytes."""

    __slots__ = ("_clean", "_size", "chunks", "count", "step")

    def __init__(self, chunks: list[bytes], count: int, step: int, base: ListNode | None = None) -> None:
        self.chunks = chunks
        self.count = count
        self.step = step
        self._size = -1
        #: So many chunks at the beginning are known to hold no tagged object.
        self._clean: int = _shared(chunks, base.clean) if base is not None and base._clean else 0

    def __len__(self) -> int:
        """Count the packed bytes when first asked for."""
        if self._size < 0:
            count, step = self.count, self.step
            rest = count % step
            heads = count // step * head_bytes(step) + (head_bytes(rest) if rest else 0)
            self._size = head_bytes(count) + sum(map(len, self.chunks)) - heads
        return self._size

    @property
    def clean(self) -> list[bytes]:
        """The chunks at the beginning that are known to hold no tagged object."""
        return self.chunks[: self._clean]

    @property
    def may_be_tagged(self) -> bool:
        """Whether a tagged object may be in it; what was looked at once is not looked at again."""
        for chunk in self.chunks[self._clean :]:
            if contains(chunk, _TAG_HEAD, rare=1):
                return True
            self._clean += 1
        return False

    def items_in(self, chunk: int) -> int:
        """Count the items of one chunk."""
        return min(self.step, self.count - chunk * self.step)


Node = bytes | ObjectNode | ListNode


@dataclass(frozen=True, slots=True)
class Patch:
    """Stands in a state for an object of which only some members are at hand.

    What is neither said nor kept is not there any more. Only a workflow that has a state can be patched.
    """

    #: Members that are new or may have changed.
    said: dict[str, Any]
    #: Names of those that stay as the checkpoint before has them.
    kept: Collection[str] = ()


#: Stands for a value, of whatever kind, that stays as the checkpoint before has it.
KEPT = Patch({})


def without_patches(value: Any) -> Any:
    """Answer what is said of a part of a state, for whoever looks for the place of a value in it."""
    return {key: without_patches(item) for key, item in value.said.items()} if type(value) is Patch else value


def plain_of(node: Node, packer: Packer) -> Any:
    """Decode a node."""
    if isinstance(node, bytes):
        return packer.unpack(node)
    if isinstance(node, ObjectNode):
        return {key: plain_of(child, packer) for key, child in node.children.items()}
    return items_of(node, 0, len(node.chunks), packer)


def value_at(node: Node, path: Sequence[str | int], packer: Packer) -> Any:
    """Decode the value at a path, and no more of a node than lies around it."""
    for at, step in enumerate(path):
        if isinstance(node, ObjectNode):
            node = node.children[str(step)]
            continue
        if isinstance(node, ListNode):
            assert isinstance(step, int)
            chunk, index = divmod(step, node.step)
            value = packer.unpack(node.chunks[chunk])[index]
            rest = path[at + 1 :]
        else:
            value, rest = packer.unpack(node), path[at:]
        for inner in rest:
            value = value[inner]
        return value
    return plain_of(node, packer)


def may_be_tagged(node: Node) -> bool:
    """Tell whether a node may hold a tagged object anywhere."""
    if isinstance(node, bytes):
        return contains(node, _TAG_HEAD, rare=1)
    return (
        any(map(may_be_tagged, node.children.values()))
        if isinstance(node, ObjectNode)
        else node.may_be_tagged
    )


def _shared(chunks: list[bytes], known: list[bytes]) -> int:
    """Count the chunks at the beginning that are those of another list."""
    return next(
        (at for at, (one, other) in enumerate(zip(chunks, known, strict=False)) if one is not other),
        min(len(chunks), len(known)),
    )


def node_at(node: Node, path: Sequence[str]) -> tuple[Node, Sequence[str]]:
    """Answer the smallest node around a value, and the rest of the path inside of that."""
    for at, step in enumerate(path):
        if not isinstance(node, ObjectNode):
            return node, path[at:]
        node = node.children[step]
    return node, ()


def items_of(node: ListNode, first: int, last: int, packer: Packer) -> list[Any]:
    """Decode the items of the chunks from `first` up to `last`."""
    return [item for chunk in node.chunks[first:last] for item in packer.unpack(chunk)]


def is_tagged(data: bytes) -> bool:
    """Tell whether packed bytes are a tagged object; those have few keys, `$hf` first."""
    return 0x81 <= data[0] < 0x90 and data[1:5] == _TAG_HEAD


class NodeReader:
    """Reads values into nodes."""

    __slots__ = ("_pack", "_pack_plain", "_unpack")

    def __init__(self, packer: Packer) -> None:
        self._pack = packer.pack
        self._pack_plain = packer.pack_plain
        self._unpack = packer.unpack

    def node(self, value: Any, base: Node | None, promise: Promise, level: int) -> Node:
        """Read a value in the shape of its base."""
        if type(value) is Patch:
            return self._patched(value, base, promise, level)
        if type(value) is dict and type(base) is ObjectNode:
            node = self._object(value.copy(), base, promise, level)
            if node is not None:
                return node
        elif type(value) is list and type(base) is ListNode:
            return self._list(value, base, promise)
        return self._leaf(value, base, level)

    def _leaf(self, value: Any, base: Node | None, level: int) -> Node:
        """Read a value whose base has no parts: as one leaf, or in parts if it has become large."""
        data = self._pack(value)
        if data == base:
            return base
        if len(data) <= SPLIT_BYTES or not _is_splittable(data, level):
            return data
        # From the bytes: the caller's value is not read again. They are let go of before the parts are made.
        plain, size_bytes = self._unpack(data), len(data)
        del data
        return self._split(plain, size_bytes, level, is_ours=True)

    def plain_node(self, plain: Any, level: int, *, is_ours: bool = False) -> Node:
        """Read a plain tree. One that is ours is taken apart, so that it is not in memory twice."""
        data = self._pack_plain(plain)
        if not _is_splittable(data, level):
            return data
        size_bytes = len(data)
        del data
        return self._split(plain if is_ours else plain.copy(), size_bytes, level, is_ours=is_ours)

    def _object(self, fields: dict[Any, Any], base: ObjectNode, promise: Promise, level: int) -> Node | None:
        """Read an object member by member; None if its keys need a tag."""
        known = base.children
        promises = promise if type(promise) is dict else _NO_PROMISES
        children: dict[str, Node] = {}
        is_same, inner = True, level + 1
        for key, value in fields.items():
            if type(key) is not str:
                # One that is equal to a text, as a text enum is, is no text all the same.
                return None
            old = known.get(key)
            if type(old) is bytes and type(value) is not Patch:
                node = self._leaf(value, old, inner)
            elif old is None and not _is_plain_key(key):
                return None
            else:
                node = self.node(value, old, promises.get(key), inner)
            children[key] = node
            is_same = is_same and node is old
        return base if is_same and list(children) == list(known) else ObjectNode(children)

    def _patched(self, patch: Patch, base: Node | None, promise: Promise, level: int) -> Node:
        """Read what is said of an object, on top of the members that stay."""
        if patch is KEPT and base is not None:
            return base
        if type(base) is bytes and shape(base) == "dict" and not is_tagged(base):
            plain = self._unpack(base)
            base = ObjectNode({key: self.plain_node(value, level + 1) for key, value in plain.items()})
        if base is None and patch is not KEPT and not patch.kept:
            base = ObjectNode({})
        if type(base) is not ObjectNode or not base.children.keys() >= set(patch.kept):
            raise InvalidStateError("a part of a state is to stay as it was, and was not there")
        known, kept = base.children, set(patch.kept)
        order = [key for key in known if key in kept or key in patch.said]
        order += [key for key in patch.said if key not in known]
        if not all(map(_is_plain_key, patch.said)):
            raise InvalidStateError("the names of what is patched must be plain text")
        promises = promise if type(promise) is dict else _NO_PROMISES
        return ObjectNode(
            {
                key: self.node(patch.said[key], known.get(key), promises.get(key), level + 1)
                if key in patch.said
                else known[key]
                for key in order
            }
        )

    def _list(self, value: list[Any], base: ListNode, promise: Promise) -> Node:
        if promise is True:
            tail = value[base.count :]
            if tail or len(value) == base.count:
                return self._longer(base, tail)
        items, step, clean, known = value.copy(), base.step, base.clean, iter(base.chunks)
        chunks: list[bytes] = []
        is_same = len(items) == base.count
        for at in range(0, len(items), step):
            part, was = items[at : at + step], next(known, b"")
            is_clean = len(chunks) < len(clean)
            data = self._packed_again(part, was) if is_clean else self._pack(part)
            if data == was:
                data = was
            else:
                is_same = False
            chunks.append(data)
        return base if is_same else ListNode(chunks, len(items), step, base)

    def _packed_again(self, items: list[Any], clean: bytes) -> bytes:
        """Pack items that were without tags before: if their bytes are the same, nobody need look for any."""
        try:
            if self._pack_plain(items) == clean:
                return clean
        except Exception:
            # What is there now may not be plain any more, in whatever way.
            return self._pack(items)
        return self._pack(items)

    def _longer(self, base: ListNode, tail: list[Any]) -> ListNode:
        """Add items to a list without looking at those it has."""
        if not tail:
            return base
        step, chunks = base.step, base.chunks.copy()
        rest = base.count % step
        fill = tail[: step - rest] if rest else []
        if fill:
            head, added = len(array_head(rest)), len(array_head(len(fill)))
            chunks[-1] = array_head(rest + len(fill)) + chunks[-1][head:] + self._pack(fill)[added:]
        chunks += [self._pack(tail[at : at + step]) for at in range(len(fill), len(tail), step)]
        return ListNode(chunks, base.count + len(tail), step, base)

    def _split(self, plain: Any, size_bytes: int, level: int, *, is_ours: bool) -> Node:
        """Split a large object or list into parts; it is taken apart on the way."""
        if type(plain) is dict:
            return ObjectNode(
                {key: self.plain_node(plain.pop(key), level + 1, is_ours=is_ours) for key in list(plain)}
            )
        count = len(plain)
        step = max(1, min(CHUNK_ITEMS, CHUNK_BYTES * count // size_bytes))
        plain.reverse()
        chunks = []
        while plain:
            chunks.append(self._pack_plain(plain[: -step - 1 : -1]))
            del plain[-step:]
        return ListNode(chunks, count, step)


def _is_splittable(data: bytes, level: int) -> bool:
    """Tell whether packed bytes are worth parts, and have any."""
    is_large = len(data) > SPLIT_BYTES and level < PART_LEVELS
    return is_large and shape(data) in ("dict", "list") and not is_tagged(data)


@lru_cache(maxsize=4096)
def _key_bytes(key: str) -> int:
    size = len(key) if key.isascii() else len(key.encode())
    return size + (1 if size < 32 else 2 if size < 256 else 3 if size < 1 << 16 else 5)


def _is_plain_key(key: Any) -> bool:
    if type(key) is not str or key == TAG:
        return False
    return key.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in key)
