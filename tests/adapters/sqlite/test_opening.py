"""Only a file that is ours is opened, with a journal that is safe, and its schema brought up to date."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.adapters.sql.migrations import read_migrations
from holdfast.adapters.sqlite import opening
from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.adapters.system import RandomIds
from holdfast.conformance.history import History
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ConfigError,
    StoreLockedError,
    StoreNotFoundError,
    UnsupportedVersionError,
)
from holdfast.domain.payload import encode_payload
from tests.application.services import make_service

#: Two ways to the same SQLite, one of which says that it has the bug.
UNSAFE = replace(through_apsw(), version=(3, 50, 4))
SAFE = through_apsw()


@pytest.fixture
def path(fast_folder: Path) -> str:
    return str(fast_folder / "store.db")


def execute(path: str, sql: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(sql)
    connection.close()


@pytest.mark.parametrize(
    ("driver", "mode", "reason"),
    [(SAFE, WAL, "without the WAL-reset bug"), (UNSAFE, ROLLBACK, "has the WAL-reset bug")],
    ids=["safe", "unsafe"],
)
def test_a_new_file_gets_the_journal_that_is_safe(driver: Driver, mode: str, reason: str, path: str) -> None:
    store = SqliteStore.open(path, driver=driver)
    assert store.journal.mode == mode
    assert reason in store.journal.reason
    told = store.stats()
    assert (told["journal_mode"], told["journal_reason"]) == (mode, store.journal.reason)
    assert Path(f"{path}-wal").exists() == (mode == WAL)
    store.close()


def test_a_file_that_others_may_use_unsafely_keeps_its_journal(path: str) -> None:
    unsafe = SqliteStore.open(path, driver=UNSAFE)
    safe = SqliteStore.open(path, driver=SAFE)
    assert safe.journal.mode == ROLLBACK
    assert "was made with one" in safe.journal.reason
    History(unsafe).commit()
    History(safe).commit()
    safe.close()
    unsafe.close()


def test_a_log_is_given_up_where_it_is_not_safe(path: str) -> None:
    SqliteStore.open(path, driver=SAFE).close()
    store = SqliteStore.open(path, driver=UNSAFE)
    assert store.journal.mode == ROLLBACK
    History(store).commit()
    assert not Path(f"{path}-wal").exists()
    store.close()


def test_a_log_that_others_use_is_not_joined_unsafely(path: str) -> None:
    safe = SqliteStore.open(path, driver=SAFE)
    History(safe).commit()
    with pytest.raises(StoreLockedError, match=r"another journal \(wal\).*has the WAL-reset bug"):
        SqliteStore.open(path, driver=UNSAFE)
    reader = SqliteStore.open(path, driver=UNSAFE, read_only=True)
    assert reader.head("W").sequence == 1
    assert reader.journal.mode == WAL
    reader.close()
    History(safe).commit()
    safe.close()


def test_a_file_that_others_change_to_a_log_is_not_written_unsafely(path: str) -> None:
    unsafe = SqliteStore.open(path, driver=UNSAFE)
    History(unsafe).commit()
    safe = SqliteStore.open(path, driver=SAFE, journal_mode=WAL)
    for _ in range(2):
        with pytest.raises(StoreLockedError, match="changed the database to a write-ahead log"):
            History(unsafe).commit()
    History(safe).commit()
    assert unsafe.head("W").sequence == 2
    unsafe.settle()
    unsafe.close()
    safe.close()
    again = SqliteStore.open(path, driver=UNSAFE)
    History(again).commit()
    assert (again.journal.mode, again.head("W").sequence) == (ROLLBACK, 3)
    again.close()


def test_a_safe_sqlite_follows_others_to_a_log(path: str) -> None:
    first = SqliteStore.open(path, driver=SAFE, journal_mode=ROLLBACK)
    second = SqliteStore.open(path, driver=SAFE, journal_mode=WAL)
    History(first).commit()
    History(second).commit()
    assert first.head("W").sequence == 2
    second.close()
    first.close()


@pytest.mark.parametrize("driver", [SAFE, through_sqlite3()], ids=["apsw", "sqlite3"])
def test_a_file_that_others_began_gives_pages_back_too(driver: Driver, path: str) -> None:
    execute(path, "pragma user_version = 1")
    store = SqliteStore.open(path, driver=driver)
    assert store._database.rows("pragma auto_vacuum") == [(2,)]
    store.close()


def test_a_journal_that_is_asked_for_is_used_or_refused(path: str) -> None:
    SqliteStore.open(path, driver=SAFE, journal_mode=ROLLBACK).close()
    store = SqliteStore.open(path, driver=SAFE, journal_mode=WAL)
    assert store.journal.mode == WAL
    History(store).commit()
    with pytest.raises(StoreLockedError):
        SqliteStore.open(path, driver=SAFE, journal_mode=ROLLBACK, busy_seconds=0)
    store.close()
    with pytest.raises(ConfigError):
        SqliteStore.open(path, journal_mode="off")


def test_nothing_is_made_unless_asked(path: str, fast_folder: Path) -> None:
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError, match="there is no database"):
            SqliteStore.open(path, **options)
        assert list(fast_folder.iterdir()) == []
    Path(path).touch()
    for options in ({"create": False}, {"read_only": True}):
        with pytest.raises(StoreNotFoundError, match="empty"):
            SqliteStore.open(path, **options)
    with pytest.raises(StoreNotFoundError, match="a folder"):
        SqliteStore.open(str(fast_folder))


@pytest.mark.parametrize("driver", [SAFE, through_sqlite3()], ids=["apsw", "sqlite3"])
def test_a_file_that_is_no_database_is_left_alone(driver: Driver, path: str) -> None:
    data = b"a letter to the reader, " * 300
    Path(path).write_bytes(data)
    for options in ({}, {"read_only": True}):
        with pytest.raises(CheckpointCorruptError, match="no SQLite database"):
            SqliteStore.open(path, driver=driver, **options)
    assert Path(path).read_bytes() == data


@pytest.mark.parametrize("table", ["customers", "schema_migrations"])
def test_the_database_of_another_program_is_left_alone(table: str, path: str) -> None:
    execute(path, f"create table {table} (version integer, name text, checksum text)")
    before = Path(path).read_bytes()
    for options in ({}, {"read_only": True}, {"create": False}):
        with pytest.raises(CheckpointCorruptError, match="another program"):
            SqliteStore.open(path, **options)
    assert Path(path).read_bytes() == before


def test_a_newer_schema_is_refused_and_left_alone(path: str) -> None:
    SqliteStore.open(path).close()
    execute(path, "insert into schema_migrations values (99, 'from_the_future', 'sha256:0', '2030')")
    before = Path(path).read_bytes()
    for options in ({}, {"read_only": True}):
        with pytest.raises(UnsupportedVersionError, match=r"schema 99 \(from_the_future\)"):
            SqliteStore.open(path, **options)
    assert Path(path).read_bytes() == before


def test_a_reader_does_not_migrate(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SqliteStore.open(path).close()
    known = read_migrations("holdfast.adapters.sqlite")
    newer = (*known, replace(known[-1], version=len(known) + 1, sql="create table more (n integer);"))
    monkeypatch.setattr("holdfast.adapters.sql.migrations.read_migrations", lambda _: newer)
    with pytest.raises(UnsupportedVersionError, match="Open it once for writing"):
        SqliteStore.open(path, read_only=True)
    SqliteStore.open(path).close()
    reader = SqliteStore.open(path, read_only=True)
    assert "more" in reader._database.tables()
    reader.close()


def test_an_sqlite_that_is_too_old_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"SQLite 3\.23\.1 through apsw is too old"):
        SqliteStore.open(path, driver=replace(SAFE, version=(3, 23, 1)))


def test_the_first_migration_says_whose_database_it_is() -> None:
    first = read_migrations("holdfast.adapters.sqlite")[0]
    assert f"pragma application_id = {opening.APPLICATION_ID};" in first.sql


STORES = Path(__file__).with_name("stores")


def test_there_is_a_store_of_every_schema() -> None:
    known = {step.version for step in read_migrations("holdfast.adapters.sqlite")}
    assert {int(path.name.split(".")[0].removeprefix("schema_")) for path in STORES.iterdir()} == known


@pytest.mark.parametrize("stored", sorted(STORES.iterdir()), ids=lambda stored: stored.name)
def test_a_store_of_an_older_schema_is_brought_up_to_date_and_read(stored: Path, path: str) -> None:
    """Each was made by the Holdfast of its time: two workflows of twelve checkpoints, one of them pruned."""
    Path(path).write_bytes(gzip.decompress(stored.read_bytes()))
    with make_service(store := SqliteStore.open(path), ids=RandomIds()) as service:
        assert sorted(store.workflows()) == ["plain", "with blobs"]
        for name in ("plain", "with blobs"):
            state = service.restore_checkpoint(f"{name}@12").context
            assert state["log"] == [f"step {n} of {name}" for n in range(12)]
            assert service.validate_checkpoint(f"{name}@12").problems == ()
            assert service.events(name)[-1].seq == store.head(name).event_seq
        lease = store.lease("with blobs")
        assert lease is not None and lease.owner == "somebody"
        service.create_checkpoint("plain", {"name": "plain", "log": ["more"]})
        assert store.commit([about_the_store(told(5, "old trail"))]) == [None]
        assert check_trail(store, "old trail").seq == (2 if stored.name == "schema_1.db.gz" else 6)
        assert store.integrate() == len(list(store.leaves()))
        assert [finding for finding in store.check() if finding.harm] == []


def test_a_trail_of_an_older_schema_is_what_it_was(path: str) -> None:
    """Four decisions: the second and the third with a payload, that of the second erased."""
    Path(path).write_bytes(gzip.decompress((STORES / "schema_2.db.gz").read_bytes()))
    with closing(SqliteStore.open(path)) as store:
        assert numbers(store.trail("old trail")) == [1, 2, 3, 4]
        assert store.payload("old trail", 3) is None
        assert store.payload("old trail", 4) == encode_payload({"why": "reason 3"}, bytes([3] * 32))
        assert list(store.files("")) == ["audit/log/tile/0/000.p/4"]
        assert store.file("audit/log/tile/0/000.p/4") == b"tile"
        assert {finding.problem for finding in store.check()} == set()


def test_a_reader_does_not_give_an_older_store_a_trail(path: str) -> None:
    Path(path).write_bytes(before := gzip.decompress((STORES / "schema_1.db.gz").read_bytes()))
    with pytest.raises(UnsupportedVersionError, match="Open it once for writing"):
        SqliteStore.open(path, read_only=True)
    assert Path(path).read_bytes() == before
    SqliteStore.open(path).close()
    with closing(SqliteStore.open(path, read_only=True)) as reader:
        assert (list(reader.sessions()), reader.integrate(), reader.file("a")) == ([], 0, None)
        assert len(list(reader.entries("plain"))) == 12


@pytest.mark.parametrize("mode", [WAL, ROLLBACK])
def test_a_reader_tells_the_journal_of_a_file_that_nobody_has_open(path: str, mode: str) -> None:
    SqliteStore.open(path, driver=SAFE, journal_mode=mode).close()
    reader = SqliteStore.open(path, driver=SAFE, read_only=True)
    assert reader.stats()["journal_mode"] == mode
    reader.close()
