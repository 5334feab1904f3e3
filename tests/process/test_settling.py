"""Races between committing and settling, each made to happen at its one bad moment."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame
from holdfast.adapters.filesystem.journal import Journal
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.ring import Ring
from holdfast.adapters.filesystem.settler import Settler
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointWriteError
from tests.process import commits
from tests.process.forking import is_held


class Death(BaseException):
    """Stands for the end of a process at this very place."""


def commit_one(store: FilesystemStore, workflow_id: str = "WF-0", pad_bytes: int = 200) -> None:
    commit = commits.make_commit(store.head(workflow_id), workflow_id, pad_bytes=pad_bytes)
    assert store.commit([commit]) == [None]


def check_after_death(root: Path, acknowledged: int) -> None:
    """Look at a copy as the next process would: the dead one's locks do not count there."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    store = FilesystemStore.open(str(copy), background=False)
    assert store.head("WF-0").sequence >= acknowledged
    assert commits.check_store(store, commits.Acknowledged()) == []
    store.close()


def test_a_commit_between_applying_and_settling_is_not_recycled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    commit_one(store)
    settle = Settler._settle

    def commit_then_settle(settler: Settler) -> None:
        commit_one(store)
        settle(settler)

    monkeypatch.setattr(Settler, "_settle", commit_then_settle)
    store.settle()
    check_after_death(tmp_path / "store", 2)


def test_space_is_not_reused_before_the_superblock_that_frees_it_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that commits while another settles must not take what is being freed as free."""
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    commit_one(store)
    ring = store._committer.journal.ring if store._committer else None
    assert ring is not None
    seen: list[int] = []
    sync = Ring.sync

    def look_then_sync(self: Ring) -> None:
        seen.append(ring.superblock.settled)
        sync(self)

    monkeypatch.setattr(Ring, "sync", look_then_sync)
    before = ring.superblock.settled
    store.settle()
    assert seen == [before] and ring.superblock.settled > before
    store.close()


def test_a_dead_writers_unsynced_frame_does_not_hold_the_ring_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "store")
    living = FilesystemStore.open(root, journal_bytes=16384, background=False)
    dying = FilesystemStore.open(root, journal_bytes=16384, background=False)

    def die(*_: object) -> None:
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "sync", die)
        for number in range(3):
            with pytest.raises(Death):
                commit_one(dying, f"WF-dead-{number}", pad_bytes=3500)
    for _ in range(20):
        commit_one(living, pad_bytes=3000)
    assert living.head("WF-0").sequence == 20
    living.close()


def test_a_crash_while_a_failed_ring_is_replaced_keeps_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    commit_one(store)

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch, pytest.raises(CheckpointWriteError):
        patch.setattr(Disk, "sync", fail)
        commit_one(store)

    def die(*_: object) -> None:
        raise Death

    with monkeypatch.context() as patch, pytest.raises(Death):
        # The successor has its name by now; the page does not yet point to it.
        patch.setattr(Page, "publish", die)
        commit_one(store)
    check_after_death(tmp_path / "store", 1)


def test_files_are_never_ahead_of_the_journal_when_a_killed_writers_frames_are_redone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last frame may be in memory only: it must be durable before a file shows it."""
    root = tmp_path / "store"
    store = FilesystemStore.open(str(root), background=False)
    with monkeypatch.context() as patch:
        patch.setattr(Disk, "sync", lambda *_: None)
        commit_one(store)
    shutil.copytree(root, tmp_path / "copy")
    order: list[str] = []
    sync, redo = Ring.sync, Settler.redo

    def noted_sync(self: Ring) -> None:
        order.append("sync")
        sync(self)

    def noted_redo(self: Settler, frames: list[Frame]) -> None:
        order.append("redo")
        redo(self, frames)

    monkeypatch.setattr(Ring, "sync", noted_sync)
    monkeypatch.setattr(Settler, "redo", noted_redo)
    again = FilesystemStore.open(str(tmp_path / "copy"), background=False)
    assert order[:2] == ["sync", "redo"]
    again.close()
    store.close()


def test_a_thread_whose_ring_was_replaced_before_its_sync_is_not_told_yes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its frame was left behind in the failed ring; a sync of the new one proves nothing."""
    store = FilesystemStore.open(str(tmp_path / "store"), background=False)
    commit_one(store)
    sync = Journal.sync

    def replaced_then_sync(journal: Journal, frame: object) -> None:
        monkeypatch.setattr(Journal, "sync", sync)
        journal.page.raise_mark(Page.POISONED, journal.generation, 1)
        commit_one(store, "WF-1")
        journal.sync(frame)

    monkeypatch.setattr(Journal, "sync", replaced_then_sync)
    with pytest.raises(CheckpointWriteError):
        commit_one(store)
    assert store.head("WF-0").sequence == 1 and store.head("WF-1").sequence == 1
    store.close()


def test_a_second_opener_of_a_new_store_does_not_wipe_out_what_the_first_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between finding no shared page and writing an empty one nobody else may get through."""
    root = str(tmp_path / "store")
    FilesystemStore.open(root, background=False).close()
    (tmp_path / "store" / "journal" / "shared").unlink()
    size, held = Disk.size, []

    def look_at_the_lock(disk: Disk, handle: int) -> int:
        found = size(disk, handle)
        if found == 0:
            held.append(is_held(root, "shared"))
        return found

    monkeypatch.setattr(Disk, "size", look_at_the_lock)
    FilesystemStore.open(root, background=False).close()
    assert held == [True]
    assert not is_held(root, "shared")
