"""No head of a workflow, a trail or the tree is believed for too long."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, in_threads, raises
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.errors import (
    CheckpointConflictError,
    DiskFullError,
    InvalidStateError,
    LeaseHeldError,
    LeaseLostError,
)
from holdfast.domain.record import Removal
from holdfast.testing import FixedClock
from tests.adapters.sqlite.listening import listen


@pytest.fixture
def store(fast_folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(fast_folder / "store.db"))
    yield store
    store.close()


def test_a_head_is_remembered_while_nobody_else_writes(store: SqliteStore) -> None:
    history = History(store)
    history.commit()
    asked = listen(store)
    history.commit()
    asked.clear()
    history.commit()
    assert not any("order by" in sql for sql in asked)


def test_a_head_is_forgotten_once_somebody_else_wrote(store: SqliteStore) -> None:
    mine, other = History(store), SqliteStore.open(store._database.path)
    mine.commit()
    theirs = History(other)
    theirs.commit()
    assert isinstance(store.commit([mine.draft()])[0], CheckpointConflictError)
    mine.head = store.head("W")
    mine.commit()
    assert isinstance(other.commit([theirs.draft()])[0], CheckpointConflictError)
    other.close()


def test_a_head_of_a_transaction_that_failed_is_forgotten(store: SqliteStore) -> None:
    history = History(store)
    history.commit()
    store._database.outside("pragma max_page_count = 1")
    draft = history.draft(text="x" * 100_000)
    with pytest.raises(DiskFullError):
        store.commit([draft])
    assert store.head("W") == history.head
    store._database.outside("pragma max_page_count = 1000000")
    assert store.commit([draft]) == [None]


def test_many_workflows_do_not_fill_the_memory(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.sqlite.heads._HEADS_MAX", 3)
    for number in range(10):
        History(store, f"W{number}").commit()
        store.commit([about_the_store(told(number, f"s-{number}"))])
        assert max(len(store._heads._workflows), len(store._heads._trails)) <= 5
    for number in range(10):
        assert store.head(f"W{number}").sequence == 1
        assert check_trail(store, f"s-{number}").seq == 2


# -- leases ----------------------------------------------------------------------------------------


def test_a_lease_is_asked_for_once_while_nobody_changes_it(store: SqliteStore) -> None:
    history = History(store)
    lease = store.acquire("W", "ann", 60)
    asked = listen(store)
    history.commit(token=lease.token)
    assert any("leases" in sql for sql in asked)
    asked.clear()
    history.commit(token=lease.token)
    assert not any("leases" in sql for sql in asked)


@pytest.mark.parametrize("is_shared", [False, True], ids=["here", "elsewhere"])
def test_a_lease_is_asked_for_again_once_it_changed(store: SqliteStore, *, is_shared: bool) -> None:
    history = History(store)
    history.commit()
    keeper = SqliteStore.open(store._database.path) if is_shared else store
    first = keeper.acquire("W", "ann", 60)
    assert isinstance(store.commit([history.draft()])[0], LeaseHeldError)
    keeper.renew(first, 0)
    history.commit()
    second = keeper.acquire("W", "bob", 60)
    assert isinstance(store.commit([history.draft(token=first.token)])[0], LeaseLostError)
    history.commit(token=second.token)
    keeper.release(second)
    assert isinstance(store.commit([history.draft(token=second.token)])[0], LeaseLostError)
    history.commit()
    keeper.close()


def test_a_lease_that_is_remembered_expires_all_the_same(fast_folder: Path) -> None:
    clock = FixedClock()
    store = SqliteStore.open(str(fast_folder / "store.db"), clock=clock)
    history = History(store)
    history.commit()
    store.acquire("W", "ann", 60)
    assert isinstance(store.commit([history.draft()])[0], LeaseHeldError)
    clock.advance(timedelta(seconds=61))
    history.commit()
    store.close()


# -- trails ----------------------------------------------------------------------------------------


def test_where_a_trail_stands_is_remembered_while_nobody_else_writes(store: SqliteStore) -> None:
    store.commit([about_the_store(told(1))])
    asked = listen(store)
    for number in (2, 3):
        asked.clear()
        store.commit([about_the_store(told(number))])
    assert not any("order by" in sql for sql in asked)
    assert check_trail(store, "s-1").seq == 4


def test_where_a_trail_stands_is_forgotten_once_somebody_else_wrote(store: SqliteStore) -> None:
    other = SqliteStore.open(store._database.path)
    for number in range(6):
        writer = (store, other)[number % 2]
        assert writer.commit([about_the_store(told(number), told(number, "s-2"))]) == [None]
    assert numbers(other.trail("s-1")) == [*range(6)]
    for name in ("s-1", "s-2"):
        assert check_trail(store, name) == check_trail(other, name)
    assert store.integrate() == other.integrate() == len(list(store.leaves())) == 14
    other.close()


def test_processes_that_share_a_session_put_each_entry_in_its_own_place(store: SqliteStore) -> None:
    openings = [SqliteStore.open(store._database.path) for _ in range(3)]

    def work(opening: SqliteStore, number: int) -> None:
        for turn in range(10):
            lease = opening.acquire(f"W{number}", "ann", 60, (told(turn),))
            opening.commit([about_the_store(told(turn))])
            opening.release(lease, (told(turn),))

    in_threads([partial(work, opening, number) for number, opening in enumerate(openings)])
    assert check_trail(store, "s-1").seq == 91
    assert [store.place("s-1", seq) for seq in range(1, 92)] == [*range(91)]
    for opening in openings:
        opening.close()


def test_a_trail_of_a_transaction_that_failed_is_forgotten(store: SqliteStore) -> None:
    store.commit([about_the_store(told(1))])
    store._database.outside("pragma max_page_count = 1")
    with pytest.raises(DiskFullError):
        store.commit([about_the_store(told(2, stored=b"x" * 100_000))])
    store._database.outside("pragma max_page_count = 1000000")
    assert store.commit([about_the_store(told(3))]) == [None]
    assert numbers(store.trail("s-1")) == [1, 3]
    assert check_trail(store, "s-1").seq == 3


def test_what_cannot_be_told_is_not_done(store: SqliteStore) -> None:
    History(store).commit()
    lease = store.acquire("W", "ann", 60, (told(1),))
    bad = (told(2), told(3, ""))
    for call in (
        lambda: store.acquire("W", "ann", 60, bad),
        lambda: store.release(lease, bad),
        lambda: store.remove("W", Removal((1,), events_through=1, audit=bad)),
    ):
        raises(InvalidStateError, call)
    assert store.lease("W") == lease
    assert not next(store.entries("W")).pruned
    raises(LeaseHeldError, lambda: store.acquire("W", "bob", 60, (told(4),)))
    assert numbers(store.trail("s-1")) == [1]
    store.commit([about_the_store(told(5))])
    assert check_trail(store, "s-1").seq == 3
