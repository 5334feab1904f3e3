"""What was erased is in no byte of any file of the database."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.adapters.sqlite import database
from holdfast.adapters.sqlite.driver import Driver, through_apsw, through_sqlite3
from holdfast.adapters.sqlite.files import uri
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History
from holdfast.conformance.trailing import about_the_store, check_trail, told
from holdfast.domain.errors import StoreLockedError
from holdfast.domain.record import Removal

WAYS = [(through_sqlite3(), ROLLBACK), (through_apsw(), ROLLBACK), (through_apsw(), WAL)]


@pytest.fixture(params=WAYS, ids=["rollback through sqlite3", "rollback through apsw", "wal through apsw"])
def store(request: pytest.FixtureRequest, fast_folder: Path) -> Iterator[SqliteStore]:
    driver, mode = request.param
    store = SqliteStore.open(
        str(fast_folder / "store.db"), driver=driver, journal_mode=mode, busy_seconds=0.01
    )
    yield store
    store.close()


def found(folder: Path, marks: list[bytes]) -> set[bytes]:
    """Look for marks in every byte of every file."""
    data = b"".join(path.read_bytes() for path in folder.iterdir())
    return {mark for mark in marks if mark in data}


class Story:
    """Entries with payloads that can be told from each other wherever they are found, erased at random."""

    def __init__(self, store: SqliteStore, seed: int) -> None:
        self.store = store
        self.rng = random.Random(seed)
        self.kept: dict[tuple[str, int], bytes] = {}
        self.gone: list[bytes] = []

    def tell(self) -> None:
        """Commit some entries of several sessions, with payloads from one word to several pages."""
        for _ in range(self.rng.randrange(1, 5)):
            name = f"s-{self.rng.randrange(3)}"
            mark = self.rng.randbytes(8).hex().encode()
            payload = mark * self.rng.choice((1, 5, 50, 900))
            assert self.store.commit([about_the_store(told(1, name, payload))]) == [None]
            self.kept[name, self.store.trail_head(name).seq] = mark

    def erase(self) -> None:
        """Erase some, with other things in the same call."""
        going = self.rng.sample(sorted(self.kept), min(len(self.kept), 3))
        commits = [about_the_store(told(2), erased=tuple(going)), about_the_store(told(3))]
        assert self.store.commit(commits) == [None, None]
        self.gone += [self.kept.pop(key) for key in going]

    def make_room(self) -> None:
        """Give rows and pages back, so that others move into them."""
        history = History(self.store, f"W{self.rng.random()}")
        history.commit(text="x" * self.rng.randrange(9000), keyframe=b"k" * 5000)
        history.commit(group=2)
        self.store.remove(history.workflow_id, Removal((1,), (1,), events_through=1))


@pytest.mark.parametrize("seed", range(3))
def test_a_payload_is_gone_when_the_commit_that_erases_it_returns(
    seed: int, store: SqliteStore, fast_folder: Path
) -> None:
    story = Story(store, seed)
    for _ in range(40):
        story.tell()
        story.rng.choice((story.tell, story.make_room))()
        story.erase()
        assert found(fast_folder, story.gone[-3:]) == set()
    assert len(story.gone) > 50
    assert found(fast_folder, story.gone) == set()
    assert found(fast_folder, [*story.kept.values()]) == {*story.kept.values()}
    for name in store.sessions():
        check_trail(store, name)
    assert list(store.check()) == []


def test_the_search_finds_what_is_not_overwritten(fast_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    careless = [sql.replace("secure_delete = on", "secure_delete = off") for sql in database._SETTINGS]
    monkeypatch.setattr(database, "_SETTINGS", careless)
    store = SqliteStore.open(str(fast_folder / "store.db"))
    story = Story(store, 1)
    for _ in range(20):
        story.tell()
        story.erase()
    store.close()
    assert found(fast_folder, story.gone)


def test_journals_keep_nothing_of_what_was_erased(store: SqliteStore, fast_folder: Path) -> None:
    """The negative control of the journals: they are where the bytes would be."""
    store.commit([about_the_store(told(1, stored=b"old payload"))])
    store.commit([about_the_store(told(2))])
    journals = [path for path in fast_folder.iterdir() if path.name != "store.db"]
    assert any(b"old payload" in path.read_bytes() for path in journals)
    store.commit([about_the_store(told(3), erased=(("s-1", 2),))])
    assert [path.stat().st_size for path in journals if path.suffix != ".db-shm"] == [0]
    assert found(fast_folder, [b"old payload"]) == set()


def test_what_a_file_held_before_is_gone_once_settled(store: SqliteStore, fast_folder: Path) -> None:
    rng = random.Random(7)
    marks: list[bytes] = []
    kept: dict[str, bytes] = {}
    for turn in range(60):
        name = f"keys/{rng.randrange(9)}.json"
        marks.append(rng.randbytes(8).hex().encode())
        kept.pop(name, None)
        if turn % 5:
            kept[name] = marks[-1]
        data = marks[-1] * rng.choice((1, 20, 600)) if name in kept else None
        assert store.commit([about_the_store(files={name: data})]) == [None]
    store.settle()
    assert found(fast_folder, marks) == {*kept.values()}


def test_a_reader_that_stays_keeps_the_log_until_it_goes(fast_folder: Path) -> None:
    driver: Driver = through_apsw()
    path = str(fast_folder / "store.db")
    store = SqliteStore.open(path, driver=driver, journal_mode=WAL, busy_seconds=0.01)
    store.commit([about_the_store(told(1, stored=b"old payload"))])
    reader = driver.connect(uri(path, "rw"))
    reader.execute("begin")
    reader.execute("select count(*) from audit").fetchall()
    assert store.commit([about_the_store(told(2), erased=(("s-1", 2),))]) == [None]
    assert store.payload("s-1", 2) is None
    assert found(fast_folder, [b"old payload"])
    with pytest.raises(StoreLockedError, match="still holds what was erased"):
        store.settle()
    reader.execute("commit")
    store.settle()
    assert found(fast_folder, [b"old payload"]) == set()
    reader.close()
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.commit([about_the_store(files={"keys/a": b"new"})]),
        lambda store: store.commit([about_the_store(files={"keys/a": None})]),
        lambda store: store.remove("W", Removal((1,), (1,))),
    ],
    ids=["a file is replaced", "a file is removed", "a checkpoint is removed"],
)
def test_settling_tells_that_a_reader_keeps_what_was_there_before(
    change: Callable[[SqliteStore], object], fast_folder: Path
) -> None:
    driver: Driver = through_apsw()
    path = str(fast_folder / "store.db")
    store = SqliteStore.open(path, driver=driver, journal_mode=WAL, busy_seconds=0.01)
    History(store).commit(text="old value")
    store.commit([about_the_store(files={"keys/a": b"old value"})])
    store.settle()
    reader = driver.connect(uri(path, "rw"))
    reader.execute("begin")
    reader.execute("select count(*) from audit").fetchall()
    change(store)
    for _ in range(2):
        with pytest.raises(StoreLockedError, match="still holds what was erased"):
            store.settle()
    reader.close()
    store.settle()
    store.close()


def test_nobody_waits_for_a_reader_if_nothing_was_erased(fast_folder: Path) -> None:
    driver: Driver = through_apsw()
    path = str(fast_folder / "store.db")
    store = SqliteStore.open(path, driver=driver, journal_mode=WAL)
    store.commit([about_the_store(told(1))])
    reader = driver.connect(uri(path, "rw"))
    reader.execute("begin")
    reader.execute("select count(*) from audit").fetchall()
    store.commit([about_the_store(told(2))])
    store.settle()
    assert Path(f"{path}-wal").stat().st_size
    reader.close()
    store.settle()
    assert Path(f"{path}-wal").stat().st_size == 0
    store.close()


def test_what_a_writer_that_died_had_erased_goes_when_the_next_one_settles(
    store: SqliteStore, fast_folder: Path
) -> None:
    store.commit([about_the_store(told(1, stored=b"old payload"))])
    store.commit([about_the_store(told(2))])
    with store._database.transaction() as transaction:
        transaction.run("update audit set payload = null")
    assert found(fast_folder, [b"old payload"])
    again = SqliteStore.open(store._database.path, driver=store._database.driver)
    again.settle()
    assert found(fast_folder, [b"old payload"]) == set()
    again.close()
