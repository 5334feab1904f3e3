"""Staged files: durable under a name of their own, in their place only when chosen, gone otherwise."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.faults import Writing
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.staging import Staging, write_file
from holdfast.domain.errors import AtomicRenameFailedError


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    (tmp_path / "journal").mkdir()
    return Disk(str(tmp_path))


def test_only_chosen_files_are_placed_and_nothing_else_stays(disk: Disk, tmp_path: Path) -> None:
    with Staging(disk) as staging:
        staging.add(1, "blobs/aa/winner", b"winner")
        staging.add(2, "blobs/aa/loser", b"loser")
        assert len(disk.list_folder("journal")) == 2
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
