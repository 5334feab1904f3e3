"""Leases in a table: the row stays, tokens only grow, who fails leaves nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.adapters.sql import leasing
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.domain.errors import CheckpointCorruptError, ConfigError, LeaseHeldError
from holdfast.testing import FixedClock


def test_the_row_of_a_released_lease_keeps_its_token(store: SqliteStore) -> None:
    store.release(store.acquire("W", "ann", 60))
    assert store._database.rows("select token, released from leases") == [(1, 1)]
    assert store.acquire("W", "bob", 60).token == 2


def test_only_what_was_had_is_given_up(database: SqliteDatabase, store: SqliteStore) -> None:
    lease = store.acquire("W", "ann", 60)
    with database.transaction() as transaction:
        assert leasing.release(transaction, lease)
        assert not leasing.release(transaction, lease)
    store.acquire("W", "bob", 60)
    with database.transaction() as transaction:
        assert not leasing.release(transaction, lease)


def test_who_is_refused_leaves_no_row(store: SqliteStore) -> None:
    with pytest.raises(ConfigError):
        store.acquire("W", "ann", -1)
    assert store._database.rows("select * from leases") == []


def test_time_passes_by_the_clock_of_the_store(fast_folder: Path) -> None:
    clock = FixedClock()
    store = SqliteStore.open(str(fast_folder / "clocked.db"), clock=clock)
    lease = store.acquire("W", "ann", 60)
    clock.advance(timedelta(seconds=59))
    with pytest.raises(LeaseHeldError):
        store.acquire("W", "bob", 60)
    clock.advance(timedelta(seconds=1))
    found = store.lease("W")
    assert found is not None and not found.is_live
    assert store.renew(lease, 60).is_live
    store.close()


def test_a_row_that_is_no_lease_is_damage(store: SqliteStore) -> None:
    store.acquire("W", "ann", 60)
    with store._database.transaction() as transaction:
        transaction.run("update leases set token = 'high'")
    with pytest.raises(CheckpointCorruptError):
        store.lease("W")
