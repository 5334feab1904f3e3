"""The ring: positions wrap, superblocks survive damage, the chain ends where it was cut."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import EMPTY_DIGEST, encode_frame
from holdfast.adapters.filesystem.ring import DATA_START, SLOT_BYTES, Ring, Superblock

CAPACITY = 4096


@pytest.fixture
def disk(tmp_path):
    disk = Disk(str(tmp_path))
    disk.make_folder("journal")
    return disk


@pytest.fixture
def ring(disk):
    ring = Ring.create(disk, "journal/ring-000001", Superblock(1, 1, CAPACITY, 0))
    yield ring
    disk.close(ring.handle)


def put(ring, lsn, chain, payload, durable=0):
    data, digest = encode_frame(lsn, durable, 1, chain, payload)
    ring.write(data, lsn)
    return lsn + len(data), digest


def test_a_new_ring_is_filled_with_zeros_to_its_size(disk, ring):
    assert disk.size(ring.handle) == DATA_START + CAPACITY
    assert ring.read(CAPACITY, 0) == bytes(CAPACITY)


def test_frames_wrap_around_the_end(ring):
    ring.settle(CAPACITY - 200, EMPTY_DIGEST)
    put(ring, CAPACITY - 200, EMPTY_DIGEST, b"x" * 700)
    frames = list(ring.chained(CAPACITY - 200, EMPTY_DIGEST))
    assert [frame.payload for frame in frames] == [b"x" * 700]


def test_the_chain_ends_at_a_frame_chained_to_something_else(ring):
    lsn, chain = put(ring, 0, EMPTY_DIGEST, b"one")
    lsn, _ = put(ring, lsn, chain, b"two")
    put(ring, lsn, b"?" * 32, b"stale")
    assert [frame.payload for frame in ring.chained(0, EMPTY_DIGEST)] == [b"one", b"two"]


def test_strays_after_a_gap_are_found(ring):
    lsn, chain = put(ring, 0, EMPTY_DIGEST, b"one")
    after, chain = put(ring, lsn, chain, b"two")
    put(ring, after, chain, b"three", durable=after)
    ring.write(b"\0" * 100, lsn)
    assert [frame.payload for frame in ring.strays(lsn)] == [b"three"]


@pytest.mark.parametrize("slot", [0, 1])
def test_one_damaged_superblock_is_survived(disk, ring, slot):
    ring.settle(512, b"c" * 32)
    disk.write(ring.handle, b"\xff" * 8, slot * SLOT_BYTES + 16)
    again = Ring.open(disk, ring.path, write=False)
    assert again is not None and again.superblock == ring.superblock
    disk.close(again.handle)


def test_without_a_superblock_there_is_no_ring(disk, ring):
    for slot in range(2):
        disk.write(ring.handle, b"\xff" * 8, slot * SLOT_BYTES)
    assert Ring.open(disk, ring.path, write=False) is None


def test_shrinking_gives_the_space_back_and_filling_takes_it_again(disk, ring):
    ring.shrink()
    assert disk.size(ring.handle) == DATA_START
    assert list(ring.chained(0, EMPTY_DIGEST)) == []
    ring.fill()
    assert disk.size(ring.handle) == DATA_START + CAPACITY


def test_a_reader_notices_a_moved_settled_point(disk, ring):
    other = Ring.open(disk, ring.path, write=False)
    assert other is not None and not other.reread_superblock()
    ring.settle(64, b"d" * 32)
    assert other.reread_superblock() and other.superblock.settled == 64
    disk.close(other.handle)
