"""A database whose file is moved, removed or replaced while it is open: nothing is written past it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import holdfast
from holdfast.adapters.file_status import identity
from holdfast.adapters.sqlite.place import Place
from holdfast.domain.errors import StoreNotFoundError


def test_what_was_opened_first_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "db"
    place = Place(str(path))
    place.note()
    assert (place.is_lost, place.is_empty, identity(str(path))) == (False, False, None)
    path.write_bytes(b"1")
    place.note()
    place.check()
    path.unlink()
    place.note()
    assert (place.is_lost, place.is_empty) == (True, True)
    with pytest.raises(StoreNotFoundError, match="gone, or another one"):
        place.check()


@pytest.mark.parametrize("how", ["renamed", "removed", "replaced"])
def test_a_commit_after_the_file_went_is_refused_and_goes_nowhere(tmp_path: Path, how: str) -> None:
    path, away = tmp_path / "s.db", tmp_path / "away.db"
    other = tmp_path / "other.db"
    with holdfast.open(f"sqlite:{other}") as made:
        made.create_checkpoint("else", {"n": 1})
    service = holdfast.open(f"sqlite:{path}")
    service.create_checkpoint("w", {"i": 0})
    if how == "removed":
        path.unlink()
    else:
        path.rename(away)
    if how == "replaced":
        os.replace(other, path)
    for attempt in range(2):
        with pytest.raises(StoreNotFoundError, match="gone, or another one"):
            service.create_checkpoint("w", {"i": attempt + 1})
    service.close()


def test_a_file_that_comes_back_is_gone_on_with(tmp_path: Path) -> None:
    path, away = tmp_path / "s.db", tmp_path / "away.db"
    with holdfast.open(f"sqlite:{path}") as service:
        service.create_checkpoint("w", {"i": 0})
        path.rename(away)
        with pytest.raises(StoreNotFoundError):
            service.create_checkpoint("w", {"i": 1})
        away.rename(path)
        assert service.create_checkpoint("w", {"i": 2}).sequence == 2
    with holdfast.open(f"sqlite:{path}") as service:
        assert service.restore_checkpoint("w@latest").context == {"i": 2}


def test_closing_leaves_the_log_to_a_file_that_was_moved(tmp_path: Path) -> None:
    path, away = tmp_path / "s.db", tmp_path / "away.db"
    service = holdfast.open(f"sqlite:{path}")
    service.create_checkpoint("w", {"i": 0})
    path.rename(away)
    service.close()
    for ending in ("-wal", "-shm"):
        if (log := Path(f"{path}{ending}")).exists():
            log.rename(f"{away}{ending}")
    with holdfast.open(f"sqlite:{away}") as found:
        assert found.restore_checkpoint("w@latest").context == {"i": 0}
