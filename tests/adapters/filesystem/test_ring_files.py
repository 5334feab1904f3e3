from __future__ import annotations

import os

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.ring import SLOT_BYTES, Ring
from holdfast.adapters.filesystem.ring_files import (
    FOLDER,
    counting_ring,
    generation_of,
    look,
    open_lock,
    ring_path,
)

CAPACITY = 4096


@pytest.fixture
def disk(tmp_path):
    disk = Disk(str(tmp_path))
    disk.make_folder(FOLDER)
    return disk


def test_a_folder_that_is_gone_is_made_anew_and_told(tmp_path):
    disk = Disk(str(tmp_path))
    handle, damage = open_lock(disk)
    assert "was gone" in str(damage) and (tmp_path / FOLDER / "lock").is_file()
    again, damage = open_lock(disk)
    assert damage is None
    for one in (handle, again):
        disk.close(one)


@pytest.mark.parametrize("name, generation", [("ring-000012", 12), ("ring-000001.tmp", None), ("lock", None)])
def test_rings_are_known_by_their_names(name, generation):
    assert generation_of(name) == generation


def test_the_counting_ring_counts_and_what_is_unfinished_goes(disk, tmp_path):
    first, damage = counting_ring(disk, CAPACITY)
    assert damage is None and first.path == ring_path(1)
    disk.close(first.handle)
    (tmp_path / FOLDER / "ring-000002.tmp").write_bytes(b"half")
    again, damage = counting_ring(disk, CAPACITY)
    assert damage is None and again.superblock == first.superblock
    assert not (tmp_path / FOLDER / "ring-000002.tmp").exists()
    disk.close(again.handle)


def test_a_ring_without_superblocks_is_set_aside_with_its_bytes(disk, tmp_path):
    ring, _ = counting_ring(disk, CAPACITY)
    for slot in range(2):
        disk.write(ring.handle, b"\xff" * 8, slot * SLOT_BYTES)
    disk.close(ring.handle)
    image = (tmp_path / ring_path(1)).read_bytes()
    fresh, damage = counting_ring(disk, CAPACITY)
    assert damage is not None and damage.image == image
    assert fresh.path == ring_path(2) and (tmp_path / FOLDER / "damaged-000001").exists()
    disk.close(fresh.handle)


def test_a_look_that_fails_leaves_nothing_open(disk, monkeypatch):
    ring, _ = counting_ring(disk, CAPACITY)
    disk.close(ring.handle)
    opened = []
    real = Ring.open

    def failing(on, path, *, write):
        if path == ring_path(2):
            raise OSError("it may not be read")
        ring = real(on, path, write=write)
        assert ring is not None
        opened.append(ring.handle)
        return ring

    monkeypatch.setattr(Ring, "open", staticmethod(failing))
    with pytest.raises(OSError, match="may not be read"):
        look(disk, [1, 2], write=False)
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(opened[0])
