"""The Merkle tree of RFC 6962: its hashes, a frontier that grows with it, proofs, and their verification.

A tree over `size` leaves is made of perfect subtrees. Each is named by a `Node`: level 0 is a leaf, level n
spans 2**n leaves. Whoever stores the hashes of nodes can prove things about every size the tree ever had;
who only appends needs no more than the frontier.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError
from holdfast.domain.value import value

HASH_BYTES = 32
#: What other implementations can count; also keeps proofs below 64 hashes.
SIZE_MAX = 2**63 - 1
EMPTY_ROOT = hashlib.sha256(b"").digest()

_sha256 = hashlib.sha256


@value
class Node:
    """A perfect subtree: the `index`-th of those that span 2**level leaves."""

    level: int
    index: int


#: Answers the hashes of nodes, in the order asked for.
HashReader = Callable[[Sequence[Node]], Sequence[bytes]]


def leaf_hash(data: bytes) -> bytes:
    """Hash the bytes of an entry as a leaf."""
    return _sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees into the one above."""
    return _sha256(b"\x01" + left + right).digest()


def root_of(hashes: Sequence[bytes]) -> bytes:
    """Give the root over a row of equally high subtrees, leaves for instance."""
    if not hashes:
        return EMPTY_ROOT
    row = list(hashes)
    while len(row) > 1:
        pairs = zip(row[::2], row[1::2], strict=False)
        above = [_sha256(b"\x01" + left + right).digest() for left, right in pairs]
        # The odd one waits for a partner further up, which is how RFC 6962 splits, seen from below.
        row = [*above, row[-1]] if len(row) % 2 else above
    return row[0]


class Frontier:
    """The peaks of a growing tree, which is all that appending needs: a hash for each bit set in its size."""

    __slots__ = ("_peaks", "_size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self._size = size
        self._peaks = list(peaks)
        if size < 0 or len(self._peaks) != size.bit_count() or not _are_hashes(self._peaks):
            raise CheckpointCorruptError(f"these are not the peaks of a tree with {size} leaves")

    @property
    def size(self) -> int:
        return self._size

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The roots of the perfect subtrees, the largest first."""
        return tuple(self._peaks)

    def append(self, subtree: bytes, *, level: int = 0) -> None:
        """Add a leaf by its hash, or a whole perfect subtree of 2**level leaves where one fits."""
        at = self._size >> level
        if at << level != self._size:
            raise InvalidStateError(f"no subtree of level {level} can follow {self._size} leaves")
        while at & 1:
            subtree = _sha256(b"\x01" + self._peaks.pop() + subtree).digest()
            at >>= 1
        self._peaks.append(subtree)
        self._size += 1 << level

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaves by their hashes."""
        for leaf in leaves:
            self.append(leaf)

    def root(self) -> bytes:
        """Give the root of the tree as it is now."""
        return _fold(self._peaks)

    def copy(self) -> Frontier:
        return Frontier(self._size, self._peaks)


def tree_root(size: int, read: HashReader) -> bytes:
    """Compute the root that a tree had at a size from stored hashes."""
    nodes = list(range_nodes(0, size))
    return _fold(_read(nodes, read))


def inclusion_proof(index: int, size: int, read: HashReader) -> tuple[bytes, ...]:
    """Prove that a leaf is in the tree of a size, from stored hashes, the leaf's sibling first.

    Raises:
        InvalidStateError: if a tree of that size has no such leaf.
    """
    if not 0 <= index < size <= SIZE_MAX:
        raise InvalidStateError(f"a tree of {size} leaves has no leaf {index}; the first one is 0")
    return _hashes_of(_inclusion_ranges(index, size), read)


def consistency_proof(size1: int, size2: int, read: HashReader) -> tuple[bytes, ...]:
    """Prove that the tree of the second size begins with the tree of the first.

    Raises:
        InvalidStateError: if the sizes are not in order, or the first is empty (nothing to be proven).
    """
    if not 0 < size1 <= size2 <= SIZE_MAX:
        raise InvalidStateError(f"no tree of {size2} leaves grew out of one with {size1} in a provable way")
    return _hashes_of(_consistency_ranges(size1, size2), read)


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Check that a leaf, given by its hash, is in the tree with that root.

    Raises:
        CheckpointCorruptError: if leaf, index, size or proof have a shape that no proof has.
        ChecksumMismatchError: if they have, and prove something else.
    """
    if not 0 <= index < size <= SIZE_MAX:
        raise CheckpointCorruptError(f"a tree of {size} leaves has no leaf {index}")
    if not _are_hashes([leaf, *proof]):
        raise CheckpointCorruptError("a proof of inclusion holds something that is no SHA-256 hash")
    at, last, computed = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise CheckpointCorruptError(f"the proof for leaf {index} of {size} is too long")
        if at & 1 or at == last:
            computed = node_hash(sibling, computed)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            computed = node_hash(computed, sibling)
        at, last = at >> 1, last >> 1
    if last:
        raise CheckpointCorruptError(f"the proof for leaf {index} of {size} is too short")
    if computed != root:
        raise ChecksumMismatchError(f"leaf {index} is not in the tree of {size} leaves with that root")


def verify_consistency(size1: int, root1: bytes, size2: int, root2: bytes, proof: Sequence[bytes]) -> None:
    """Check that the tree with the second root grew out of the one with the first.

    An empty first tree is an error: it begins every tree, so that a proof from there would say nothing.

    Raises:
        CheckpointCorruptError: if sizes or proof have a shape that no proof has.
        ChecksumMismatchError: if they have, and prove something else.
    """
    if not 0 < size1 <= size2 <= SIZE_MAX:
        raise CheckpointCorruptError(f"there is no proof of consistency from {size1} to {size2} leaves")
    if not _are_hashes(proof):
        raise CheckpointCorruptError("a proof of consistency holds something that is no SHA-256 hash")
    if size1 == size2:
        if proof:
            raise CheckpointCorruptError("a proof of consistency between equal sizes is not empty")
        computed = (root1, root1)
    else:
        computed = _rebuilt_roots(size1, size2, root1, proof)
    if computed != (root1, root2):
        raise ChecksumMismatchError(f"the tree of {size2} leaves did not grow out of the one with {size1}")


def _rebuilt_roots(size1: int, size2: int, root1: bytes, proof: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Compute both roots from a proof of consistency."""
    # The root of a perfect old tree is where the proof would start: it is left out there.
    path = list(proof) if size1 & (size1 - 1) else [root1, *proof]
    if not proof or len(root1) != HASH_BYTES:
        raise CheckpointCorruptError(f"the proof from {size1} to {size2} leaves is empty or starts nowhere")
    old, new = size1 - 1, size2 - 1
    while old & 1:
        old, new = old >> 1, new >> 1
    old_root = new_root = path[0]
    for step in path[1:]:
        if new == 0:
            raise CheckpointCorruptError(f"the proof from {size1} to {size2} leaves is too long")
        if old & 1 or old == new:
            old_root, new_root = node_hash(step, old_root), node_hash(step, new_root)
            while not old & 1 and old:
                old, new = old >> 1, new >> 1
        else:
            new_root = node_hash(new_root, step)
        old, new = old >> 1, new >> 1
    if new:
        raise CheckpointCorruptError(f"the proof from {size1} to {size2} leaves is too short")
    return old_root, new_root


def range_nodes(first: int, end: int) -> Iterator[Node]:
    """Name the perfect subtrees that cover the leaves first..end-1, from left to right."""
    while first < end:
        fits = (end - first).bit_length() - 1
        level = min(fits, (first & -first).bit_length() - 1) if first else fits
        yield Node(level, first >> level)
        first += 1 << level


def _split(size: int) -> int:
    """Give the largest power of two below a size: how many leaves are left of the middle."""
    return 1 << ((size - 1).bit_length() - 1)


def _inclusion_ranges(index: int, size: int) -> list[tuple[int, int]]:
    first, end = 0, size
    ranges = []
    while end - first > 1:
        middle = first + _split(end - first)
        if index < middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((first, middle))
            first = middle
    return ranges[::-1]


def _consistency_ranges(size1: int, size2: int) -> list[tuple[int, int]]:
    first, end = 0, size2
    ranges = []
    while end != size1:
        middle = first + _split(end - first)
        if size1 <= middle:
            ranges.append((middle, end))
            end = middle
        else:
            ranges.append((first, middle))
            first = middle
    if first:
        ranges.append((first, end))
    return ranges[::-1]


def _hashes_of(ranges: list[tuple[int, int]], read: HashReader) -> tuple[bytes, ...]:
    """Read what all ranges are made of at once, and fold each into its hash."""
    parts = [list(range_nodes(first, end)) for first, end in ranges]
    found = iter(_read([node for nodes in parts for node in nodes], read))
    return tuple(_fold([next(found) for _ in nodes]) for nodes in parts)


def _read(nodes: list[Node], read: HashReader) -> Sequence[bytes]:
    hashes = read(nodes) if nodes else []
    if len(hashes) != len(nodes) or not _are_hashes(hashes):
        raise CheckpointCorruptError("the stored tree did not give a hash for each node it was asked for")
    return hashes


def _fold(peaks: Sequence[bytes]) -> bytes:
    """Join perfect subtrees, the largest first, into one root."""
    if not peaks:
        return EMPTY_ROOT
    joined = peaks[-1]
    for peak in reversed(peaks[:-1]):
        joined = _sha256(b"\x01" + peak + joined).digest()
    return joined


def _are_hashes(values: Iterable[bytes]) -> bool:
    return all(isinstance(value, bytes) and len(value) == HASH_BYTES for value in values)
