"""A commit into a log that is not the database's any more is not acknowledged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.adapters.sqlite import files, watching
from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
from holdfast.domain.errors import CheckpointWriteError

#: The sync of a file failed; the disk is full.
IOERR_FSYNC, FULL = 1034, 13

VISIT = """
import sys
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
store = SqliteStore.open(sys.argv[1])
History(store, "visitor").commit()
store.close()
"""


@pytest.fixture
def path(fast_folder: Path) -> Path:
    return fast_folder / "store.db"


@pytest.fixture(params=[through_sqlite3, through_apsw], ids=["sqlite3", "apsw"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(path), driver=request.param(), journal_mode=WAL)
    History(store).commit()
    # So that the log can be taken away without losing what was acknowledged before.
    store.settle()
    yield store
    store.close()


def log_of(path: Path) -> Path:
    return path.with_name("store.db-wal")


@pytest.mark.parametrize("is_replaced", [False, True], ids=["removed", "replaced"])
def test_a_commit_into_a_lost_log_is_not_acknowledged(
    is_replaced: bool, store: SqliteStore, path: Path
) -> None:
    log_of(path).unlink()
    if is_replaced:
        log_of(path).touch()
    before = path.read_bytes()
    with pytest.raises(CheckpointWriteError, match=r"log was removed.*durable is unknown.*read it back"):
        History(store).commit()
    assert path.read_bytes() == before


def test_the_store_goes_on_with_a_new_log(store: SqliteStore, path: Path) -> None:
    assert store.head("W").sequence == 1
    log_of(path).unlink()
    with pytest.raises(CheckpointWriteError):
        History(store).commit()
    assert store.head("W").sequence == 1
    History(store).commit()
    assert list(store.check()) == []
    store.close()
    again = SqliteStore.open(str(path), driver=through_apsw())
    assert again.head("W").sequence == 2
    again.close()


def test_a_look_through_another_library_costs_no_acknowledged_commit(path: Path) -> None:
    store = SqliteStore.open(str(path), driver=through_apsw(), journal_mode=WAL)
    History(store).commit()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("select count(*) from checkpoints").fetchall() == [(1,)]
    subprocess.run([sys.executable, "-c", VISIT, str(path)], check=True)
    assert not log_of(path).exists()
    with pytest.raises(CheckpointWriteError, match="log was removed"):
        History(store).commit()
    History(store).commit()
    assert (store.head("W").sequence, store.head("visitor").sequence) == (2, 1)
    assert list(store.check()) == []
    store.close()


@pytest.mark.parametrize("limit", ["_COMMITS_MAX", "_GROWTH_MAX_BYTES"])
def test_a_long_log_is_moved_into_the_file(
    limit: str, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()
    History(store).commit()
    assert path.read_bytes() == before
    monkeypatch.setattr(watching, limit, 2)
    History(store).commit()
    assert path.read_bytes() != before


@pytest.mark.parametrize("code", [IOERR_FSYNC, FULL])
def test_a_log_that_cannot_be_moved_harms_no_commit(
    code: int, store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, forgotten = store._database.driver, list[str]()

    def fails(self: watching.Watch) -> None:
        raise failure(driver, code)

    monkeypatch.setattr(watching, "_COMMITS_MAX", 1)
    monkeypatch.setattr(files, "forget", forgotten.append)
    with monkeypatch.context() as broken:
        broken.setattr(watching.Watch, "move_log", fails)
        history = History(store)
        history.commit()
    # The disk may not have what was written into the file: it is written as if for the first time.
    assert bool(forgotten) == (code == IOERR_FSYNC)
    history.commit()
    assert store.head(history.workflow_id) == history.head


def failure(driver: Driver, code: int) -> Exception:
    error = driver.error("disk I/O error")
    setattr(error, "sqlite_errorcode" if driver.name == "sqlite3" else "extendedresult", code)
    return error
