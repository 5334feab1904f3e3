"""The journal: redo after a crash, damage told from a torn tail, a failed sync never trusted."""

from __future__ import annotations

import errno
from contextlib import contextmanager

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation, encode_operations
from holdfast.adapters.filesystem.journal import Journal, JournalPoisoned
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.reader import JournalReader
from holdfast.adapters.filesystem.ring import DATA_START, SLOT_BYTES
from holdfast.adapters.filesystem.ring_files import FOLDER, ring_path

CAPACITY = 8192


class FailingDisk(Disk):
    fail_sync = False

    def sync(self, handle):
        if self.fail_sync:
            raise OSError(errno.EIO, "sync failed")
        super().sync(handle)


@pytest.fixture
def disk(tmp_path):
    disk = FailingDisk(str(tmp_path))
    disk.make_folder(FOLDER)
    return disk


@contextmanager
def locked(journal):
    journal.lock()
    try:
        yield
    finally:
        journal.unlock()


def open_journal(disk, redone=None, capacity=CAPACITY):
    journal = Journal(disk, capacity)
    journal.open((redone if redone is not None else []).extend)
    return journal


def write(data=b"x"):
    return [Operation(Kind.WRITE, "f", 0, data)]


def commit(journal, data=b"x"):
    with locked(journal):
        journal.catch_up()
        frame = journal.append(encode_operations(write(data)))
    journal.sync(frame)
    return frame


def test_what_was_not_settled_is_redone(disk):
    journal = open_journal(disk)
    frames = [commit(journal, bytes([n])) for n in range(3)]
    journal.release()
    redone: list = []
    again = open_journal(disk, redone)
    assert [f.digest for f in redone] == [f.digest for f in frames] and again.damage is None
    assert again.settled == again.end == frames[-1].end
    again.release()


def test_nothing_is_redone_while_another_process_lives(disk):
    first = open_journal(disk)
    redone: list = []
    commit(first)
    second = open_journal(disk, redone)
    assert redone == [] and second.token == first.token + 1
    second.release()
    first.release()


def test_two_processes_read_each_other(disk):
    one, two = open_journal(disk), open_journal(disk)
    commit(one, b"from one")
    commit(two, b"from two")
    _, frames = one.catch_up()
    assert [f.operations()[0].data for f in frames] == [b"from two"]
    assert one.end == two.end and one.chain == two.chain
    one.release()
    two.release()


def test_a_flip_in_a_durable_frame_is_damage(disk):
    journal = open_journal(disk)
    for n in range(3):
        commit(journal, bytes([n]))
    disk.write(journal.ring.handle, b"\xff", DATA_START + 100)
    journal.release()
    again = open_journal(disk)
    assert again.damage is not None and again.damage.lsn == 0 and again.damage.durable > 0
    assert again.generation == 2
    again.release()


def test_a_torn_tail_is_not_damage(disk):
    journal = open_journal(disk)
    kept = commit(journal)
    with locked(journal):
        journal.append(encode_operations(write(b"never synced")))
    disk.write(journal.ring.handle, bytes(64), DATA_START + kept.end + 40)
    journal.release()
    again = open_journal(disk)
    assert again.damage is None and again.end == kept.end
    again.release()


def test_a_ring_without_superblocks_is_damage_and_kept(disk, tmp_path):
    journal = open_journal(disk)
    commit(journal)
    for slot in range(2):
        disk.write(journal.ring.handle, b"\xff" * 8, slot * SLOT_BYTES)
    journal.release()
    again = open_journal(disk)
    assert again.damage is not None and again.generation > 1
    assert (tmp_path / FOLDER / "damaged-000001").exists()
    again.release()


def test_after_a_failed_sync_only_the_durable_goes_on_in_a_new_ring(disk):
    journal = open_journal(disk)
    kept = commit(journal, b"kept")
    disk.fail_sync = True
    with pytest.raises(OSError):
        commit(journal, b"in doubt")
    disk.fail_sync = False
    commit(journal, b"next")
    assert journal.generation == 2
    journal.release()
    redone: list = []
    open_journal(disk, redone).release()
    assert [f.operations()[0].data for f in redone] == [b"kept", b"next"]
    assert redone[1].lsn == kept.end


def test_who_waits_on_a_failed_sync_is_told_too(disk):
    one, two = open_journal(disk), open_journal(disk)
    with locked(one):
        first = one.append(encode_operations(write(b"one")))
    with locked(two):
        two.catch_up()
        second = two.append(encode_operations(write(b"two")))
    disk.fail_sync = True
    with pytest.raises(OSError):
        one.sync(first)
    disk.fail_sync = False
    with pytest.raises(JournalPoisoned):
        two.sync(second)
    one.release()
    two.release()


def test_the_last_one_out_gives_the_space_back(disk):
    one, two = open_journal(disk), open_journal(disk)
    one.close(shrink=True)
    assert disk.size(two.ring.handle) == DATA_START + CAPACITY
    two.close(shrink=True)
    assert disk.file_size(ring_path(1)) == DATA_START


def test_another_size_gets_another_ring(disk):
    journal = open_journal(disk)
    commit(journal)
    journal.release()
    again = open_journal(disk, capacity=2 * CAPACITY)
    assert again.ring.capacity == 2 * CAPACITY and disk.file_size(ring_path(1)) is None
    again.release()


def test_a_sleeper_that_missed_a_lap_starts_at_the_settled_point(disk):
    busy, sleeper = open_journal(disk), open_journal(disk)
    for n in range(200):
        frame = commit(busy, b"%03d" % n)
        busy.settle(frame.end, frame.digest)
    last = commit(busy, b"last")
    forget, frames = sleeper.catch_up()
    assert forget and [f.digest for f in frames] == [last.digest]
    busy.release()
    sleeper.release()


def test_room_is_what_is_not_settled(disk):
    journal = open_journal(disk)
    half = CAPACITY // 2
    assert journal.room_for(half)
    commit(journal, bytes(half))
    assert not journal.room_for(half)
    frame = journal.frames_since_settled()[-1]
    journal.settle(frame.end, frame.digest)
    assert journal.room_for(half)
    assert not journal.takes(CAPACITY) and not journal.room_for(CAPACITY)
    journal.release()


def test_a_ring_that_grew_holds_what_was_not_settled_and_takes_what_did_not_fit(disk):
    one, two = open_journal(disk), open_journal(disk)
    first = commit(one, b"before")
    with locked(two):
        two.catch_up()
        two.grow(CAPACITY)
        two.catch_up()
    assert two.takes(CAPACITY) and two.generation == 2
    large = commit(two, b"l" * CAPACITY)
    assert one.catch_up()[0] and one.end == large.end
    one.release()
    two.release()
    redone: list = []
    again = open_journal(disk, redone)
    assert [f.digest for f in redone] == [first.digest, large.digest] and again.damage is None
    assert again.ring.capacity == CAPACITY
    again.release()


def test_who_syncs_a_ring_that_was_left_meanwhile_says_nothing_of_the_next(disk):
    one, two = open_journal(disk), open_journal(disk)
    with locked(one):
        late = one.append(encode_operations(write(b"late")))
    with locked(two):
        two.catch_up()
        two.grow(CAPACITY)
    after = commit(one, b"after")
    one.sync(late)
    two.catch_up()
    assert one.durable == two.durable == after.end and two.chain == after.digest
    one.release()
    two.release()


def test_a_ring_grows_only_when_all_in_it_is_durable(disk):
    journal = open_journal(disk)
    kept = commit(journal)
    with locked(journal):
        journal.append(encode_operations(write(b"not synced")))
        disk.fail_sync = True
        with pytest.raises(OSError, match="sync failed"):
            journal.grow(CAPACITY)
        disk.fail_sync = False
    assert journal.is_poisoned and journal.generation == 1
    with locked(journal):
        journal.catch_up()
    assert journal.generation == 2 and journal.end == kept.end
    journal.release()


def test_a_ring_that_has_no_room_to_grow_leaves_nothing(disk):
    journal = open_journal(disk)
    kept = commit(journal)
    disk.fail_sync = True
    with locked(journal), pytest.raises(OSError, match="sync failed"):
        journal.grow(CAPACITY)
    disk.fail_sync = False
    assert not journal.is_poisoned and [n for n in disk.list_folder(FOLDER) if n.endswith(".tmp")] == []
    after = commit(journal, b"after")
    assert (after.lsn, journal.generation) == (kept.end, 1)
    journal.release()


def test_files_that_must_be_written_again_are_known_in_the_next_ring(disk):
    journal = open_journal(disk)
    commit(journal)
    journal.page.raise_mark(Page.REDO, journal.generation, 1)
    with locked(journal):
        journal.grow(CAPACITY)
        journal.catch_up()
    assert journal.page.mark(Page.REDO, journal.generation) == 1
    journal.release()


class Killed(BaseException):
    """Stands for the end of a process: the kernel lets go of its locks, and nothing else is done."""


def die_growing(journal, monkeypatch, owner=Page, last="publish"):
    """Let a process make the journal grow, and be killed where it would call something."""

    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(owner, last, killed)
        with locked(journal):
            journal.catch_up()
            journal.grow(CAPACITY)
    journal.release()


#: What is called last by who is killed while a ring takes the place of another.
MOMENTS = [(Disk, "sync_folder"), (Page, "raise_durable"), (Page, "publish"), (Journal, "_discard")]


@pytest.mark.parametrize("why", ["grown", "poisoned"])
@pytest.mark.parametrize("owner, last", MOMENTS)
def test_whoever_dies_while_a_ring_takes_the_place_of_another_takes_nothing_along(
    disk, monkeypatch, owner, last, why
):
    one, two, reader = open_journal(disk), open_journal(disk), JournalReader(disk)
    frames = [commit(one, b"before")]
    if why == "poisoned":
        one.page.raise_mark(Page.POISONED, one.generation, 1)

    die_growing(two, monkeypatch, owner, last)
    reader.refresh()
    frames += [commit(one, b"after"), commit(one, b"and after that")]
    reader.refresh()
    assert reader.end == frames[-1].end and reader.chain == frames[-1].digest
    assert sorted(disk.list_folder(FOLDER)).count(ring_path(one.generation).partition("/")[2]) == 1
    one.release()
    reader.close()
    redone: list = []
    again = open_journal(disk, redone)
    assert [f.digest for f in redone] == [f.digest for f in frames] and again.damage is None
    assert [name for name in disk.list_folder(FOLDER) if name.startswith("ring-")] == [
        ring_path(again.generation).partition("/")[2]
    ]
    again.release()


@pytest.mark.parametrize("is_recycled", [True, False])
def test_the_ring_that_was_left_does_not_come_back_with_its_name(disk, tmp_path, is_recycled):
    """A power cut may bring the name of a removed file back."""
    journal = open_journal(disk)
    commit(journal, b"before")
    left = tmp_path / ring_path(1)
    image = left.read_bytes()
    with locked(journal):
        journal.grow(CAPACITY)
    last = commit(journal, b"after")
    if is_recycled:
        journal.settle(last.end, last.digest)
    journal.release()
    left.write_bytes(image)
    again = open_journal(disk)
    assert again.end == last.end and again.chain == last.digest and again.damage is None
    again.release()


def test_damage_in_the_ring_that_counts_does_not_bring_the_one_back_that_was_left(disk, tmp_path):
    journal = open_journal(disk)
    kept = commit(journal, b"before")
    image = (tmp_path / ring_path(1)).read_bytes()
    with locked(journal):
        journal.grow(CAPACITY)
    broken = commit(journal, b"after")
    commit(journal, b"and after that")
    disk.write(journal.ring.handle, b"\xff", DATA_START + broken.lsn + 8)
    journal.release()
    (tmp_path / ring_path(1)).write_bytes(image)
    again = open_journal(disk)
    assert again.damage is not None and again.damage.lsn == kept.end
    again.release()


def test_a_ring_that_nobody_was_told_of_does_not_come_back_when_the_old_one_was_recycled(disk, tmp_path):
    journal = open_journal(disk)
    commit(journal, b"before")
    with locked(journal):
        journal.grow(CAPACITY)
    unused = (tmp_path / ring_path(2)).read_bytes()
    journal.release()
    (tmp_path / ring_path(2)).unlink()
    journal = open_journal(disk)
    last = commit(journal, b"after")
    journal.settle(last.end, last.digest)
    assert journal.generation == 1
    journal.release()
    (tmp_path / ring_path(2)).write_bytes(unused)
    again = open_journal(disk)
    assert again.end == last.end and again.chain == last.digest
    again.release()


def test_a_sync_is_not_believed_if_another_failed_before_all_were_told(disk, monkeypatch):
    one, two = open_journal(disk), open_journal(disk)
    commit(one, b"before")
    with locked(two):
        two.catch_up()
        frame = two.append(encode_operations(write(b"mine")))
    told = two.page.raise_durable

    def late(*given):
        one.page.raise_mark(Page.POISONED, one.generation, 1)
        commit(one, b"another's, in a ring without mine")
        told(*given)

    monkeypatch.setattr(two.page, "raise_durable", late)
    with pytest.raises(JournalPoisoned):
        two.sync(frame)
    one.release()
    two.release()


def test_what_is_settled_in_one_ring_is_not_told_of_the_next(disk, monkeypatch):
    one, two = open_journal(disk), open_journal(disk)
    last = commit(one, b"before")
    settle = one.ring.settle

    def overtaken(*given):
        with locked(two):
            two.catch_up()
            two.grow(CAPACITY)
        one.catch_up()
        settle(*given)

    monkeypatch.setattr(one.ring, "settle", overtaken)
    one.settle(last.end, last.digest)
    assert one.generation == 2
    assert one.page.mark(Page.SETTLED, 2) == 0 and one.page.mark(Page.SETTLED, 1) == last.end
    one.release()
    two.release()


def test_what_is_wiped_stands_in_no_other_ring_either(disk, monkeypatch):
    one, two = open_journal(disk), open_journal(disk)
    last = commit(one, b"erased")

    die_growing(two, monkeypatch)
    one.settle(last.end, last.digest)
    with locked(one):
        one.wipe()
    assert [name for name in disk.list_folder(FOLDER) if name.startswith("ring-")] == ["ring-000001"]
    one.release()


def test_a_ring_that_nobody_was_told_of_hides_no_damage(disk, tmp_path, monkeypatch):
    one, two = open_journal(disk), open_journal(disk)
    rotten = commit(one, b"before")
    commit(one, b"after")

    die_growing(two, monkeypatch)
    disk.write(one.ring.handle, b"\xff", DATA_START + rotten.lsn + 100)
    one.release()
    again = open_journal(disk)
    assert again.damage is not None and again.damage.lsn == rotten.lsn
    again.release()
