"""One connection writes, others read; what goes wrong is told in our words and leaves no trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointWriteError,
    DiskFullError,
    InvalidIdError,
    StoreClosedError,
    StoreLockedError,
    StoreReadOnlyError,
    UnstorableValueError,
)


@pytest.fixture(params=[through_sqlite3, through_apsw], ids=["sqlite3", "apsw"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return request.param()


@pytest.fixture
def database(driver: Driver, fast_folder: Path) -> Iterator[SqliteDatabase]:
    path = str(fast_folder / "x.db")
    files.create(path)
    database = SqliteDatabase(path, driver, read_only=False, busy_seconds=0)
    with database.transaction() as transaction:
        transaction.script("create table t (a integer primary key, b blob);")
    yield database
    database.close()


def rows(database: SqliteDatabase) -> list[tuple[int]]:
    return database.rows("select a from t order by a")


def test_a_transaction_is_seen_when_it_ends_and_not_before(database: SqliteDatabase) -> None:
    with database.transaction() as transaction:
        assert transaction.run("insert into t (a) values (:a)", {"a": 1}) == 1
        assert rows(database) == []
    assert rows(database) == [(1,)]


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_a_transaction_that_raises_leaves_nothing(
    kind: type[BaseException], database: SqliteDatabase
) -> None:
    called = []
    database.when_rolled_back = lambda: called.append(True)
    with pytest.raises(kind), database.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
        raise kind
    assert called == [True]
    assert rows(database) == []
    with database.transaction() as transaction:
        transaction.run("insert into t (a) values (2)")
    assert rows(database) == [(2,)]


def test_values_that_do_not_fit_are_told_apart(database: SqliteDatabase) -> None:
    with pytest.raises(InvalidIdError), database.transaction() as transaction:
        transaction.run("insert into t (b) values (:b)", {"b": "\ud800"})
    with pytest.raises(UnstorableValueError), database.transaction() as transaction:
        transaction.run("insert into t (a) values (:a)", {"a": 2**70})
    with pytest.raises(CheckpointConflictError), database.transaction() as transaction:
        transaction.script("insert into t (a) values (1); \ninsert into t (a) values (1);")
    with pytest.raises(InvalidIdError):
        database.rows("select :b", {"b": "\ud800"})
    assert rows(database) == []


def test_a_full_database_says_so_and_goes_on_when_there_is_room(database: SqliteDatabase) -> None:
    [(pages,)] = database.outside("pragma page_count")
    database.outside(f"pragma max_page_count = {pages + 2}")
    with pytest.raises(DiskFullError), database.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
        transaction.run("insert into t (b) values (zeroblob(100000))")
    assert rows(database) == []
    database.outside("pragma max_page_count = 100000")
    with database.transaction() as transaction:
        transaction.run("insert into t (b) values (zeroblob(100000))")
    assert rows(database) == [(1,)]


def test_others_in_the_way_are_told_after_the_wait(database: SqliteDatabase, driver: Driver) -> None:
    other = SqliteDatabase(database.path, driver, read_only=False, busy_seconds=0)
    with other.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
        with pytest.raises(CheckpointWriteError, match="others hold the database"), database.transaction():
            pass
    other.outside("pragma journal_mode = delete")
    other.outside("pragma locking_mode = exclusive")
    with other.transaction() as transaction:
        transaction.run("insert into t (a) values (2)")
    with pytest.raises(StoreLockedError, match="others hold the database"):
        rows(database)
    other.close()
    assert rows(database) == [(1,), (2,)]


def test_a_wait_ends_as_soon_as_the_other_is_done(database: SqliteDatabase, driver: Driver) -> None:
    other = SqliteDatabase(database.path, driver, read_only=False, busy_seconds=30)

    def write() -> None:
        with other.transaction() as transaction:
            transaction.run("insert into t (a) values (2)")

    with database.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
        thread = threading.Thread(target=write)
        thread.start()
    thread.join()
    assert rows(database) == [(1,), (2,)]
    other.close()


def test_readers_have_connections_of_their_own_and_keep_a_few(database: SqliteDatabase) -> None:
    barrier, problems = threading.Barrier(12), []

    def read() -> None:
        barrier.wait()
        for _ in range(20):
            if rows(database) != []:
                problems.append("rows out of nowhere")

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert 1 <= len(database._idle) <= 8


def test_a_reading_connection_cannot_write(database: SqliteDatabase) -> None:
    with pytest.raises(Exception, match="not allowed"):
        database.rows("insert into t (a) values (1)")
    assert rows(database) == []


def test_who_opened_to_read_may_not_write(database: SqliteDatabase, driver: Driver) -> None:
    reader = SqliteDatabase(database.path, driver, read_only=True, busy_seconds=0)
    assert rows(reader) == []
    with pytest.raises(StoreReadOnlyError), reader.transaction():
        pass
    with pytest.raises(StoreReadOnlyError):
        reader.outside("pragma user_version = 1")
    reader.close()


def test_a_closed_database_answers_nothing(database: SqliteDatabase) -> None:
    database.close()
    database.close()
    with pytest.raises(StoreClosedError):
        rows(database)
    with pytest.raises(StoreClosedError), database.transaction():
        pass


def test_a_connection_that_failed_is_replaced(database: SqliteDatabase) -> None:
    first = database._writer
    with suppress(CheckpointWriteError), database.transaction() as transaction:
        transaction.run("insert into nowhere values (1)")
    with database.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
    assert database._writer is not first
    assert rows(database) == [(1,)]


def test_a_damaged_page_is_told(database: SqliteDatabase, driver: Driver) -> None:
    with database.transaction() as transaction:
        for number in range(100):
            transaction.run("insert into t values (:a, zeroblob(1000))", {"a": number})
    database.close()
    path = Path(database.path)
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 4096 * 10 + path.read_bytes()[4096 * 11 :])
    again = SqliteDatabase(database.path, driver, read_only=False, busy_seconds=0)
    with pytest.raises(CheckpointCorruptError, match="damaged"):
        again.rows("select b from t")
    with pytest.raises(CheckpointCorruptError), again.transaction() as transaction:
        transaction.run("insert into t (a) values (1000)")
    again.close()


def test_only_the_connection_that_writes_moves_the_log_when_it_closes(
    database: SqliteDatabase, driver: Driver
) -> None:
    # A reader that closed last would do it without a word if the disk failed, and nobody would look again.
    database.outside("pragma journal_mode = wal")
    with database.transaction() as transaction:
        transaction.run("insert into t (a) values (1)")
    database.rows("select a from t")
    database._abandon_writer()
    database.close_readers()
    log = Path(f"{database.path}-wal")
    assert log.stat().st_size > 0
    again = SqliteDatabase(database.path, driver, read_only=False, busy_seconds=0)
    assert rows(again) == [(1,)]
    with again.transaction() as transaction:
        transaction.run("insert into t (a) values (2)")
    assert rows(again) == [(1,), (2,)]
    again.close()
    assert not log.exists()
