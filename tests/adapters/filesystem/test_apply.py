"""Applying: idempotent, in order, and synced file by file or all at once."""

from __future__ import annotations

import errno

import pytest

from holdfast.adapters.filesystem import apply
from holdfast.adapters.filesystem.apply import Applier, ancestors, last_whole, merge
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation

LISTED = [
    Operation(Kind.WRITE, "a/b/f", 0, b"hello "),
    Operation(Kind.WRITE, "a/b/f", 6, b"world"),
    Operation(Kind.WRITE, "a/g", 0, b"gone"),
    Operation(Kind.REPLACE, "a/h", 0, b"whole"),
    Operation(Kind.WRITE, "a/h", 5, b"!"),
    Operation(Kind.UNLINK, "a/g"),
]


class WatchedDisk(Disk):
    def __init__(self, root):
        super().__init__(root)
        self.synced: list[str] = []

    def sync_folder(self, path):
        self.synced.append(path)
        super().sync_folder(path)

    def sync_all(self):
        self.synced.append("*")
        return super().sync_all()


@pytest.fixture
def disk(tmp_path):
    return WatchedDisk(str(tmp_path))


def content(tmp_path):
    return {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_applying_twice_is_applying_once(disk, tmp_path):
    for _ in range(2):
        Applier(disk).apply(LISTED)
        assert content(tmp_path) == {"a/b/f": b"hello world", "a/h": b"whole!"}


def test_new_files_make_their_folders_durable(disk):
    applier = Applier(disk)
    applier.apply(LISTED)
    applier.sync()
    assert {"", "a", "a/b"} <= set(disk.synced)


def test_appending_to_a_known_file_syncs_no_folder(disk):
    first = Applier(disk)
    first.apply(LISTED)
    first.sync()
    disk.synced.clear()
    second = Applier(disk)
    second.apply([Operation(Kind.WRITE, "a/b/f", 11, b"!")])
    second.sync()
    assert disk.synced == []


def test_what_goes_goes_also_where_there_is_no_room_for_what_comes_before_it(disk, tmp_path):
    old = tmp_path / "old"
    old.write_bytes(b"in the way")

    def full(handle, data, offset):
        raise OSError(errno.ENOSPC, "no space left")

    disk.write = full
    listed = [Operation(Kind.WRITE, "new", 0, b"x"), Operation(Kind.UNLINK, "old")]
    with pytest.raises(OSError, match="no space left"):
        Applier(disk).apply(listed)
    assert not old.exists()
    del disk.write
    Applier(disk).apply(listed)
    assert (tmp_path / "new").read_bytes() == b"x"


def test_many_files_are_synced_at_once(disk, monkeypatch):
    monkeypatch.setattr(apply, "SYNC_EACH_MAX", 3)
    applier = Applier(disk)
    applier.apply(LISTED)
    applier.sync()
    assert disk.synced == ["*"]


def test_what_another_process_removed_needs_no_sync(disk):
    applier = Applier(disk)
    applier.adopt(["nowhere/f"])
    applier.sync()


def test_neighbouring_writes_become_one():
    writes = [Operation(Kind.WRITE, "f", o, d) for o, d in ((0, b"ab"), (2, b"cd"), (9, b"z"))]
    assert merge(writes) == [(0, b"abcd"), (9, b"z")]


def test_ancestors_reach_the_root():
    assert ancestors("a/b/f") == ["", "a", "a/b"]


def test_the_last_operation_on_a_whole_file_is_found_wherever_it_stands():
    write, whole, gone = (Operation(kind, "f", 0, b"x") for kind in (Kind.WRITE, Kind.REPLACE, Kind.UNLINK))
    assert [last_whole(one) for one in ([], [write], [whole], [write, whole], [gone, write, write])] == [
        None,
        None,
        0,
        1,
        0,
    ]
    assert last_whole([whole, write, gone, write]) == 2
