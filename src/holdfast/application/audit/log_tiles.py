"""The store's tree as tiles: views of its entries, brought up to date a few at a time.

Which entries the tiles cover is said by one small file, `audit/log/size`, with the root they come to. Whoever
adds tiles replaces it, and only if it is still what was read before: of two processes that do the same work
one is turned away and looks again. Tiles that are gone or damaged are made anew from the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from holdfast.application.audit.log_name import LOG
from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, CheckpointError
from holdfast.domain.merkle import EMPTY_ROOT, HASH_BYTES, leaf_hash, tree_root
from holdfast.domain.note import decode_text
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.tiles import (
    HEIGHT,
    WIDTH,
    Tile,
    TileHashes,
    TreeEdge,
    tiles_of,
)
from holdfast.domain.treehead import parse_number
from holdfast.ports import Store

SIZE_FILE = LOG + "size"

#: Leaves whose tiles are committed at once: 64 tiles, half a megabyte.
_BATCH = 64 * WIDTH
_ATTEMPTS_MAX = 100


class LogTiles:
    """Reads and extends the tiles of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def size(self) -> int:
        """Tell how many entries the stored tiles say they cover; 0 if that cannot be read."""
        return self.standing()[0]

    def standing(self) -> tuple[int, bytes]:
        """Tell how many entries the stored tiles say they cover, and their root; none if that is damaged."""
        stored = self._store.file(SIZE_FILE)
        return (0, EMPTY_ROOT) if stored is None else _parse(stored)

    def read(self, tile: Tile) -> bytes | None:
        """Read a tile exactly as it is stored; None if it is not."""
        return self._store.file(LOG + tile.path)

    def grow(self) -> int:
        """Give every entry its place and bring the tiles up to date; answer the size of the tree.

        Raises:
            CheckpointCorruptError: there are fewer entries than the tiles were made for.
        """
        for _ in range(_ATTEMPTS_MAX):
            stored = self._store.file(SIZE_FILE)
            # Only after that: the entries never become fewer, so these cover at least the tiles.
            size = self._store.integrate()
            if self._store.read_only:
                return size
            edge = self._edge(stored)
            if edge is not None and edge.size > size:
                raise _shrunk(edge.size, size)
            is_done = self._rebuild(stored, size) if edge is None else self._extend(edge, stored, size)
            if is_done:
                return size
        raise CheckpointConflictError("others keep changing the tiles of the log", place=SIZE_FILE)

    def rebuild(self) -> int:
        """Make all tiles anew from the entries; answer the size of the tree."""
        for _ in range(_ATTEMPTS_MAX):
            stored = self._store.file(SIZE_FILE)
            size = self._store.integrate()
            if self._rebuild(stored, size):
                return size
        raise CheckpointConflictError("others keep changing the tiles of the log", place=SIZE_FILE)

    def hashes(self, size: int) -> TileHashes:
        """Give the hashes of the tree as it was at a size; from the entries where tiles do not reach."""
        reached = self.size()
        if reached >= size:
            return TileHashes(size, lambda tile: self._read_cut(tile, reached))
        made = dict(self._made(size))
        return TileHashes(size, made.get)

    def root(self, size: int) -> bytes:
        """Compute the root that the entries had at a size, from stored tiles."""
        return tree_root(size, self.hashes(size))

    def _read_cut(self, tile: Tile, size: int) -> bytes | None:
        """Read a tile as it was, also out of the wider one that replaced it since."""
        now = min(WIDTH, (size >> HEIGHT * tile.level) - tile.index * WIDTH)
        data = self.read(Tile(tile.level, tile.index, max(now, tile.width)))
        if data is None:
            # Somebody replaced it a moment ago, and perhaps more than once: it is full by then, or gone.
            data = self.read(tile.full)
        return data[: tile.width * HASH_BYTES] if data is not None and now >= tile.width else data

    def _edge(self, stored: bytes | None) -> TreeEdge | None:
        """Take up the tree where the tiles end; None if they are damaged, or not what the file says."""
        if stored is None:
            has_tiles = next(iter(self._store.files(LOG + "tile/")), None) is not None
            return None if has_tiles else TreeEdge()
        size, root = _parse(stored)
        try:
            edge = TreeEdge(size, self.read)
        except CheckpointError:
            return None
        return edge if root and edge.root() == root else None

    def _rebuild(self, stored: bytes | None, size: int) -> bool:
        if not self._extend(TreeEdge(), stored, size):
            return False
        wanted = {LOG + tile.path for tile in tiles_of(size)}
        stale = [name for name in self._store.files(LOG + "tile/") if name not in wanted]
        return self._commit(dict.fromkeys(stale), self._store.file(SIZE_FILE)) if stale else True

    def _extend(self, edge: TreeEdge, stored: bytes | None, size: int) -> bool:
        """Add tiles up to a size, batch by batch; False if somebody else was faster."""
        while edge.size < size:
            wanted = min(size - edge.size, _BATCH - edge.size % _BATCH)
            # A new look for each batch: no store has to keep a reader open while it is written to.
            lines = list(islice(self._store.leaves(after=edge.size), wanted))
            if len(lines) < wanted:
                raise _shrunk(edge.size + wanted, edge.size + len(lines))
            files = _changed(edge, lines)
            after = f"{edge.size}\n{to_base64(edge.root())}\n".encode()
            if not self._commit({**files, SIZE_FILE: after}, stored):
                return False
            stored = after
        return True

    def _commit(self, files: dict[str, bytes | None], stored: bytes | None) -> bool:
        commit = Commit(NO_WORKFLOW, Head(), files=files, expected_files={SIZE_FILE: stored})
        [outcome] = self._store.commit([commit])
        if isinstance(outcome, CheckpointConflictError):
            return False
        if outcome is not None:
            raise outcome
        return True

    def _made(self, size: int) -> Iterator[tuple[Tile, bytes]]:
        edge = TreeEdge()
        leaves = islice(self._store.leaves(), size)
        while lines := list(islice(leaves, _BATCH)):
            yield from edge.append([leaf_hash(line) for line in lines])


def _changed(edge: TreeEdge, lines: list[bytes]) -> dict[str, bytes | None]:
    """Add entries to a tree; answer the files that change: new tiles, and partial ones that go for them."""
    before = edge.size
    new = edge.append([leaf_hash(line) for line in lines])
    partial = {(tile.level, tile.index): tile for tile in _partial_tiles(before)}
    replaced = [partial[tile.level, tile.index] for tile, _ in new if (tile.level, tile.index) in partial]
    gone = dict.fromkeys(LOG + tile.path for tile in replaced)
    return {**gone, **{LOG + tile.path: data for tile, data in new}}


def _partial_tiles(size: int) -> Iterator[Tile]:
    level = 0
    while count := size >> HEIGHT * level:
        if count % WIDTH:
            yield Tile(level, count // WIDTH, count % WIDTH)
        level += 1


def _parse(stored: bytes | None) -> tuple[int, bytes]:
    """Read what the tiles cover; no root where the file is none of ours."""
    try:
        size, root, end = decode_text(stored or b"", SIZE_FILE).split("\n")
        return (parse_number(size, SIZE_FILE), from_base64(root, SIZE_FILE)) if not end else (0, b"")
    except (ValueError, CheckpointError):
        return 0, b""


def _shrunk(expected: int, found: int) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"the log has {found} entries, and its tree was made for {expected}",
        place=SIZE_FILE,
        hint="Entries are missing: run `holdfast audit verify`, and look for a copy that is complete.",
    )
