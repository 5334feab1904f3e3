"""The door to the file system: modes, links, short writes, locks."""

from __future__ import annotations

import os
import stat

import pytest

from holdfast.adapters.filesystem.disk import Disk


@pytest.fixture
def disk(tmp_path):
    return Disk(str(tmp_path / "store"))


@pytest.fixture
def root(disk, tmp_path):
    disk.make_root()
    return tmp_path / "store"


def put(disk, path, data):
    handle = disk.open(path, write=True, create=True)
    disk.write(handle, data, 0)
    disk.close(handle)


def test_modes_hold_whatever_the_umask(disk, root):
    before = os.umask(0)
    try:
        disk.make_folder("a/b")
        put(disk, "a/b/f", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "a/b/f").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / "a/b").stat().st_mode) == 0o700


@pytest.mark.parametrize("what", ["folder", "file"])
def test_links_are_not_followed(disk, root, tmp_path, what):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"secret")
    if what == "folder":
        (root / "a").symlink_to(outside)
    else:
        disk.make_folder("a")
        (root / "a/f").symlink_to(outside / "f")
    with pytest.raises(OSError):
        disk.open("a/f")
    with pytest.raises(OSError):
        disk.open("a/f", write=True, create=True)
    with pytest.raises(OSError):
        disk.file_size("a/f")
    assert (outside / "f").read_bytes() == b"secret"


def test_short_writes_and_reads_are_continued(disk, root, monkeypatch):
    handle = disk.open("f", write=True, create=True)
    pwrite, pread = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda h, d, o: pwrite(h, bytes(d)[:3], o))
    disk.write(handle, b"0123456789", 2)
    monkeypatch.setattr(os, "pread", lambda h, n, o: pread(h, min(n, 4), o))
    assert disk.read(handle, 10, 2) == b"0123456789"
    assert disk.read(handle, 50, 2) == b"0123456789"
    disk.close(handle)


def test_a_write_without_progress_is_an_error(disk, root, monkeypatch):
    handle = disk.open("f", write=True, create=True)
    monkeypatch.setattr(os, "pwrite", lambda h, d, o: 0)
    with pytest.raises(OSError):
        disk.write(handle, b"x", 0)
    disk.close(handle)


def test_a_lock_excludes_another_handle(disk, root):
    one, two = (disk.open("lock", write=True, create=True) for _ in range(2))
    assert disk.lock(one)
    assert not disk.lock(two, wait=False)
    disk.unlock(one)
    assert disk.lock(two, shared=True, wait=False) and disk.lock(one, shared=True, wait=False)
    disk.close(one)
    disk.close(two)


def test_files_are_listed_renamed_removed_and_synced(disk, root):
    disk.make_folder("a")
    put(disk, "a/new", b"x")
    disk.rename("a/new", "a/f")
    assert disk.list_folder("a") == ["f"] and disk.list_folder("nope") == []
    assert disk.file_size("a/f") == 1 and disk.file_size("a/nope") is None
    disk.sync_folder("a")
    assert disk.sync_all()
    disk.unlink("a/f")
    assert disk.list_folder("a") == []


def test_pages_are_shared_and_files_mapped(disk, root):
    handle = disk.open("page", write=True, create=True)
    disk.write(handle, bytes(4096), 0)
    one, two = disk.share(handle, 4096), disk.share(handle, 4096)
    one[0:2] = b"hi"
    assert bytes(two[0:2]) == b"hi"
    with disk.map(handle, 4096) as mapped:
        assert mapped[:2] == b"hi"
    one.close()
    two.close()
    disk.close(handle)


def test_no_folder_is_made_in_a_store_that_is_gone(disk, root):
    root.rmdir()
    with pytest.raises(FileNotFoundError):
        disk.make_folder("a/b")
    assert not root.exists()


def test_a_file_that_cannot_be_opened_is_named_as_a_whole(disk, root):
    disk.make_folder("a/b")
    with pytest.raises(FileNotFoundError) as caught:
        disk.open("a/b/missing")
    assert caught.value.filename == "a/b/missing"
