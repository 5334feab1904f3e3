"""A Merkle tree as static files: C2SP tlog-tiles.

A tile is a row of up to 256 hashes, 32 bytes each, nothing else. Tiles of level 0 hold the hashes of leaves;
each hash of the level above is the root of one full tile below. A full tile never changes. The right edge of
the tree is kept in partial tiles, whose names say their width, so that these never change either: one file
is replaced by another. Entry bundles hold the entries themselves in the same grid. Every other hash of the
tree is computed from these, so a proof reads a few tiles and nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    UnstorableValueError,
)
from holdfast.domain.merkle import HASH_BYTES, Frontier, Node, root_of
from holdfast.domain.value import value

#: Levels of the tree in one tile.
HEIGHT = 8
WIDTH = 1 << HEIGHT
LEVEL_MAX = 63
#: Level of the tiles that hold entries instead of hashes.
ENTRIES = -1
#: A bundle gives the length of an entry in two bytes.
ENTRY_BYTES_MAX = 2**16 - 1

_KEPT_TILES_MAX = 64
_INDEX = r"(?:x[0-9]{3}/){0,6}[0-9]{3}"
_PARTIAL = r"(?:\.p/(?P<width>[1-9][0-9]{0,2}))?"
_PATH = re.compile(rf"tile/(?P<level>entries|0|[1-9][0-9]?)/(?P<index>{_INDEX}){_PARTIAL}")


@value
class Tile:
    """A tile by its coordinates; `level` is ENTRIES for a bundle of entries."""

    level: int
    index: int
    width: int = WIDTH

    @property
    def path(self) -> str:
        """Where the tile lies below the log's folder: `tile/0/x001/x234/067`, partial ones end in `.p/12`."""
        groups = [f"{self.index % 1000:03d}"]
        rest = self.index // 1000
        while rest:
            groups.append(f"x{rest % 1000:03d}")
            rest //= 1000
        level = "entries" if self.level == ENTRIES else str(self.level)
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{level}/{'/'.join(reversed(groups))}{partial}"

    @property
    def full(self) -> Tile:
        """The tile once it is full."""
        return Tile(self.level, self.index)


#: Answers the bytes of a tile; None if there is no such file.
TileReader = Callable[[Tile], bytes | None]


def parse_tile_path(path: str) -> Tile:
    """Read a tile's path back; only the one spelling that `Tile.path` has is taken.

    Raises:
        CheckpointCorruptError: if it is none.
    """
    found = _PATH.fullmatch(path) if path.isascii() else None
    if found:
        level = ENTRIES if found["level"] == "entries" else int(found["level"])
        index = int(found["index"].replace("x", "").replace("/", ""))
        tile = Tile(level, index, int(found["width"] or WIDTH))
        if tile.path == path and level <= LEVEL_MAX and tile.width <= WIDTH:
            return tile
    raise CheckpointCorruptError("this is not the path of a tile", place=ascii(path)[:80])


def tiles_of(size: int) -> Iterator[Tile]:
    """Name all tiles of a tree, level by level."""
    return changed_tiles(0, size)


def changed_tiles(old_size: int, new_size: int) -> Iterator[Tile]:
    """Name the tiles that a tree has at the new size and did not have at the old one, level by level."""
    level = 0
    while (count := new_size >> HEIGHT * level) > (before := old_size >> HEIGHT * level):
        yield from _row(level, before, count)
        level += 1


def changed_bundles(old_size: int, new_size: int) -> Iterator[Tile]:
    """Name the bundles of entries that are new at the new size."""
    return _row(ENTRIES, old_size, new_size)


def _row(level: int, before: int, count: int) -> Iterator[Tile]:
    if count > before:
        for index in range(before // WIDTH, (count + WIDTH - 1) // WIDTH):
            yield Tile(level, index, min(WIDTH, count - index * WIDTH))


def _no_tiles(tile: Tile) -> None:
    """Have no tile at all: an empty tree."""


class TreeEdge:
    """The partial tiles of a growing tree, in memory: takes leaves, gives the tiles that they change."""

    __slots__ = ("_rows", "_size")

    def __init__(self, size: int = 0, read: TileReader = _no_tiles) -> None:
        """Begin an empty tree, or go on with a stored one."""
        self._size = size
        self._rows: list[list[bytes]] = []
        level = 0
        while size >> HEIGHT * level:
            count = size >> HEIGHT * level
            width = count % WIDTH
            tile = Tile(level, count // WIDTH, width)
            self._rows.append(split_tile(tile, read_tile(tile, read)) if width else [])
            level += 1

    @property
    def size(self) -> int:
        return self._size

    def append(self, leaves: Sequence[bytes]) -> list[tuple[Tile, bytes]]:
        """Add leaves by their hashes; answer each tile that is new with its bytes."""
        changed: list[tuple[Tile, bytes]] = []
        level, count, arriving = 0, self._size, list(leaves)
        while arriving:
            if level == len(self._rows):
                self._rows.append([])
            row, arriving = self._rows[level] + arriving, []
            for at in range(0, len(row), WIDTH):
                hashes = row[at : at + WIDTH]
                changed.append((Tile(level, (count + at) // WIDTH, len(hashes)), b"".join(hashes)))
                if len(hashes) == WIDTH:
                    arriving.append(root_of(hashes))
            self._rows[level] = row[len(row) - len(row) % WIDTH :]
            level, count = level + 1, count // WIDTH
        self._size += len(leaves)
        return changed

    def frontier(self) -> Frontier:
        """Give the peaks of the tree as it is now."""
        frontier = Frontier()
        for level in reversed(range(len(self._rows))):
            for subtree in self._rows[level]:
                frontier.append(subtree, level=HEIGHT * level)
        return frontier

    def root(self) -> bytes:
        """Give the root of the tree as it is now."""
        return self.frontier().root()


class TileHashes:
    """Reads the hash of any node of a tree of a given size out of its tiles; the tree's `HashReader`."""

    __slots__ = ("_kept", "_read", "_size")

    def __init__(self, size: int, read: TileReader) -> None:
        self._size = size
        self._read = read
        self._kept: dict[Tile, list[bytes]] = {}

    def __call__(self, nodes: Sequence[Node]) -> list[bytes]:
        """Answer the hashes of nodes.

        Raises:
            CheckpointNotFoundError: if a node is not in the tree, or its tile is not there.
            CheckpointCorruptError: if a tile has the wrong length.
        """
        return [self._hash(node) for node in nodes]

    def _hash(self, node: Node) -> bytes:
        level, below = divmod(node.level, HEIGHT)
        first, count = node.index << below, 1 << below
        index, at = divmod(first, WIDTH)
        width = min(WIDTH, (self._size >> HEIGHT * level) - index * WIDTH)
        if at + count > width:
            raise CheckpointNotFoundError(
                f"a tree of {self._size} leaves has no node {node.index} of level {node.level}"
            )
        return root_of(self._hashes(Tile(level, index, width))[at : at + count])

    def _hashes(self, tile: Tile) -> list[bytes]:
        hashes = self._kept.get(tile)
        if hashes is None:
            if len(self._kept) >= _KEPT_TILES_MAX:
                self._kept.clear()
            hashes = self._kept[tile] = split_tile(tile, read_tile(tile, self._read))
        return hashes


def read_tile(tile: Tile, read: TileReader) -> bytes:
    """Read a tile; a partial one that is gone is cut out of the full one that replaced it.

    Raises:
        CheckpointNotFoundError: if neither is there.
        CheckpointCorruptError: if it has the wrong length.
    """
    data, wanted = read(tile), tile
    if data is None and tile.width < WIDTH:
        wanted = tile.full
        data = read(wanted)
    if data is None:
        raise CheckpointNotFoundError("a tile of the tree is not there", place=tile.path)
    if len(data) != wanted.width * HASH_BYTES:
        raise CheckpointCorruptError(
            f"a tile has {len(data)} bytes instead of {wanted.width * HASH_BYTES}", place=wanted.path
        )
    return data[: tile.width * HASH_BYTES]


def split_tile(tile: Tile, data: bytes) -> list[bytes]:
    """Take the hashes out of a tile's bytes."""
    if len(data) != tile.width * HASH_BYTES:
        raise CheckpointCorruptError(
            f"a tile has {len(data)} bytes instead of {tile.width * HASH_BYTES}", place=tile.path
        )
    return [data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)]


def pack_bundle(entries: Iterable[bytes]) -> bytes:
    """Write entries as a bundle: each after its length in two bytes, the high one first."""
    pieces = []
    for entry in entries:
        if len(entry) > ENTRY_BYTES_MAX:
            raise UnstorableValueError(f"an entry of {len(entry)} bytes does not fit into a bundle")
        pieces += [len(entry).to_bytes(2, "big"), entry]
    return b"".join(pieces)


def unpack_bundle(data: bytes) -> Iterator[bytes]:
    """Read the entries of a bundle.

    Raises:
        CheckpointCorruptError: if it ends in the middle of one.
    """
    at = 0
    while at < len(data):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if at + 2 > len(data) or end > len(data):
            raise CheckpointCorruptError(f"a bundle ends in the middle of the entry at byte {at}")
        yield data[at + 2 : end]
        at = end
