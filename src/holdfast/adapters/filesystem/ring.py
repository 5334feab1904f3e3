"""The ring file: two superblocks, then a fixed region in which positions (LSNs) wrap around."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import (
    ALIGNMENT,
    EMPTY_DIGEST,
    HEADER_BYTES,
    MAGIC,
    Frame,
    decode_frame,
    encode_frame,
    payload_length,
)
from holdfast.domain.value import value

SLOT_BYTES = 4096
DATA_START = 2 * SLOT_BYTES

#: magic, format version, generation of the ring file, counter, capacity, settled LSN, chain value there
_SUPERBLOCK = struct.Struct("<4sIQQQQ32s")
_SUPER_MAGIC = b"HFJS"
#: A superblock with its digest.
_BLOCK_BYTES = _SUPERBLOCK.size + 32
VERSION = 1
#: So many zeros are written at once.
_FILL_BYTES = 8 * 1024 * 1024


@value
class Superblock:
    """Up to where the plain files hold everything, and how the journal goes on from there."""

    generation: int
    counter: int
    capacity: int
    settled: int
    chain: bytes = EMPTY_DIGEST

    def encode(self) -> bytes:
        body = _SUPERBLOCK.pack(
            _SUPER_MAGIC, VERSION, self.generation, self.counter, self.capacity, self.settled, self.chain
        )
        return body + hashlib.sha256(body).digest()

    @staticmethod
    @lru_cache(maxsize=4)
    def decode(data: bytes) -> Superblock | None:
        """Read a superblock; None if it is not whole. Readers meet the same two before each look."""
        body, digest = data[: _SUPERBLOCK.size], data[_SUPERBLOCK.size : _SUPERBLOCK.size + 32]
        if len(digest) < 32 or hashlib.sha256(body).digest() != digest:
            return None
        _, _, generation, counter, capacity, settled, chain = _SUPERBLOCK.unpack(body)
        return Superblock(generation, counter, capacity, settled, chain)


class Ring:
    """One open ring file."""

    def __init__(self, disk: Disk, handle: int, path: str, superblock: Superblock) -> None:
        self._disk = disk
        self.handle = handle
        self.path = path
        self.superblock = superblock

    @property
    def capacity(self) -> int:
        return self.superblock.capacity

    @staticmethod
    def open(disk: Disk, path: str, *, write: bool) -> Ring | None:
        """Open an existing ring, or answer None if neither superblock is valid."""
        handle = disk.open(path, write=write)
        found = read_superblock(disk, handle)
        if found is None:
            disk.close(handle)
            return None
        return Ring(disk, handle, path, found)

    @staticmethod
    def create(disk: Disk, path: str, superblock: Superblock, frames: Sequence[Frame] = ()) -> Ring:
        """Write a new ring file durably, zero-filled, so that commits never grow it.

        It gets its name last, when it holds the frames that it takes over: a ring file that is there
        is whole or damaged, never unfinished. The name is durable when the caller has synced the folder.
        """
        temporary = path + ".tmp"
        handle = disk.open(temporary, write=True, create=True)
        ring = Ring(disk, handle, path, superblock)
        try:
            ring._begin(frames)
            disk.rename(temporary, path)
        except BaseException:
            # Most likely the disk is full, and of use to whoever asks for less.
            disk.close(handle)
            with suppress(OSError):
                disk.unlink(temporary)
            raise
        return ring

    def _begin(self, frames: Sequence[Frame]) -> None:
        """Write everything that a new file holds, durably."""
        self._disk.truncate(self.handle, 0)
        for slot in range(2):
            self._disk.write(self.handle, self.superblock.encode(), slot * SLOT_BYTES)
        self.fill()
        for frame in frames:
            self.write_frame(frame)
        self.sync()

    def fill(self) -> None:
        """Zero-fill what the file lacks: a later write then changes no metadata."""
        have, end = max(self._disk.size(self.handle), DATA_START), DATA_START + self.capacity
        if have < end:
            for start in range(have, end, _FILL_BYTES):
                self._disk.write(self.handle, bytes(min(_FILL_BYTES, end - start)), start)
            self._disk.sync(self.handle)

    def shrink(self) -> None:
        """Give the space of a fully settled ring back."""
        self._disk.truncate(self.handle, DATA_START)

    def wipe(self, settled: int, end: int) -> None:
        """Overwrite everything but what lies between two positions, durably."""
        self.write(bytes(self.capacity - (end - settled)), end)
        self.sync()

    def write(self, data: bytes, lsn: int) -> None:
        """Write at a position, wrapping at the end of the region."""
        capacity = self.superblock.capacity
        start = lsn % capacity
        if start + len(data) <= capacity:
            self._disk.overwrite(self.handle, data, DATA_START + start)
            return
        self._disk.overwrite(self.handle, data[: capacity - start], DATA_START + start)
        self._disk.overwrite(self.handle, data[capacity - start :], DATA_START)

    def write_frame(self, frame: Frame) -> None:
        """Write a frame again, as it is."""
        data, _ = encode_frame(frame.lsn, frame.durable, frame.token, frame.previous, frame.payload)
        self.write(data, frame.lsn)

    def read(self, length: int, lsn: int) -> bytes:
        start = lsn % self.capacity
        first = min(length, self.capacity - start)
        data = self._disk.read(self.handle, first, DATA_START + start)
        if first < length and len(data) == first:
            data += self._disk.read(self.handle, length - first, DATA_START)
        return data

    def sync(self) -> None:
        self._disk.sync(self.handle)

    def settle(self, settled: int, chain: bytes) -> None:
        """Move the settled point, durably. Only then may what lies before it be overwritten."""
        old = self.superblock
        block = Superblock(old.generation, old.counter + 1, old.capacity, settled, chain)
        # Alternating: whatever becomes of this write, the other slot holds the last durable block.
        slot = block.counter % 2
        self._disk.write(self.handle, block.encode(), slot * SLOT_BYTES)
        self.sync()
        # The second copy becomes durable with the next commit's sync; it is there for bit rot.
        self._disk.write(self.handle, block.encode(), (1 - slot) * SLOT_BYTES)
        # Last: who appends in another thread takes this as leave to overwrite.
        self.superblock = block

    def reread_superblock(self) -> bool:
        """Take up a newer settled point; True if it moved."""
        found = read_superblock(self._disk, self.handle)
        if found is None or found == self.superblock:
            return False
        self.superblock = found
        return True

    def frame(self, lsn: int) -> Frame | None:
        """The frame at a position if one is whole there, whatever it is chained to."""
        header = self.read(HEADER_BYTES, lsn)
        length = payload_length(header, lsn, self.capacity)
        if length is None:
            return None
        payload = self.read(length, lsn + HEADER_BYTES)
        return decode_frame(header, payload) if len(payload) == length else None

    def digest_at(self, lsn: int) -> bytes:
        """The digest that the frame at a position claims, unchecked."""
        return self.read(HEADER_BYTES, lsn)[-len(EMPTY_DIGEST) :]

    def chained(self, lsn: int, chain: bytes) -> Iterator[Frame]:
        """Frames from a position on, as far as the chain is unbroken."""
        limit = lsn + self.capacity
        while lsn < limit:
            frame = self.frame(lsn)
            if frame is None or frame.previous != chain:
                return
            yield frame
            lsn, chain = frame.end, frame.digest

    def since_settled(self) -> Iterator[Frame]:
        """Frames from the settled point on."""
        return self.chained(self.superblock.settled, self.superblock.chain)

    def last_frame(self) -> Frame | None:
        """The last of the frames since the settled point."""
        last = None
        for frame in self.since_settled():
            last = frame
        return last

    def strays(self, lsn: int) -> Iterator[Frame]:
        """Whole frames after a position where the chain broke: witnesses of what was durable."""
        limit = self.superblock.settled + self.capacity
        image = self.read(max(limit - lsn, 0), lsn)
        at = image.find(MAGIC)
        while at >= 0:
            frame = self.frame(lsn + at) if at % ALIGNMENT == 0 else None
            if frame is not None:
                yield frame
            at = image.find(MAGIC, at + 1)


def read_superblock(disk: Disk, handle: int) -> Superblock | None:
    """The newest valid superblock of a ring file."""
    blocks = (Superblock.decode(disk.read(handle, _BLOCK_BYTES, slot * SLOT_BYTES)) for slot in range(2))
    return max((b for b in blocks if b is not None), key=lambda b: b.counter, default=None)
