"""Tiles follow the entries, a few at a time, and are made anew when they are damaged."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.log_name import LOG
from holdfast.application.audit.log_tiles import SIZE_FILE, LogTiles
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, CheckpointNotFoundError
from holdfast.domain.merkle import Node, leaf_hash, root_of
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.tiles import tiles_of
from holdfast.testing import FailingStore
from tests.application.logs import outcomes

NOW = datetime(2026, 1, 11, 12, tzinfo=UTC)


def tell(store: MemoryStore | FailingStore, count: int, session_id: str = "s-1") -> None:
    """Write entries; the first one of a session brings its beginning along."""
    entries = tuple(AuditEntry(NOW, "NOTED", session_id, facts={"n": n}) for n in range(count))
    outcomes(store.commit([Commit(NO_WORKFLOW, Head(), audit=entries)]))


def put(store: MemoryStore, name: str, data: bytes | None) -> None:
    outcomes(store.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]))


def expected_tiles(size: int) -> list[str]:
    return sorted(LOG + tile.path for tile in tiles_of(size))


def check(store: MemoryStore) -> None:
    """Compare the tiles with the entries."""
    lines = list(store.leaves())
    assert list(store.files(LOG + "tile/")) == expected_tiles(len(lines))
    tiles = LogTiles(store)
    assert tiles.size() == len(lines)
    assert tiles.root(len(lines)) == root_of([leaf_hash(line) for line in lines])


@pytest.mark.parametrize("steps", [(1,), (10, 1, 5), (255, 1, 1), (300, 300), (700, 2_000, 3)])
def test_tiles_follow_the_entries_and_old_partial_ones_go(steps: Sequence[int]) -> None:
    store = MemoryStore()
    for count in steps:
        tell(store, count)
        assert LogTiles(store).grow() == len(list(store.leaves()))
        check(store)


def test_an_empty_log_has_no_tiles() -> None:
    store = MemoryStore()
    assert (LogTiles(store).grow(), LogTiles(store).size()) == (0, 0)
    assert list(store.files(LOG)) == []


def test_nothing_is_written_where_nothing_is_new() -> None:
    store = FailingStore(MemoryStore())
    tell(store, 300)
    tiles = LogTiles(store)
    tiles.grow()
    before = store.calls["commit"]
    assert tiles.grow() == 301
    assert store.calls["commit"] == before


def test_hashes_of_every_earlier_size_are_known() -> None:
    store = MemoryStore()
    tell(store, 600)
    LogTiles(store).grow()
    lines = list(store.leaves())
    for size in (1, 2, 255, 256, 257, 511, 513, 600, 601):
        assert LogTiles(store).root(size) == root_of([leaf_hash(line) for line in lines[:size]])


def test_where_tiles_do_not_reach_the_entries_are_read() -> None:
    store = MemoryStore()
    tell(store, 40)
    assert LogTiles(store).root(41) == root_of([leaf_hash(line) for line in store.leaves()])
    assert list(store.files(LOG)) == []


DAMAGE = {
    "a partial tile is changed": (LOG + "tile/0/001.p/45", bytes(45 * 32)),
    "a partial tile is cut": (LOG + "tile/0/001.p/45", b"short"),
    "a partial tile is gone": (LOG + "tile/0/001.p/45", None),
    "an upper tile is gone": (LOG + "tile/1/000.p/1", None),
    "the size is gone": (SIZE_FILE, None),
    "the size is no size": (SIZE_FILE, b"forty\n"),
    "the size has no root": (SIZE_FILE, b"301\n"),
    "the size is another": (SIZE_FILE, b"300\nAAAA\n"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_damaged_is_made_anew_with_what_comes_next(what: str) -> None:
    store = MemoryStore()
    tell(store, 300)
    LogTiles(store).grow()
    name, data = DAMAGE[what]
    assert store.file(name) is not None
    put(store, name, data)
    tell(store, 2)
    LogTiles(store).grow()
    check(store)


def test_a_full_tile_that_is_damaged_is_made_anew_on_demand() -> None:
    store = MemoryStore()
    tell(store, 300)
    LogTiles(store).grow()
    put(store, LOG + "tile/0/000", bytes(8192))
    put(store, LOG + "tile/0/777.p/7", b"of nobody")
    assert LogTiles(store).rebuild() == 301
    check(store)


def test_a_tile_that_is_gone_is_told_as_gone() -> None:
    store = MemoryStore()
    tell(store, 300)
    LogTiles(store).grow()
    put(store, LOG + "tile/0/000", None)
    with pytest.raises(CheckpointNotFoundError, match="a tile of the tree is not there"):
        LogTiles(store).hashes(300)([Node(0, 1)])


def test_fewer_entries_than_tiles_is_an_error_and_no_tile_is_touched() -> None:
    store = FailingStore(MemoryStore())
    tell(store, 20)
    tiles = LogTiles(store)
    tiles.grow()
    before = {name: store.file(name) for name in store.files(LOG)}
    store.alter("integrate", lambda size: size - 5)
    with pytest.raises(CheckpointCorruptError, match="has 16 entries, and its tree was made for 21"):
        tiles.grow()
    assert {name: store.file(name) for name in store.files(LOG)} == before


def test_entries_that_vanish_on_the_way_are_an_error() -> None:
    store = FailingStore(MemoryStore())
    tell(store, 20)
    store.alter("integrate", lambda size: size + 5)
    with pytest.raises(CheckpointCorruptError, match="has 21 entries"):
        LogTiles(store).grow()


def test_many_at_once_make_the_same_tiles() -> None:
    store = MemoryStore()
    faults: list[Exception] = []

    def work(session_id: str) -> None:
        try:
            for _ in range(10):
                tell(store, 30, session_id)
                LogTiles(store).grow()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(f"s-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    check(store)


class Raced(FailingStore):
    """Lets somebody else be faster a number of times."""

    def __init__(self, races: int) -> None:
        super().__init__(MemoryStore())
        self.races = races

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        [commit] = commits
        if self.races and SIZE_FILE in commit.expected_files:
            self.races -= 1
            return [commit.file_conflict(SIZE_FILE)]
        return super().commit(commits)


def test_a_lost_race_is_run_again_and_not_for_ever() -> None:
    store = Raced(3)
    tell(store, 5)
    assert LogTiles(store).grow() == 6
    tell(store, 5)
    store.races = 1_000
    with pytest.raises(CheckpointConflictError, match="others keep changing"):
        LogTiles(store).grow()
    with pytest.raises(CheckpointConflictError, match="others keep changing"):
        LogTiles(store).rebuild()
