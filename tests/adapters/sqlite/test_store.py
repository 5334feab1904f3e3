"""The store in an SQLite file keeps every promise of the port, with each driver and journal."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name
from holdfast.conformance.store import StoreConformance
from holdfast.domain.errors import CheckpointCorruptError, StoreReadOnlyError
from holdfast.domain.record import Removal
from holdfast.domain.state import WorkflowState
from holdfast.ports import Store
from tests.application.services import make_service


class SqliteConformance(StoreConformance):
    """The whole suite on a file, closed and opened again where a test asks for it."""

    driver: ClassVar[Driver]
    journal_mode: ClassVar[str]

    @pytest.fixture(autouse=True)
    def in_folder(self, fast_folder: Path) -> None:
        self.path = str(fast_folder / "store.db")

    def open_store(self) -> Store:
        return SqliteStore.open(self.path, driver=self.driver, journal_mode=self.journal_mode)

    def reopen(self, store: Store) -> Store:
        store.close()
        return self.open_store()


class TestRollbackThroughSqlite3(SqliteConformance):
    driver = through_sqlite3()
    journal_mode = ROLLBACK


class TestWalThroughApsw(SqliteConformance):
    driver = through_apsw()
    journal_mode = WAL


class TestRollbackThroughApsw(SqliteConformance):
    driver = through_apsw()
    journal_mode = ROLLBACK


# -- what is special about it ----------------------------------------------------------------------


@pytest.fixture
def store(fast_folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(fast_folder / "store.db"))
    yield store
    store.close()


@pytest.mark.parametrize(
    ("driver", "mode"), [(through_sqlite3(), ROLLBACK), (through_apsw(), WAL)], ids=[ROLLBACK, WAL]
)
def test_a_closed_store_is_one_private_file(driver: Driver, mode: str, fast_folder: Path) -> None:
    store = SqliteStore.open(str(fast_folder / "store.db"), driver=driver, journal_mode=mode)
    History(store).commit()
    assert {stat.S_IMODE(path.stat().st_mode) for path in fast_folder.iterdir()} == {0o600}
    assert len(list(fast_folder.iterdir())) > 1
    store.close()
    assert [path.name for path in fast_folder.iterdir()] == ["store.db"]


def test_every_connection_that_writes_is_durable(fast_folder: Path) -> None:
    for driver, mode in ((through_sqlite3(), ROLLBACK), (through_apsw(), WAL)):
        store = SqliteStore.open(str(fast_folder / f"{mode}.db"), driver=driver, journal_mode=mode)
        for _ in range(2):
            told = [
                store._database.outside(f"pragma {name}")[0][0] for name in ("synchronous", "journal_mode")
            ]
            assert told == [3, {WAL: "wal", ROLLBACK: "persist"}[mode]]
            assert store._database.outside("pragma foreign_keys") == [(1,)]
            store._database._drop_writer()
        assert store._database.rows("pragma auto_vacuum") == [(2,)]
        store.close()


def test_statistics_tell_counts_bytes_and_journal(store: SqliteStore) -> None:
    History(store).commit(keyframe=b"{}", blobs={blob_name(b"b"): b"b"})
    told = store.stats()
    assert told["url"] == store.url == f"sqlite:{store._database.path}"
    assert [told[name] for name in ("workflows", "checkpoints", "events", "keyframes", "blobs")] == [1] * 5
    assert told["bytes"] > 4096 > told["data_bytes"] > 0
    assert told["reclaimable_bytes"] == 0
    assert told["sqlite"].endswith("through apsw")


def test_damage_is_found_and_never_raised(store: SqliteStore, fast_folder: Path) -> None:
    history = History(store)
    for _ in range(30):
        history.commit(text="x" * 3000, keyframe=b"{}")
    store.close()
    path = fast_folder / "store.db"
    whole = path.read_bytes()
    found = 0
    for page in range(1, len(whole) // 4096):
        path.write_bytes(whole[: page * 4096] + b"\xa5" * 4096 + whole[(page + 1) * 4096 :])
        try:
            damaged = SqliteStore.open(str(path), read_only=True)
        except CheckpointCorruptError:
            found += 1
            continue
        found += bool(list(damaged.check()))
        damaged.close()
    # A page that only maps where others are is not missed by reading, but by the check.
    assert found == len(whole) // 4096 - 1


def test_a_damaged_record_is_no_reason_to_refuse_the_others(store: SqliteStore, fast_folder: Path) -> None:
    for name in ("A", "B"):
        History(store, name).commit(text=name * 50_000)
    store.close()
    path = fast_folder / "store.db"
    path.write_bytes(path.read_bytes().replace(b"A" * 3000, b"C" * 3000))
    again = SqliteStore.open(str(path))
    assert len(list(again.records("B", 1, 1))) == 1
    [data] = again.records("A", 1, 1)
    assert b"CCC" in data
    again.close()


def test_the_view_shows_what_plain_keyframes_hold(store: SqliteStore) -> None:
    state = {"dag_structure": {"a": ["b"]}, "execution_config": {"n": 1}, "log": ["é"]}
    keyframe = json.dumps({"header": {}, "state": state}, ensure_ascii=False).encode()
    history = History(store)
    history.commit(phase=2, keyframe=keyframe)
    history.commit(phase=3)
    history.commit(keyframe=b"no JSON")
    history.commit()
    store.remove("W", Removal((4,)))
    rows = store._database.rows("select * from workflow_checkpoints order by id")
    assert [row[:4] for row in rows] == [
        (entry.uuid, "W", entry.timestamp, entry.phase) for entry in store.entries("W") if not entry.pruned
    ]
    assert [[value and json.loads(value) for value in row[4:]] for row in rows] == [
        [state, {"a": ["b"]}, {"n": 1}],
        [None] * 3,
        [None] * 3,
    ]


def test_the_view_shows_the_states_that_the_service_keeps(store: SqliteStore) -> None:
    with make_service(store) as service:
        state = WorkflowState(workflow_id="W", phase=1, dag_structure={"a": []}, context={"k": 1})
        service.create_checkpoint("W", state)
        [row] = store._database.rows("select layer_index, state, dag_structure from workflow_checkpoints")
    assert row[0] == 1
    assert json.loads(row[1])["context"] == {"k": 1}
    assert json.loads(row[2]) == {"a": []}


def test_a_reader_sees_what_a_writer_commits(store: SqliteStore) -> None:
    history = History(store)
    history.commit()
    reader = SqliteStore.open(store._database.path, read_only=True)
    assert reader.read_only
    for _ in range(3):
        history.commit()
        assert reader.head("W") == history.head
    for call in (reader.settle, lambda: reader.commit([]), lambda: reader.acquire("W", "ann", 1)):
        with pytest.raises(StoreReadOnlyError):
            call()
    reader.close()
