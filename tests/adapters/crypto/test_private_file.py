"""A key is written once, for its owner alone, and refused where others can read it."""

from __future__ import annotations

import errno
import os
from itertools import count
from pathlib import Path

import pytest

from holdfast.adapters.crypto.private_file import refuse_shared, sync_folder, write_private
from holdfast.domain.errors import CheckpointWriteError, PermissionDeniedError


def test_a_key_is_for_its_owner_alone_whatever_the_mask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "key", b"secret")
    finally:
        os.umask(before)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    refuse_shared((tmp_path / "key").stat(), tmp_path / "key")


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "key", b"first")
    with pytest.raises(CheckpointWriteError) as refusal:
        write_private(tmp_path / "key", b"second")
    assert "never replaced" in refusal.value.hint
    assert (tmp_path / "key").read_bytes() == b"first"


def test_half_a_key_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointWriteError, match="No space left"):
        write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []


def test_a_key_has_its_name_once_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, sync = list[tuple[list[str], bytes]](), os.fsync

    def look(descriptor: int) -> None:
        synced.append((sorted(path.suffix for path in tmp_path.iterdir()), b"".join(contents(tmp_path))))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    write_private(tmp_path / "key", b"secret")
    assert synced == [([".new"], b"secret"), ([""], b"secret")]


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.iterdir()]


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_where_there_are_no_links_a_key_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "no links")

    monkeypatch.setattr(os, "link", refuse)
    write_private(tmp_path / "key", b"first")
    with pytest.raises(CheckpointWriteError):
        write_private(tmp_path / "key", b"second")
    assert contents(tmp_path) == [b"first"]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_key_that_may_not_be_durable_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    calls = count(1)

    def fail(descriptor: int) -> None:
        if next(calls) == failing:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CheckpointWriteError, match="Input/output error"):
        write_private(tmp_path / "key", b"secret")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_what_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(PermissionDeniedError, match="may be read by others"):
        refuse_shared((tmp_path / "key").stat(), tmp_path / "key")
    with pytest.raises(PermissionDeniedError):
        refuse_shared(tmp_path.stat(), tmp_path)


def test_a_folder_can_be_made_durable(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "none")
