"""The shared page: what processes that write one store tell each other without the disk."""

from __future__ import annotations

import struct
import zlib

from holdfast.adapters.filesystem.disk import Disk, SharedPage
from holdfast.domain.value import value

PAGE_BYTES = 4096

#: counter, generation, end LSN, chain value there, checksum of these
_TAIL = struct.Struct("<QQQ32s")
_TAIL_BYTES = 64
_CELL = struct.Struct("<QQ")
_CELL_BYTES = 24
_CELLS_START = 2 * _TAIL_BYTES
#: Writers sync without a lock, so what is durable has a cell for each of several: see `raise_durable`.
_DURABLE_CELL, _DURABLE_CELLS = 8, 8
_TAILS = slice(0, _CELLS_START)
_TAIL_SLOTS = [slice(start, start + _TAIL.size + 4) for start in (0, _TAIL_BYTES)]
_CELL_STARTS = [_CELLS_START + cell * _CELL_BYTES for cell in range(_DURABLE_CELL + _DURABLE_CELLS)]
_CELLS = [slice(start, start + _CELL.size + 4) for start in _CELL_STARTS]
_DURABLE = slice(_CELL_STARTS[_DURABLE_CELL], _CELL_STARTS[-1] + _CELL_BYTES)


@value
class Tail:
    """Where the journal ends and what the next frame is chained to."""

    counter: int
    generation: int
    end: int
    chain: bytes


class Page:
    """Fields in shared memory. A process may die between any two stores: every field carries a checksum.

    Tails alternate between two slots and are written under the append lock. Cells are monotonic
    marks, each true since the moment it was written, also after a power cut. Each is written under a
    lock, but for those that tell what is durable.
    """

    APPLIED, SETTLED, POISONED, REDO, TOKENS = range(5)

    def __init__(self, shared: SharedPage) -> None:
        self._shared = shared
        # What was seen last, and what it meant: most looks find the same bytes again.
        self._tail_seen: tuple[bytes, Tail | None] = (b"", None)
        self._marks_seen = [(b"", 0, 0)] * len(_CELLS)
        self._durable_seen: tuple[bytes, int, int] = (b"", 0, 0)

    def close(self) -> None:
        self._shared.close()

    def tail(self) -> Tail | None:
        raw = self._shared[_TAILS]
        if raw != self._tail_seen[0]:
            found = [t for t in (_read_tail(raw, 0), _read_tail(raw, 1)) if t is not None]
            self._tail_seen = raw, max(found, key=lambda tail: tail.counter, default=None)
        return self._tail_seen[1]

    def publish(self, generation: int, end: int, chain: bytes) -> None:
        """Tell where the journal ends now. Called under the append lock, after the write."""
        last = self.tail()
        counter = last.counter + 1 if last else 1
        body = _TAIL.pack(counter, generation, end, chain)
        self._shared[_TAIL_SLOTS[counter % 2]] = body + _checksum(body)
        self._tail_seen = self._shared[_TAILS], Tail(counter, generation, end, chain)

    def mark(self, cell: int, generation: int) -> int:
        """Value of a mark, 0 if it was never set in this generation."""
        raw = self._shared[_CELLS[cell]]
        seen = self._marks_seen[cell]
        if seen[0] != raw:
            valid = raw[_CELL.size :] == _checksum(raw[: _CELL.size])
            found, value = _CELL.unpack(raw[: _CELL.size]) if valid else (0, 0)
            self._marks_seen[cell] = seen = raw, found, value
        return seen[2] if seen[1] == generation else 0

    def raise_mark(self, cell: int, generation: int, value: int) -> None:
        """Move a mark forward; one that is already further, or of a later generation, stays."""
        if value > self.mark(cell, generation) and generation >= self._marks_seen[cell][1]:
            body = _CELL.pack(generation, value)
            raw = body + _checksum(body)
            self._shared[_CELLS[cell]] = raw
            self._marks_seen[cell] = raw, generation, value

    def durable(self, generation: int) -> int:
        """Up to where the journal is durable, as far as any writer has told."""
        raw, seen = self._shared[_DURABLE], self._durable_seen
        if raw != seen[0] or generation != seen[1]:
            cells = range(_DURABLE_CELL, len(_CELLS))
            self._durable_seen = seen = raw, generation, max(self.mark(cell, generation) for cell in cells)
        return seen[2]

    def raise_durable(self, generation: int, value: int, token: int) -> None:
        """Tell that a sync made the journal durable up to a position.

        Comparing and writing is not one step: with one cell for all, a slow writer could put an older
        value over a newer one. Writers are told apart by their token.
        """
        known, known_generation, highest = self._durable_seen
        cell = token % _DURABLE_CELLS
        self.raise_mark(_DURABLE_CELL + cell, generation, value)
        if known and known_generation == generation:
            raw, start = self._marks_seen[_DURABLE_CELL + cell][0], cell * _CELL_BYTES
            known = known[:start] + raw + known[start + len(raw) :]
            self._durable_seen = known, generation, max(highest, value)

    def clear(self) -> None:
        """Forget everything: the one process that has the store open starts over."""
        self._shared[0:PAGE_BYTES] = bytes(PAGE_BYTES)


def _read_tail(raw: bytes, slot: int) -> Tail | None:
    start = slot * _TAIL_BYTES
    body, checksum = raw[start : start + _TAIL.size], raw[start + _TAIL.size : start + _TAIL.size + 4]
    if checksum != _checksum(body):
        return None
    counter, generation, end, chain = _TAIL.unpack(body)
    return Tail(counter, generation, end, chain) if counter else None


def _checksum(body: bytes) -> bytes:
    # Salted so that a page of zeros is not a valid one.
    return zlib.crc32(body, 0x5EA).to_bytes(4, "little")


def open_page(disk: Disk, path: str) -> Page:
    """Open the page of a store; the first who comes makes it."""
    handle = disk.open(path, write=True, create=True)
    try:
        # Of two that find no page, the slower one would wipe out what the faster one told by then.
        disk.lock(handle)
        if disk.size(handle) < PAGE_BYTES:
            disk.write(handle, bytes(PAGE_BYTES), 0)
        return Page(disk.share(handle, PAGE_BYTES))
    finally:
        disk.unlock(handle)
        disk.close(handle)
