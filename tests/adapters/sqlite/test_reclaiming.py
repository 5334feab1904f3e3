"""Space really comes back, in steps between which others may write."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.adapters.sqlite import reclaiming
from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.reclaiming import free_bytes, free_pages, reclaim
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
from holdfast.domain.record import Removal

RECORDS = 60
RECORD_BYTES = 20_000
EVERYTHING = Removal(tuple(range(1, RECORDS + 1)), (1,))


@pytest.fixture(
    params=[(through_sqlite3, ROLLBACK), (through_apsw, WAL)],
    ids=["rollback through sqlite3", "wal through apsw"],
)
def store(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[SqliteStore]:
    make_driver, mode = request.param
    driver: Driver = make_driver()
    store = SqliteStore.open(str(fast_folder / "store.db"), driver=driver, journal_mode=mode)
    history, drafts = History(store, "old"), []
    for _ in range(RECORDS):
        drafts.append(history.draft(text="x" * RECORD_BYTES))
        history.follow(drafts[-1])
    assert store.commit(drafts) == [None] * RECORDS
    History(store, "kept").commit(text="y" * RECORD_BYTES)
    store.settle()
    yield store
    store.close()


def size_bytes(store: SqliteStore) -> int:
    return os.path.getsize(store._database.path)


def test_a_removal_and_settling_shrink_the_file(store: SqliteStore) -> None:
    before = size_bytes(store)
    freed_bytes = store.remove("old", EVERYTHING)
    assert freed_bytes > RECORDS * RECORD_BYTES
    store.settle()
    assert before - size_bytes(store) > 0.95 * freed_bytes
    assert store.stats()["reclaimable_bytes"] == 0
    assert len(list(store.records("kept", 1, 1))) == 1
    assert list(store.check()) == []


def test_what_is_not_reclaimed_yet_is_told(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.sqlite.store._STEPS_AFTER_REMOVAL", 1)
    monkeypatch.setattr(reclaiming, "PAGES_PER_STEP", 10)
    store.remove("old", EVERYTHING)
    left = store.stats()["reclaimable_bytes"]
    assert left == free_bytes(store._database) == free_pages(store._database) * 4096 > 500_000
    reclaim(store._database, steps_max=2)
    assert free_pages(store._database) == left // 4096 - 20


def test_closing_reclaims_too(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.sqlite.store._STEPS_AFTER_REMOVAL", 0)
    store.remove("old", EVERYTHING)
    store.close()
    assert size_bytes(store) < 200_000


def test_a_file_that_gives_nothing_back_is_left_as_it_is(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause(_: float) -> None:
        pytest.fail("it was tried again")

    store._database.close_readers()
    store._database.outside("pragma auto_vacuum = none")
    store._database.outside("vacuum")
    monkeypatch.setattr("holdfast.adapters.sqlite.reclaiming.time", SimpleNamespace(sleep=pause))
    store.remove("old", EVERYTHING)
    store.settle()
    assert store.stats()["reclaimable_bytes"] > 500_000
    assert list(store.check()) == []


def test_commits_pass_between_the_steps(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaiming, "PAGES_PER_STEP", 1)
    monkeypatch.setattr("holdfast.adapters.sqlite.store._STEPS_AFTER_REMOVAL", 0)
    store.remove("old", EVERYTHING)
    free_at_commit, has_begun = [], threading.Event()

    def write() -> None:
        history = History(store, "meanwhile")
        has_begun.wait()
        for _ in range(5):
            history.commit()
            free_at_commit.append(free_pages(store._database))

    thread = threading.Thread(target=write)
    thread.start()
    reclaim(store._database, steps_max=1)
    has_begun.set()
    reclaim(store._database)
    thread.join()
    assert free_at_commit[0] > 0
    assert list(store.check()) == []
