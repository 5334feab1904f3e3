"""After a sync failed, the kernel must forget what it remembers before anything is written again.

`tests.machine.sync_failures` shows on a real ext4 why; this shows that it is done.
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.driver import through_sqlite3
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.domain.errors import CheckpointWriteError
from tests.process.commits import make_commit


class FailingDisk(Disk):
    """Cannot sync plain files for a while, and tells what is done to them."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.is_failing = False
        self.done: list[tuple[str, str]] = []
        self._names: dict[int, str] = {}

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self._names[handle] = path
        return handle

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        self.done.append(("write", self._names[handle]))
        super().write(handle, data, offset)

    def sync(self, handle: int) -> None:
        if self.is_failing and self._names[handle].startswith("checkpoints/"):
            raise OSError(errno.EIO, "cannot be synced")
        super().sync(handle)

    def forget(self, path: str, *, sync: bool) -> None:
        self.done.append(("forget", path))
        super().forget(path, sync=sync)


def test_files_whose_sync_failed_are_forgotten_before_they_are_written_again(tmp_path: Path) -> None:
    disk = FailingDisk(str(tmp_path / "store"))
    store = FilesystemStore.open(disk.root, disk=disk, background=False)
    store.commit([make_commit(store.head("WF"), "WF")])
    disk.is_failing = True
    with pytest.raises(CheckpointWriteError):
        store.settle()
    disk.is_failing = False
    disk.done.clear()
    store.settle()
    paths = {path for what, path in disk.done if what == "write" and path.startswith("checkpoints/")}
    assert paths
    for path in paths:
        assert disk.done.index(("forget", path)) < disk.done.index(("write", path))
    store.close()


def test_a_database_is_forgotten_when_its_disk_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[str] = []
    store = SqliteStore.open(str(tmp_path / "store.db"), driver=through_sqlite3(), journal_mode="rollback")
    monkeypatch.setattr(files, "forget", forgotten.append)
    with pytest.raises(CheckpointWriteError), store._database.transaction():
        raise _failed_sync()
    assert forgotten == [store._database.path] * 2
    store.close()


def _failed_sync() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    return error


def test_forgetting_loses_nothing_and_needs_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    for path in ("file", "not there", "nor/there"):
        Disk(str(tmp_path)).forget(path, sync=True)
        files.forget(str(tmp_path / path))
    assert (tmp_path / "file").read_bytes() == b"kept"
