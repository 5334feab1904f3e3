"""The journal as seen by who may not write: no lock, no shared page, only the ring's own bytes."""

from __future__ import annotations

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import EMPTY_DIGEST, Frame
from holdfast.adapters.filesystem.journal import PAGE_PATH
from holdfast.adapters.filesystem.page import PAGE_BYTES, Page
from holdfast.adapters.filesystem.ring import Ring
from holdfast.adapters.filesystem.ring_files import Damage, find_damage, generations, look


class JournalReader:
    """Follows the journal of a store that others may be writing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.ring: Ring | None = None
        self.end = 0
        self.chain = EMPTY_DIGEST
        self._last: Frame | None = None

    def refresh(self) -> tuple[bool, list[Frame]]:
        """Frames that appeared since the last look, and whether to forget those before."""
        forget = self._follow()
        if self.ring is None:
            return forget, []
        while True:
            frames = list(self.ring.chained(self.end, self.chain))
            # A settled point that moved meanwhile means that what we read may have been recycled.
            if not self.ring.reread_superblock():
                break
            forget = True
            self._rewind(self.ring)
        if frames:
            self._last = frames[-1]
            self.end, self.chain = self._last.end, self._last.digest
        return forget, frames

    def _follow(self) -> bool:
        """Stay with the ring that counts; True if we start over at its settled point."""
        there, current = generations(self._disk), self.ring
        if not there or (current and there == [current.superblock.generation]):
            if current is None or not self._overtaken(current):
                return False
            self._rewind(current)
            return True
        self.close()
        try:
            self.ring = look(self._disk, there, write=False).counting
        except FileNotFoundError:
            # Replaced between the listing and here: the next listing names its successor.
            return self._follow()
        if self.ring is not None:
            self._rewind(self.ring)
        return True

    def _overtaken(self, ring: Ring) -> bool:
        """Whether what we followed was recycled, or replaced because its writer died before it counted."""
        ring.reread_superblock()
        if ring.superblock.settled > self.end:
            return True
        last = self._last
        if last is None or last.lsn < ring.superblock.settled:
            return False
        return ring.digest_at(last.lsn) != last.digest

    def _rewind(self, ring: Ring) -> None:
        self.end, self.chain = ring.superblock.settled, ring.superblock.chain
        self._last = None

    @property
    def settled(self) -> int:
        return self.ring.superblock.settled if self.ring else 0

    def damage(self) -> Damage | None:
        """Damage past the last frame we can follow, if the journal or the shared page says so."""
        ring = self.ring
        if ring is None:
            return None
        # First the mark, then the frames: writers may go on meanwhile.
        durable, end = self._durable(ring), self.end
        for frame in ring.chained(self.end, self.chain):
            end = frame.end
        found = find_damage(ring, end, durable)
        return None if ring.reread_superblock() else found

    @property
    def is_told_of(self) -> bool:
        """Whether writers told each other where a journal ends."""
        page = self._page()
        return page is not None and page.tail() is not None

    def _durable(self, ring: Ring) -> int:
        """The position that writers marked as durable; a page we cannot read says nothing."""
        page = self._page()
        return 0 if page is None else page.durable(ring.superblock.generation)

    def _page(self) -> Page | None:
        try:
            handle = self._disk.open(PAGE_PATH)
        except OSError:
            return None
        try:
            return Page(_Still(self._disk.read(handle, PAGE_BYTES, 0).ljust(PAGE_BYTES, b"\0")))
        finally:
            self._disk.close(handle)

    def close(self) -> None:
        if self.ring is not None:
            self._disk.close(self.ring.handle)
            self.ring = None


class _Still:
    """The shared page as it was at one moment."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __getitem__(self, key: slice) -> bytes:
        return self._data[key]

    def __setitem__(self, key: slice, value: bytes) -> None:
        raise TypeError("a reader never writes")

    def close(self) -> None:
        """Nothing is held."""
