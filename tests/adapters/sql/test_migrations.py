"""Migrations are applied once, in order, whole or not at all, and never guessed at."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.adapters.sql.migrations import Migration, migrate, pending, read_migrations, require_current
from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.driver import best
from holdfast.domain.errors import MigrationFailedError, UnsupportedVersionError

NOW = datetime(2026, 1, 11, 12, tzinfo=UTC)
ONE = Migration(1, "one", "create table one (n integer);\ninsert into one values (1);\n")
TWO = Migration(2, "two", "-- A comment; with a semicolon.\nalter table one add column m integer;\n")
BAD = Migration(2, "bad", "insert into one values (2);\ninsert into nowhere values (1);\n")


@pytest.fixture
def empty(fast_folder: Path) -> SqliteDatabase:
    path = str(fast_folder / "empty.db")
    files.create(path)
    return SqliteDatabase(path, best(), read_only=False, busy_seconds=10)


def update(database: SqliteDatabase, *steps: Migration) -> None:
    migrate(database, steps, now=NOW, place="store.db")


def test_each_step_is_applied_once_and_noted(empty: SqliteDatabase) -> None:
    update(empty, ONE)
    update(empty, ONE, TWO)
    update(empty, ONE, TWO)
    assert empty.rows("select n, m from one") == [(1, None)]
    noted = empty.rows("select version, name, checksum, applied_at from schema_migrations")
    assert noted == [
        (1, "one", ONE.checksum, "2026-01-11T12:00:00.000000Z"),
        (2, "two", TWO.checksum, "2026-01-11T12:00:00.000000Z"),
    ]


def test_a_step_that_fails_leaves_the_schema_as_it_was(empty: SqliteDatabase) -> None:
    update(empty, ONE)
    with pytest.raises(MigrationFailedError, match=r"migration 2 \(bad\) failed.*nowhere.*store\.db"):
        update(empty, ONE, BAD)
    assert empty.rows("select n from one") == [(1,)]
    update(empty, ONE, TWO)


def test_a_newer_schema_is_refused(empty: SqliteDatabase) -> None:
    update(empty, ONE, TWO)
    with pytest.raises(UnsupportedVersionError, match=r"has schema 2 \(two\).*knows .* up to 1.*Upgrade"):
        update(empty, ONE)


def test_a_step_that_was_changed_since_is_refused(empty: SqliteDatabase) -> None:
    update(empty, ONE)
    with pytest.raises(MigrationFailedError, match="migration 1"):
        update(empty, Migration(1, "one", ONE.sql + "\n"), TWO)


def test_a_step_that_was_left_out_is_refused() -> None:
    with pytest.raises(MigrationFailedError, match="migration 2"):
        pending([ONE, TWO], [(2, "two", TWO.checksum)], "store.db")


def test_who_may_not_change_the_schema_reads_only_the_current_one() -> None:
    require_current([ONE], [(1, "one", ONE.checksum)], "store.db")
    with pytest.raises(UnsupportedVersionError, match="schema 1, this Holdfast reads schema 2"):
        require_current([ONE, TWO], [(1, "one", ONE.checksum)], "store.db")


def test_a_current_schema_is_opened_without_a_lock(empty: SqliteDatabase) -> None:
    update(empty, ONE)
    other = SqliteDatabase(empty.path, best(), read_only=False, busy_seconds=0)
    with empty.transaction():
        update(other, ONE)
    other.close()


def test_of_threads_that_migrate_at_once_one_makes_each_step(empty: SqliteDatabase) -> None:
    problems = []

    def work() -> None:
        database = SqliteDatabase(empty.path, best(), read_only=False, busy_seconds=10)
        try:
            update(database, ONE, TWO)
        except Exception as problem:
            problems.append(problem)
        database.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert empty.rows("select n from one") == [(1,)]


def test_files_are_read_in_order_and_others_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "some_package" / "migrations"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    for name in ("0010_ten.sql", "0002_two.sql", "README.md", "3_three.sql", "0004_Four.sql"):
        (folder / name).write_bytes(b"select 1;\r\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = read_migrations("some_package")
    assert [(step.version, step.name, step.sql) for step in found] == [
        (2, "two", "select 1;\n"),
        (10, "ten", "select 1;\n"),
    ]
