"""Waiting for the commits that are under way now, and for no others."""

from __future__ import annotations

import pytest

from holdfast.adapters.postgres.barrier import await_writers
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.domain.errors import StoreLockedError
from tests.adapters.postgres import server


def test_where_nobody_commits_nobody_is_waited_for(store):
    await_writers(store._database, undone="Nothing was done")


@pytest.mark.parametrize("table", ["events", "checkpoints"])
def test_a_commit_that_does_not_end_is_named_in_time(table):
    url = server.url(reconnect_seconds="1")
    store = PostgresStore.open(url)
    with server.connected(url) as other, other.transaction():
        other.execute(f"lock table {table} in row exclusive mode")
        with pytest.raises(StoreLockedError, match="Nothing was done"):
            await_writers(store._database, undone="Nothing was done")
    await_writers(store._database, undone="Nothing was done")
    store.close()


def test_who_only_reads_is_not_waited_for():
    url = server.url(reconnect_seconds="1")
    store = PostgresStore.open(url)
    with server.connected(url) as other, other.transaction():
        other.execute("select count(*) from events").fetchall()
        await_writers(store._database, undone="Nothing was done")
    store.close()
