"""A child has connections, and with them locks, of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
from tests.process.child import Report, start

pytestmark = pytest.mark.parametrize(
    ("make_driver", "mode"),
    [(through_sqlite3, ROLLBACK), (through_sqlite3, WAL), (through_apsw, WAL)],
    ids=["rollback through sqlite3", "wal through sqlite3", "wal through apsw"],
)


def opened(folder: Path, driver: Driver, mode: str) -> SqliteStore:
    store = SqliteStore.open(str(folder / "store.db"), driver=driver, journal_mode=mode)
    History(store, "parent").commit()
    assert len(list(store.entries("parent"))) == 1
    return store


def _commit_around_a_stop(report: Report, stop: int, store: SqliteStore) -> None:
    history = History(store, "child")
    history.commit()
    report.say("ack", "child", 1)
    os.set_blocking(stop, True)
    os.read(stop, 1)
    for number in range(2, 5):
        history.commit()
        report.say("ack", "child", number)


def test_a_child_goes_on_after_its_parent_has_closed(
    make_driver: Callable[[], Driver], mode: str, fast_folder: Path
) -> None:
    store = opened(fast_folder, make_driver(), mode)
    child = start(_commit_around_a_stop, store)
    assert child.read_line() == "ack child 1"
    store.close()
    child.stop()
    assert child.end() == 0
    again = SqliteStore.open(str(fast_folder / "store.db"), driver=make_driver(), journal_mode=mode)
    assert again.head("child").sequence == len(child.lines) == 4
    assert list(again.check()) == []
    again.close()


def test_a_parent_goes_on_after_its_child_has_closed(
    make_driver: Callable[[], Driver], mode: str, fast_folder: Path
) -> None:
    store = opened(fast_folder, make_driver(), mode)
    assert start(_commit_and_close, store).end() == 0
    History(store, "parent").commit()
    assert (store.head("parent").sequence, store.head("child").sequence) == (2, 1)
    assert list(store.check()) == []
    store.close()


def _commit_and_close(_report: Report, _stop: int, store: SqliteStore) -> None:
    History(store, "child").commit()
    store.close()


def test_no_connection_is_inherited(make_driver: Callable[[], Driver], mode: str, fast_folder: Path) -> None:
    store = opened(fast_folder, make_driver(), mode)
    child = start(_report_connections, store)
    assert child.read_line() == "connections store 0"
    assert child.end() == 0
    store.close()


def _report_connections(report: Report, _stop: int, store: SqliteStore) -> None:
    path = store.url.removeprefix("sqlite:")
    opened = [name for name in os.listdir("/proc/self/fd") if _leads_to(name, path)]
    report.say("connections", "store", len(opened))


def _leads_to(name: str, path: str) -> bool:
    """Tell whether a descriptor is of this store; tests before may have left others."""
    try:
        return os.readlink(f"/proc/self/fd/{name}").startswith(path)
    except FileNotFoundError:
        return False
