"""Staged files: durable under a name of their own, in their place only when chosen, gone otherwise."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.faults import Writing
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.staging import Staging, staged_files, sweep_staged, write_file
from holdfast.domain.errors import AtomicRenameFailedError


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    (tmp_path / "journal").mkdir()
    return Disk(str(tmp_path))


def test_only_chosen_files_are_placed_and_nothing_else_stays(disk: Disk, tmp_path: Path) -> None:
    with Staging(disk) as staging:
        staging.add(1, "blobs/aa/winner", b"winner")
        staging.add(2, "blobs/aa/loser", b"loser")
        # Two files and the key.
        assert len(disk.list_folder("journal")) == 3
        staging.choose([1])
        staging.place()
    assert (tmp_path / "blobs" / "aa" / "winner").read_bytes() == b"winner"
    assert disk.list_folder("blobs/aa") == ["winner"]
    assert disk.list_folder("journal") == []


def test_an_error_on_the_way_leaves_nothing_behind(disk: Disk) -> None:
    with pytest.raises(ZeroDivisionError), Staging(disk) as staging:
        staging.add(1, "blobs/aa/file", b"data")
        raise ZeroDivisionError
    assert disk.list_folder("journal") == []
    assert disk.list_folder("blobs") == []


@pytest.mark.parametrize(("chosen", "path", "collides"), [(1, "a", True), (2, "a", False), (1, "b", False)])
def test_only_a_chosen_file_that_would_be_redone_collides(
    disk: Disk, chosen: int, path: str, collides: bool
) -> None:
    with Staging(disk) as staging:
        staging.add(1, "a", b"data")
        staging.choose([chosen])
        assert staging.collides([Operation(Kind.UNLINK, path)]) is collides


def test_a_file_is_replaced_as_a_whole(disk: Disk, tmp_path: Path) -> None:
    write_file(disk, "recovery/latest.json", b"a longer first content")
    write_file(disk, "recovery/latest.json", b"short")
    assert (tmp_path / "recovery" / "latest.json").read_bytes() == b"short"


class HeldDisk(Disk):
    """A disk on which a file is held by somebody: nothing can be moved over it."""

    def rename(self, source: str, target: str) -> None:
        raise OSError(errno.EBUSY, "held")


def test_a_file_that_cannot_be_moved_into_its_place_is_told_as_such(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(AtomicRenameFailedError, match="held"), Writing("store"):
        write_file(HeldDisk(str(tmp_path)), "recovery/latest.json", b"new")


def die(staging: Staging) -> None:
    """Leave everything as it is; the kernel lets go of the lock."""
    staging.let_go()


def test_what_a_dead_writer_staged_is_swept_and_what_a_living_one_did_stays(disk: Disk) -> None:
    dead = Staging(disk)
    dead.add(1, "blobs/aa/dead", b"dead one")
    dead.add(1, "blobs/aa/dead too", b"dead two")
    with Staging(disk) as living:
        living.add(1, "blobs/aa/living", b"living")
        assert sweep_staged(disk) == 0
        die(dead)
        assert sweep_staged(disk) == 16
        living.choose([1])
        living.place()
    assert disk.list_folder("journal") == []
    assert disk.list_folder("blobs/aa") == ["living"]


def test_what_lies_there_without_a_key_is_nobodys(disk: Disk, tmp_path: Path) -> None:
    dead = Staging(disk)
    dead.add(1, "blobs/aa/dead", b"dead")
    die(dead)
    key = min(staged_files(disk), key=len)
    (tmp_path / "journal" / key).unlink()
    assert sweep_staged(disk) == 4 and disk.list_folder("journal") == []


def test_a_ring_that_was_never_finished_is_swept(disk: Disk, tmp_path: Path) -> None:
    dead = Staging(disk)
    dead.add(1, "blobs/aa/dead", b"dead")
    die(dead)
    (tmp_path / "journal" / "ring-000002.tmp").write_bytes(b"frames")
    (tmp_path / "journal" / "ring-000001").write_bytes(b"of use")
    assert sweep_staged(disk) == 10 and disk.list_folder("journal") == ["ring-000001"]


def test_a_temporary_file_of_a_holdfast_that_knows_no_keys_is_left_alone(disk: Disk, tmp_path: Path) -> None:
    other = f"{'0' * 32}.tmp"
    (tmp_path / "journal" / other).write_bytes(b"perhaps being written")
    assert sweep_staged(disk) == 0 and disk.list_folder("journal") == [other]


class SweptDisk(Disk):
    """A disk on which somebody sweeps whenever a key was made and is not locked yet."""

    def __init__(self, root: str, *, is_at_it: bool) -> None:
        super().__init__(root)
        self.is_at_it = is_at_it
        self.swept = 0

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        if self.swept >= 2:
            return super().lock(handle, shared=shared, wait=wait)
        self.swept += 1
        if self.is_at_it:
            return False
        sweep_staged(Disk(self.root))
        return super().lock(handle, shared=shared, wait=wait)


@pytest.mark.parametrize("is_at_it", [False, True])
def test_a_key_that_was_swept_before_it_was_locked_is_made_anew(
    disk: Disk, tmp_path: Path, is_at_it: bool
) -> None:
    swept = SweptDisk(str(tmp_path), is_at_it=is_at_it)
    with Staging(swept) as staging:
        staging.add(1, "blobs/aa/file", b"data")
        sweep_staged(disk)
        staging.choose([1])
        staging.place()
    assert swept.swept == 2
    assert (tmp_path / "blobs" / "aa" / "file").read_bytes() == b"data"
    sweep_staged(disk)
    assert disk.list_folder("journal") == []


class CountingDisk(Disk):
    """A disk that knows how many files are open."""

    opened = 0

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        self.opened += 1
        return super().open(path, write=write, create=create)

    def close(self, handle: int) -> None:
        self.opened -= 1
        super().close(handle)


def test_a_commit_may_stage_more_files_than_a_process_may_open(disk: Disk, tmp_path: Path) -> None:
    counting = CountingDisk(str(tmp_path))
    with Staging(counting) as staging:
        for number in range(10):
            staging.add(1, f"blobs/aa/{number}", b"data")
        assert counting.opened == 1
    assert counting.opened == 0
    assert disk.list_folder("journal") == []


class UnlockableDisk(Disk):
    """A disk without locks."""

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        raise OSError(errno.ENOLCK, "no locks")


def test_a_key_that_cannot_be_locked_is_taken_away(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no locks"), Staging(UnlockableDisk(str(tmp_path))) as staging:
        staging.add(1, "blobs/aa/file", b"data")
    assert disk.list_folder("journal") == []
