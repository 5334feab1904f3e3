"""Who may not write reads what was acknowledged, whatever a dead writer left behind."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.source import Source
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.domain.errors import CheckpointReadError
from tests.adapters.sqlite.files_left_behind import commit_some, with_hot_journal, with_log


@pytest.fixture(params=[through_sqlite3, through_apsw], ids=["sqlite3", "apsw"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return request.param()


@pytest.fixture
def left_hot(fast_folder: Path, driver: Driver) -> Path:
    """A database with the journal of a transaction that never ended."""
    store = SqliteStore.open(str(fast_folder / "store.db"), driver=driver, journal_mode=ROLLBACK)
    commit_some(store)
    store.close()
    left = fast_folder / "left" / "store.db"
    with_hot_journal(fast_folder / "store.db", left, driver)
    return left


def is_standing_in(source: Source) -> bool:
    return source._stamp is not None


def test_a_reader_does_not_finish_what_a_dead_writer_began(left_hot: Path, driver: Driver) -> None:
    before = {path.name: path.read_bytes() for path in left_hot.parent.iterdir()}
    reader = SqliteStore.open(str(left_hot), driver=driver, read_only=True)
    assert [entry.sequence for entry in reader.entries("WF-0")] == [1, 2, 3]
    assert [finding for finding in reader.check()] == []
    assert is_standing_in(reader._database._source)
    reader.close()
    assert {path.name: path.read_bytes() for path in left_hot.parent.iterdir()} == before


def test_without_its_journal_the_same_file_is_damaged(left_hot: Path, driver: Driver) -> None:
    """The control: what the test above reads is really the journal's doing."""
    Path(f"{left_hot}-journal").unlink()
    reader = SqliteStore.open(str(left_hot), driver=driver, read_only=True)
    assert list(reader.check()) != []
    reader.close()


def test_a_reader_returns_to_the_file_once_a_writer_has_been_there(left_hot: Path, driver: Driver) -> None:
    reader = SqliteStore.open(str(left_hot), driver=driver, read_only=True)
    assert reader.head("WF-0").sequence == 3
    writer = SqliteStore.open(str(left_hot), driver=driver)
    commit_some(writer, 2)
    assert reader.head("WF-0").sequence == 5
    assert not is_standing_in(reader._database._source)
    writer.close()
    assert reader.head("WF-0").sequence == 5
    reader.close()


def test_a_log_without_its_index_is_read_and_left_alone(fast_folder: Path, driver: Driver) -> None:
    store = SqliteStore.open(str(fast_folder / "store.db"), driver=driver, journal_mode=WAL)
    commit_some(store)
    left = fast_folder / "left" / "store.db"
    with_log(fast_folder / "store.db", left, with_index=False)
    store.close()
    source = Source(str(left))
    source.stand_in()
    connection = driver.connect(source.current()[0])
    assert connection.execute("select count(*) from checkpoints").fetchall() == [(3,)]
    connection.close()
    assert sorted(path.name for path in left.parent.iterdir()) == ["store.db", "store.db-wal"]
    source.close()


def described(source: Source) -> str:
    uri, generation = source.current()
    kind = "immutable" if "immutable=1" in uri else "copy" if "copy.db" in uri else "file"
    return f"{kind} {generation}"


def test_a_file_at_rest_is_read_as_one_that_never_changes(tmp_path: Path) -> None:
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    path.write_bytes(b"x" * 100)
    source = Source(str(path))
    os.utime(path, (time.time() + 60, time.time() + 60))
    assert described(source) == "file 0"
    os.utime(path, (1, 1))
    assert [described(source), described(source)] == ["immutable 1"] * 2
    log.touch()
    assert not source.is_unchanged()
    # One that did not notice would go on with what it has read before.
    assert described(source) == "immutable 3"
    log.write_bytes(b"y")
    assert not source.is_unchanged()
    assert described(source) == "file 4"
    assert source.is_unchanged()
    source.close()


def test_a_stand_in_is_good_until_a_file_changes(tmp_path: Path) -> None:
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    path.write_bytes(b"x" * 100)
    log.write_bytes(b"y")
    source = Source(str(path))
    source.stand_in()
    assert described(source) == "copy 1"
    folder = source._folder
    assert folder is not None and sorted(os.listdir(folder)) == ["copy.db", "copy.db-wal"]
    path.write_bytes(b"z" * 101)
    assert described(source) == "file 2"
    assert not os.path.exists(folder)
    log.unlink()
    source.stand_in()
    assert described(source).startswith("immutable")
    source.close()


def test_reading_leaves_nothing_beside_the_file(fast_folder: Path, driver: Driver) -> None:
    path = fast_folder / "store.db"
    store = SqliteStore.open(str(path), driver=driver, journal_mode=WAL)
    commit_some(store)
    store.close()
    os.utime(path, (1, 1))
    reader = SqliteStore.open(str(path), driver=driver, read_only=True)
    assert reader.head("WF-0").sequence == 3
    assert list(reader.check()) == []
    assert [path.name for path in fast_folder.iterdir()] == ["store.db"]
    writer = SqliteStore.open(str(path), driver=driver, journal_mode=WAL)
    commit_some(writer, 1)
    assert reader.head("WF-0").sequence == 4
    writer.close()
    assert reader.head("WF-0").sequence == 4
    reader.close()


def test_a_copy_that_cannot_be_made_is_told(left_hot: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.pread", refuse)
    with pytest.raises(CheckpointReadError, match="No space left"):
        SqliteStore.open(str(left_hot), read_only=True)


def test_a_file_that_changes_at_every_look_is_told(
    fast_folder: Path, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fast_folder / "store.db"
    SqliteStore.open(str(path), driver=driver).close()
    reader = SqliteStore.open(str(path), driver=driver, read_only=True)
    monkeypatch.setattr(Source, "is_unchanged", lambda _: False)
    with pytest.raises(CheckpointReadError, match="changes while it is read"):
        reader.head("W")
    reader.close()


def test_a_file_that_never_stands_still_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"x")
    (tmp_path / "store.db-wal").write_bytes(b"y")
    source, sizes = Source(str(path)), iter(range(1000))
    monkeypatch.setattr("holdfast.adapters.sqlite.source._stamp", lambda _: (0, next(sizes), 0))
    with pytest.raises(CheckpointReadError, match="changes while it is copied"):
        source.stand_in()
    source.close()
