"""The file is private, made once, and named so that SQLite understands."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.driver import best
from holdfast.domain.errors import (
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
    StoreNotFoundError,
)


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "store.db"
    files.create(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.stat().st_size == 0


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"something")
    path.chmod(0o640)
    files.create(str(path))
    assert path.read_bytes() == b"something"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EACCES, PermissionDeniedError),
        (errno.EPERM, PermissionDeniedError),
        (errno.EROFS, PermissionDeniedError),
        (errno.ENOSPC, DiskFullError),
        (errno.EIO, CheckpointWriteError),
    ],
)
def test_a_file_that_cannot_be_made_is_told(
    number: int, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(kind, match=os.strerror(number)) as caught:
        files.create(str(tmp_path / "store.db"))
    assert caught.type is kind


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="there is no database"):
        files.require(str(tmp_path / "missing.db"))
    with pytest.raises(StoreNotFoundError, match="a folder"):
        files.require(str(tmp_path))


@pytest.mark.parametrize(
    "name",
    ["with space", "per%20cent", "quest?ion", "ha#sh", "é\U0001f980", "a&mode=ro", b"\xff\xfe"],
    ids=repr,
)
def test_any_name_leads_to_its_file(name: str | bytes, tmp_path: Path) -> None:
    path = os.fsdecode(os.path.join(os.fsencode(tmp_path), os.fsencode(name)))
    files.create(path)
    connection = best().connect(files.uri(path, "rw"))
    connection.execute("create table t (a)").fetchall()
    connection.close()
    assert files.size_bytes(path) > 0
    assert len(list(tmp_path.iterdir())) == 1


def test_a_missing_file_has_no_bytes(tmp_path: Path) -> None:
    assert files.size_bytes(str(tmp_path / "missing")) == 0


def test_what_is_forgotten_keeps_no_log_open(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for name in (path, tmp_path / "store.db-wal"):
        name.write_bytes(b"something")
    files.forget(str(path))
    opened = [link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert "store.db" in opened and "store.db-wal" not in opened
