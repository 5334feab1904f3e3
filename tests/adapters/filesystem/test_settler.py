"""Settling: files first, then the superblock; a fault is survived and told."""

from __future__ import annotations

import errno

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.journal import Journal
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointWriteError, StoreClosedError
from tests.adapters.filesystem import commits
from tests.adapters.filesystem.conftest import JOURNAL_BYTES


class MoodyDisk(Disk):
    """Refuses to sync view files while it is in a mood."""

    moody = False

    def open(self, path, *, write=False, create=False):
        handle = super().open(path, write=write, create=create)
        self.names = {**getattr(self, "names", {}), handle: path}
        return handle

    def sync(self, handle):
        if self.moody and self.names[handle].endswith(".jsonl"):
            raise OSError(errno.EIO, "view sync failed")
        super().sync(handle)


@pytest.fixture
def disk(tmp_path):
    return MoodyDisk(str(tmp_path / "store"))


@pytest.fixture
def moody(disk):
    store = FilesystemStore.open("", disk=disk, journal_bytes=JOURNAL_BYTES, background=False)
    yield store
    disk.moody = False
    store.close()


def test_settling_moves_everything_to_plain_files(store, fill, root):
    fill("wf", 5)
    assert not list(root.glob("checkpoints/**/*.jsonl"))
    store.settle()
    (deltas,) = root.glob("checkpoints/**/*.deltas.jsonl")
    assert deltas.read_bytes().count(b"\n") == 5


def test_a_view_that_cannot_be_synced_keeps_the_journal(moody, disk):
    commit = commits.checkpoint("wf", moody.head("wf"))
    moody.commit([commit])
    disk.moody = True
    with pytest.raises(CheckpointWriteError):
        moody.settle()
    assert moody.head("wf") == commit.head
    disk.moody = False
    moody.settle()
    assert len(list(moody.records("wf", 1, 1))) == 1


def test_after_a_failed_sync_the_files_are_written_again(moody, disk, monkeypatch):
    moody.commit([commits.checkpoint("wf", moody.head("wf"))])
    disk.moody = True
    with pytest.raises(CheckpointWriteError):
        moody.settle()
    disk.moody = False
    written: list[str] = []
    write = MoodyDisk.write

    def watched(self, handle, data, offset):
        written.append(self.names[handle])
        write(self, handle, data, offset)

    monkeypatch.setattr(MoodyDisk, "write", watched)
    moody.settle()
    assert any(name.endswith(".deltas.jsonl") for name in written)


def test_the_thread_applies_and_settles_by_itself(root):
    store = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES)
    store.commit([commits.checkpoint("wf", store.head("wf"))])
    assert store._committer is not None
    settler = store._committer.settler
    assert settler._thread is not None and settler._thread.is_alive()
    store.close()
    assert not settler._thread.is_alive()
    assert list(root.glob("checkpoints/**/manifest.jsonl"))


def test_closing_despite_a_fault_leaves_the_journal_to_the_next(moody, disk, tmp_path):
    commit = commits.checkpoint("wf", moody.head("wf"))
    moody.commit([commit])
    disk.moody = True
    moody.close()
    again = FilesystemStore.open(str(tmp_path / "store"))
    assert again.head("wf") == commit.head
    again.close()


def test_a_fault_in_the_thread_is_remembered_until_it_is_gone(moody, disk):
    moody.commit([commits.checkpoint("wf", moody.head("wf"))])
    disk.moody = True
    moody._committer.settler._try(idle=True)
    assert isinstance(moody._committer.settler.error, OSError)
    disk.moody = False
    moody._committer.settler._try(idle=True)
    assert moody._committer.settler.error is None


def test_after_the_end_nobody_settles_and_nobody_is_woken(tmp_path):
    """A descriptor that is closed may by then be another file's."""
    store = FilesystemStore.open(str(tmp_path / "store"), journal_bytes=JOURNAL_BYTES)
    committer = store._committer
    assert committer is not None
    store.close()
    committer.settler.wake()
    assert committer.settler._thread is None
    with pytest.raises(StoreClosedError):
        committer.settler.settle()


def test_what_this_process_applied_it_settles_without_reading_the_journal(store, fill, monkeypatch):
    fill("wf", 3)
    committer = store._committer
    committer.settler.apply()
    fill("wf", 2)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "frames_since_settled", lambda self: pytest.fail("the journal was read"))
        store.settle()
    assert committer.pending_bytes == 0


def test_what_others_applied_in_between_is_settled_too(store, fill, root, monkeypatch):
    other = FilesystemStore.open(str(root), journal_bytes=JOURNAL_BYTES, background=False)
    fill("wf", 2)
    store._committer.settler.apply()
    theirs = commits.checkpoint("theirs", other.head("theirs"))
    assert other.commit([theirs]) == [None]
    assert other._committer is not None
    other._committer.settler.apply()
    fill("wf", 1)
    synced: list[str] = []
    sync_file = Applier._sync_file

    def watched(self, path):
        synced.append(path)
        sync_file(self, path)

    monkeypatch.setattr(Applier, "_sync_file", watched)
    store.settle()
    assert layout.deltas_path(layout.workflow_folder("theirs"), 1) in synced
    assert store._committer.pending_bytes == 0
    other.settle()
    other.close()
    assert store.head("theirs") == theirs.head and len(list(store.records("wf", 1, 3))) == 3
