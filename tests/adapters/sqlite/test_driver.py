"""Both ways to SQLite look the same from here."""

from __future__ import annotations

import builtins
import sqlite3
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast.adapters.sqlite import faults
from holdfast.adapters.sqlite.driver import Driver, best, through_apsw, through_sqlite3


@pytest.fixture(params=[through_sqlite3, through_apsw], ids=["sqlite3", "apsw"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return request.param()


def test_statements_run_and_nothing_begins_a_transaction_by_itself(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.touch()
    connection = driver.connect(f"file:{path}?mode=rw")
    connection.execute("create table t (a, b)").fetchall()
    connection.executemany("insert into t values (?, ?)", [(1, "é"), (2, None)])
    told = [connection.in_transaction]
    assert connection.execute("select * from t where a = :a", {"a": 1}).fetchall() == [(1, "é")]
    connection.execute("begin immediate")
    told.append(connection.in_transaction)
    connection.execute("commit")
    told.append(connection.in_transaction)
    connection.close()
    assert told == [False, True, False]


def test_errors_carry_their_code(driver: Driver, tmp_path: Path) -> None:
    with pytest.raises(driver.error) as caught:
        driver.connect(f"file:{tmp_path / 'missing.db'}?mode=rw").execute("select 1 from sqlite_master")
    assert faults.primary(driver.code(caught.value)) == faults.CANTOPEN
    path = tmp_path / "no.db"
    path.write_bytes(b"this is no database, however long one looks at it" * 100)
    with pytest.raises(driver.error) as caught:
        driver.connect(f"file:{path}?mode=rw").execute("select 1 from sqlite_master").fetchall()
    assert driver.code(caught.value) == faults.NOTADB
    assert driver.code(driver.error("of the package alone")) == 1


def test_a_driver_tells_which_sqlite_it_is() -> None:
    assert through_sqlite3().version == sqlite3.sqlite_version_info
    assert through_apsw().title == f"SQLite {apsw.sqlite_lib_version()} through apsw"


def test_apsw_is_the_best_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert best().name == "apsw"
    real = builtins.__import__

    def without_apsw(name: str, *rest: Any) -> Any:
        if name == "apsw":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_apsw)
    assert best().name == "sqlite3"
