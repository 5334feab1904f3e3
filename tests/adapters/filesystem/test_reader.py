"""Reading a journal without lock or permission to write."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation, encode_operations
from holdfast.adapters.filesystem.journal import Journal
from holdfast.adapters.filesystem.reader import JournalReader
from holdfast.adapters.filesystem.ring import DATA_START
from holdfast.adapters.filesystem.ring_files import FOLDER, ring_path

CAPACITY = 8192


@pytest.fixture
def disk(tmp_path):
    disk = Disk(str(tmp_path))
    disk.make_folder(FOLDER)
    return disk


@pytest.fixture
def journal(disk):
    journal = Journal(disk, CAPACITY)
    journal.open(lambda frames: None)
    yield journal
    journal.release()


@pytest.fixture
def reader(disk):
    reader = JournalReader(disk)
    yield reader
    reader.close()


def commit(journal, data):
    journal.lock()
    journal.catch_up()
    frame = journal.append(encode_operations([Operation(Kind.WRITE, "f", 0, data)]))
    journal.unlock()
    journal.sync(frame)
    return frame


def seen(frames):
    return [frame.operations()[0].data for frame in frames]


def test_each_frame_is_seen_once(journal, reader):
    commit(journal, b"one")
    assert seen(reader.refresh()[1]) == [b"one"]
    commit(journal, b"two")
    assert seen(reader.refresh()[1]) == [b"two"]
    assert reader.refresh() == (False, [])


def test_a_recycled_journal_is_followed(journal, reader):
    reader.refresh()
    for n in range(200):
        frame = commit(journal, b"%03d" % n)
        journal.settle(frame.end, frame.digest)
    commit(journal, b"last")
    forget, frames = reader.refresh()
    assert forget and seen(frames) == [b"last"] and reader.settled == journal.settled


def test_a_new_ring_is_followed(disk, journal, reader):
    commit(journal, b"one")
    reader.refresh()
    journal.page.raise_mark(journal.page.POISONED, journal.generation, 1)
    commit(journal, b"two")
    assert disk.file_size(ring_path(1)) is None
    forget, frames = reader.refresh()
    assert forget and seen(frames) == [b"one", b"two"]


def test_no_journal_is_an_empty_one(disk, tmp_path):
    reader = JournalReader(Disk(str(tmp_path / "elsewhere")))
    assert reader.refresh() == (False, []) and reader.damage() is None and reader.settled == 0


def test_damage_is_seen_by_readers_too(disk, journal, reader):
    for n in range(3):
        commit(journal, bytes([n]))
    disk.write(journal.ring.handle, b"\xff", DATA_START + 100)
    assert reader.refresh()[1] == []
    damage = reader.damage()
    assert damage is not None and damage.lsn == 0
