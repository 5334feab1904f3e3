"""The change between two snapshots, made from their bytes alone."""

from __future__ import annotations

from itertools import compress
from operator import ne
from typing import Any

from holdfast.application.nodes import ListNode, Node, ObjectNode, is_tagged, plain_of
from holdfast.domain import delta
from holdfast.domain.align import Splice, align, common_ends
from holdfast.domain.delta import Operation
from holdfast.domain.msgpack import array_head, shape, text_of
from holdfast.domain.tree import TAG
from holdfast.ports import Packer

#: Tagged objects whose content is compared; of others the whole changes.
_OPEN_TAGS = frozenset({"obj", "tuple", "set", "frozenset", "map", "dict"})
#: Types whose values are the same if they are equal.
_EXACT = frozenset({str, int, bool, bytes, type(None)})
#: Below so many levels a change is a new value.
_COMPARED_LEVELS = 64
#: Operations that say what changed may weigh so much more than the whole value.
_READABLE_BYTES = 64
#: Of a long run of changed items so many tell whether to compare them one by one.
_SAMPLE_ITEMS = 16
#: Packed bytes of an operation without path and values, at most.
_SET_BYTES, _SPLICE_BYTES, _APPEND_BYTES, _DELETE_BYTES = 22, 49, 24, 20

Path = tuple[str | int, ...]


def compare(old: Node, new: Node, packer: Packer) -> list[Operation]:
    """Find the operations that turn one node into another."""
    comparison = _Comparison(packer)
    comparison.nodes(old, new, ())
    return comparison.ops


class _Comparison:
    """Compares nodes, and leaves part by part where they differ.

    What is found is added to `ops`. Methods answer about how many bytes they added; None, and nothing is
    added, where they have no answer.
    """

    __slots__ = ("_pack", "_packer", "_unpack", "ops")

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._pack = packer.pack_plain
        self._unpack = packer.unpack
        self.ops: list[Operation] = []

    def nodes(self, old: Node, new: Node, path: Path) -> int:
        if old is new or old == new:
            return 0
        mark = len(self.ops)
        # The usual kinds first: every commit comes this way for each part that changed.
        if type(old) is ListNode and type(new) is ListNode:
            return self._lighter(self._lists(old, new, path), mark, new, path, 0)
        if type(old) is ObjectNode and type(new) is ObjectNode:
            return self._lighter(self._objects(old, new, path), mark, new, path, _READABLE_BYTES)
        if type(old) is bytes and type(new) is bytes:
            weight = self._small_objects(old, new, path)
            if weight is not None:
                return weight
        kind = _kind(new)
        if kind == "other" or kind != _kind(old) or len(path) >= _COMPARED_LEVELS:
            return self._set(new, path)
        extra = _READABLE_BYTES if kind == "dict" else 0
        return self._lighter(self._parts(kind, old, new, path), mark, new, path, extra)

    def _lighter(self, weight: int | None, mark: int, new: Node, path: Path, extra_bytes: int) -> int:
        """Keep what the parts added since a mark, unless that is nothing or a new value weighs less."""
        if weight is not None:
            limit = len(new) + extra_bytes
            # The weight of the path matters only where it is close.
            if weight <= limit or weight <= limit + _SET_BYTES + _path_bytes(path):
                return weight
            del self.ops[mark:]
        return self._set(new, path)

    def _small_objects(self, old: bytes, new: bytes, path: Path) -> int | None:
        """Compare two objects of at most 15 members; None unless they are as `_members` wants them."""
        if not (0x80 < old[0] < 0x90 and 0x80 < new[0] < 0x90) or len(path) >= _COMPARED_LEVELS:
            return None
        was, now = self._unpack(old), self._unpack(new)
        return None if TAG in was or TAG in now else self._members(was, now, len(new), path)

    def _members(self, was: dict[str, Any], now: dict[str, Any], size_bytes: int, path: Path) -> int | None:
        """Compare objects of the same keys that hold texts and scalars only; None for any other.

        The usual case, an edited message or task, without a node for each member.
        """
        if list(was) != list(now):
            return None
        ops, here, weight = [], _path_bytes(path), 0
        for key, value in now.items():
            before = was[key]
            if type(value) not in _EXACT or type(before) not in _EXACT:
                return None
            if type(before) is not type(value) or before != value:
                op, more = _member(before, value, (*path, key))
                ops.append(op)
                weight += more + here + _text_bytes(key)
        if weight > size_bytes + _READABLE_BYTES + _SET_BYTES + here:
            return None
        self.ops += ops
        return weight

    def _set(self, new: Node, path: Path) -> int:
        self.ops.append(delta.set_value(path, plain_of(new, self._packer)))
        return _SET_BYTES + _path_bytes(path) + len(new)

    def _parts(self, kind: str, old: Node, new: Node, path: Path) -> int | None:
        """Compare the parts of two values of a kind; None if they have none in common."""
        if kind == "dict":
            return self._objects(*self._as_objects(old, new), path)
        if kind == "list":
            return self._lists(self._as_list(old), self._as_list(new), path)
        if kind == "tagged":
            return self._tagged(plain_of(old, self._packer), plain_of(new, self._packer), path)
        return self._grown(old, new, path) if isinstance(old, bytes) and isinstance(new, bytes) else None

    def _as_objects(self, old: Node, new: Node) -> tuple[ObjectNode, ObjectNode]:
        """See two objects as nodes; of two leaves, without the members that are plainly the same."""
        if isinstance(old, bytes) and isinstance(new, bytes):
            was, now = self._unpack(old), self._unpack(new)
            if list(was) == list(now):
                keys = [key for key in now if not _is_plainly_same(was[key], now[key])]
                was, now = {key: was[key] for key in keys}, {key: now[key] for key in keys}
            return self._object(was), self._object(now)
        return self._as_object(old), self._as_object(new)

    def _as_object(self, node: Node) -> ObjectNode:
        return node if isinstance(node, ObjectNode) else self._object(plain_of(node, self._packer))

    def _object(self, plain: dict[str, Any]) -> ObjectNode:
        pack = self._pack
        return ObjectNode({key: pack(item) for key, item in plain.items()})

    def _as_list(self, node: Node) -> ListNode:
        if isinstance(node, ListNode):
            return node
        assert isinstance(node, bytes)
        count = len(self._unpack(node))
        return ListNode([node] if count else [], count, max(count, 1))

    def _tagged(self, old: Any, new: Any, path: Path) -> int | None:
        """Compare the contents of two tagged objects; None unless they are of one open type."""
        pack = self._pack
        was, now = old.pop("v", None), new.pop("v", None)
        if new[TAG] not in _OPEN_TAGS or pack(old) != pack(new):
            return None
        return self.nodes(pack(was), pack(now), (*path, "v"))

    def _grown(self, old: bytes, new: bytes, path: Path) -> int | None:
        """Express a string that grew as an append."""
        was, now = text_of(old), text_of(new)
        if not was or not now.startswith(was):
            return None
        self.ops.append(delta.append(path, now[len(was) :].decode()))
        return _APPEND_BYTES + _path_bytes(path) + len(now) - len(was)

    def _objects(self, old: ObjectNode, new: ObjectNode, path: Path) -> int:
        """Keep the members that stay in order, then add the others at the end, as `set` does."""
        known, children = old.children, new.children
        kept, weight = _kept(list(known), order := list(children)), 0
        if len(kept) < len(known):
            stays = set(kept)
            for key in known:
                if key not in stays:
                    self.ops.append(delta.delete((*path, key)))
                    weight += _DELETE_BYTES + _path_bytes((*path, key))
        for key in kept:
            was, child = known[key], children[key]
            if was is not child:
                weight += self.nodes(was, child, (*path, key))
        for key in order[len(kept) :]:
            weight += self._set(children[key], (*path, key))
        return weight

    def _lists(self, old: ListNode, new: ListNode, path: Path) -> int:
        weight = 0
        for first, last in _runs(old, new):
            weight += self._run(old, new, first, last, path)
        return weight

    def _run(self, old: ListNode, new: ListNode, first: int, last: int, path: Path) -> int:
        """Compare the items of differing chunks, `first` up to `last`; the last run may end differently."""
        if new.count > old.count and last >= len(old.chunks):
            added = _added(old, new, first)
            if added is not None:
                self.ops.append(delta.splice(path, old.count, 0, self._unpack(added)))
                return _SPLICE_BYTES + _path_bytes(path) + len(added)
        if old.count == new.count and old.step == new.step:
            edited = self._edited(old, new, first, last, path)
            if edited is not None:
                return edited
        start, was, now = self._items(old, new, first, last)
        weight = shift = 0
        for splice in align(was, now):
            gone = was[splice.at - shift : splice.at - shift + splice.remove]
            weight += self._splice(splice, start, gone, now, path)
            shift += splice.stop - splice.start - splice.remove
        return weight

    def _edited(self, old: ListNode, new: ListNode, first: int, last: int, path: Path) -> int | None:
        """Compare items where they stand; None unless most of them stayed the same."""
        mark, weight, start = len(self.ops), 0, first * new.step
        for before, after in zip(old.chunks[first:last], new.chunks[first:last], strict=True):
            was, now = self._unpack(before), self._unpack(after)
            changed = _unequal(was, now)
            if changed is not None and (2 * len(changed) <= len(now) or len(changed) == 1):
                gone = [was[at] for at in changed]
                for at in changed:
                    was[at] = now[at]
                # Python calls 1 and True equal: only the bytes prove that the others are the same.
                if self._pack(was) == after:
                    for at, item in zip(changed, gone, strict=True):
                        weight += self._item(item, now[at], (*path, start + at))
                    start += new.step
                    continue
            del self.ops[mark:]
            return None
        return weight

    def _item(self, was: Any, now: Any, path: Path) -> int:
        """Compare one item of a list with the one in its place."""
        packed = self._pack(now)
        if type(was) is type(now) is dict and TAG not in now and TAG not in was:
            weight = self._members(was, now, len(packed), path)
            if weight is not None:
                return weight
        return self.nodes(self._pack(was), packed, path)

    def _items(
        self, old: ListNode, new: ListNode, first: int, last: int
    ) -> tuple[int, list[bytes], list[bytes]]:
        """Give the items of differing chunks packed one by one, and where they start.

        In a single chunk, items at the ends that Python calls equal are left out if the bytes prove them so.
        """
        pack, start = self._pack, first * new.step
        if last - first == 1 and first < len(old.chunks) and first < len(new.chunks):
            was, now = self._unpack(old.chunks[first]), self._unpack(new.chunks[first])
            head, tail = _equal_ends(was, now)
            front = pack(now[:head])[len(array_head(head)) :]
            gone = [pack(item) for item in was[head : len(was) - tail]]
            come = [pack(item) for item in now[head : len(now) - tail]]
            body, new_body = _body(old, first), _body(new, first)
            rest, new_rest = len(front) + sum(map(len, gone)), len(front) + sum(map(len, come))
            if body.startswith(front) and body[rest:] == new_body[new_rest:]:
                return start + head, gone, come
        return start, self._packed_items(old, first, last), self._packed_items(new, first, last)

    def _packed_items(self, node: ListNode, first: int, last: int) -> list[bytes]:
        """Pack the items of some chunks one by one; of a large list never more than a chunk is plain."""
        pack, unpack = self._pack, self._unpack
        return [pack(item) for chunk in node.chunks[first:last] for item in unpack(chunk)]

    def _splice(self, splice: Splice, start: int, gone: list[bytes], now: list[bytes], path: Path) -> int:
        """Change the items in place as far as there are as many, if that is less than writing them anew."""
        at, mark = start + splice.at, len(self.ops)
        come = now[splice.start : splice.stop]
        whole = _SPLICE_BYTES + _path_bytes(path) + sum(map(len, come))
        both = min(len(gone), len(come))
        if both and self._is_worth_pairing(gone, come, both, (*path, at)):
            weight = self._paired(gone, come, at, path, whole)
            if weight < whole:
                return weight
            del self.ops[mark:]
        self.ops.append(delta.splice(path, at, len(gone), list(map(self._unpack, come))))
        return whole

    def _paired(self, gone: list[bytes], come: list[bytes], at: int, path: Path, limit: int) -> int:
        """Change items in place, then the rest; stop where that weighs as much as the limit."""
        weight = both = 0
        for both, (was, now) in enumerate(zip(gone, come, strict=False), 1):
            weight += self.nodes(was, now, (*path, at + both - 1))
            if weight >= limit:
                return weight
        if len(gone) != len(come):
            more = come[both:]
            self.ops.append(delta.splice(path, at + both, len(gone) - both, list(map(self._unpack, more))))
            weight += _SPLICE_BYTES + _path_bytes(path) + sum(map(len, more))
        return weight

    def _is_worth_pairing(self, gone: list[bytes], come: list[bytes], both: int, path: Path) -> bool:
        """Tell by a few items all over a long run whether any has something of the one before."""
        if both <= 4 * _SAMPLE_ITEMS:
            return True
        mark, places = len(self.ops), range(0, both, both // _SAMPLE_ITEMS)
        is_worth = any(self.nodes(gone[at], come[at], path) < len(come[at]) for at in places)
        del self.ops[mark:]
        return is_worth


def _unequal(old: list[Any], new: list[Any]) -> list[int] | None:
    """Name the places where Python calls items unequal; None if they are nested too deep to tell."""
    try:
        return list(compress(range(len(new)), map(ne, old, new)))
    except RecursionError:
        return None


def _member(before: Any, value: Any, path: Path) -> tuple[Operation, int]:
    """Set a scalar or a text, or append to a text; answers about how many bytes that is without the path."""
    if type(value) is str:
        if type(before) is str and before and value.startswith(before):
            added = value[len(before) :]
            return delta.append(path, added), _APPEND_BYTES + _text_bytes(added)
        size = _text_bytes(value)
    else:
        size = len(value) if type(value) is bytes else 9
    return delta.set_value(path, value), _SET_BYTES + size


def _path_bytes(path: Path) -> int:
    weight = 5
    for step in path:
        weight += _text_bytes(step) if type(step) is str else 5
    return weight


def _text_bytes(text: str) -> int:
    return 5 + (len(text) if text.isascii() else len(text.encode()))


def _is_plainly_same(old: Any, new: Any) -> bool:
    """Tell the same value without packing; False where equality in Python would not prove it."""
    return type(old) is type(new) and type(new) in _EXACT and bool(old == new)


def _kind(node: Node) -> str:
    if isinstance(node, ObjectNode):
        return "dict"
    if isinstance(node, ListNode):
        return "list"
    return "tagged" if is_tagged(node) else shape(node)


def _kept(old: list[str], new: list[str]) -> list[str]:
    """Find the members at the front of `new` that also follow each other in `old`."""
    if new[: len(old)] == old:
        return old
    place = {key: at for at, key in enumerate(old)}
    kept: list[str] = []
    last = -1
    for key in new:
        at = place.get(key, -1)
        if at <= last:
            break
        kept.append(key)
        last = at
    return kept


def _runs(old: ListNode, new: ListNode) -> list[tuple[int, int]]:
    """Give the ranges of neighbouring chunks that differ."""
    shared, longest = sorted((len(old.chunks), len(new.chunks)))
    if old.step != new.step:
        return [(0, longest)]
    runs: list[tuple[int, int]] = []
    for index in [*compress(range(shared), map(ne, old.chunks, new.chunks)), *range(shared, longest)]:
        first = runs.pop()[0] if runs and runs[-1][1] == index else index
        runs.append((first, index + 1))
    return runs


def _body(node: ListNode, chunk: int) -> bytes:
    """Give the packed items of a chunk without their head."""
    return node.chunks[chunk][len(array_head(node.items_in(chunk))) :]


def _equal_ends(old: list[Any], new: list[Any]) -> tuple[int, int]:
    """Count equal items at both ends, as Python compares: `1` equals `True` here, and NaN nothing."""
    try:
        return common_ends(old, new)
    except RecursionError:
        return 0, 0


def _added(old: ListNode, new: ListNode, first: int) -> bytes | None:
    """Give the packed list of items added at the end if nothing else changed from chunk `first` on."""
    if old.step != new.step or first < len(old.chunks) - 1:
        return None
    bodies = [_body(new, chunk) for chunk in range(first, len(new.chunks))]
    if first < len(old.chunks):
        was = _body(old, first)
        if not bodies[0].startswith(was):
            return None
        bodies[0] = bodies[0][len(was) :]
    return array_head(new.count - old.count) + b"".join(bodies)
