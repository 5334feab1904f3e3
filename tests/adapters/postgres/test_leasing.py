"""A takeover waits for the commit that is on its way, also where there has never been a lease."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.adapters.postgres import statement
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.leasing import ServerClock
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History
from holdfast.domain.errors import LeaseHeldError, LeaseLostError, StoreLockedError, StoreReadOnlyError
from holdfast.domain.record import Head
from tests.adapters.postgres import server
from tests.adapters.postgres.waiting import beside, wait_until_blocked

LONG_SECONDS, OVER_SECONDS = 3600.0, 0.0


def built(commit):
    return statement.build([Unit((commit,), (0,))])


def take_over_during(store, commit):
    """Let another owner acquire while a commit is in its transaction; answer the head it saw."""
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(*built(commit))

        def take_over():
            store.acquire(commit.workflow_id, "bob", LONG_SECONDS)
            return store.head(commit.workflow_id)

        with beside(take_over) as future:
            while not future.done() and not _is_waited_for(connection):
                pass
            connection.execute("commit")
            seen = future.result()
            connection.execute("begin")
    return seen


def _is_waited_for(connection):
    # Inside a transaction it would see for ever who was connected when it first looked.
    connection.execute("select pg_stat_clear_snapshot()")
    query = "select 1 from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid))"
    return bool(connection.execute(query).fetchall())


def test_a_takeover_waits_for_a_commit_that_is_on_its_way(store):
    lease = store.acquire("W", "ann", OVER_SECONDS)
    draft = History(store).draft(token=lease.token)
    assert take_over_during(store, draft) == draft.head == store.head("W")


def test_without_the_lock_it_would_not(store, monkeypatch):
    """The negative control: the new owner saw another head than the one that came to be."""
    lease = store.acquire("W", "ann", OVER_SECONDS)
    draft = History(store).draft(token=lease.token)
    text = statement.text
    monkeypatch.setattr(statement, "text", lambda shape: text(shape).replace("for share", ""))
    assert take_over_during(store, draft) == Head() != store.head("W")


def test_the_first_lease_of_a_workflow_waits_for_commits_that_could_not_see_it(store):
    draft = History(store).draft()
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(*built(draft))
        with beside(lambda: (store.acquire("W", "bob", LONG_SECONDS), store.head("W"))) as future:
            # Its row is placed, and seen by all who come now; the lease is not granted yet.
            while not store._database.rows("select 1 from leases"):
                pass
            assert store.lease("W") is None
            connection.execute("commit")
            assert future.result()[1] == draft.head
            connection.execute("begin")


def test_a_client_that_never_ends_its_transaction_is_not_waited_for_for_ever():
    store = PostgresStore.open(server.url(reconnect_seconds="0.1"))
    with store._database.connections.connection() as connection, connection.transaction(force_rollback=True):
        connection.send(*built(History(store, "V").draft()))
        # Who finds the row that another one placed cannot know that it waited in vain.
        for owner in ("ann", "ann", "bob"):
            with pytest.raises(StoreLockedError, match="No lease was granted"):
                store.acquire("W", owner, LONG_SECONDS)
    assert store.lease("W") is None
    store.acquire("W", "ann", LONG_SECONDS)
    store.close()


def test_the_first_lease_waits_for_commits_without_events_too():
    store = PostgresStore.open(server.url(reconnect_seconds="0.1"))
    draft = replace(History(store).draft(), events=())
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(*built(draft))
        with pytest.raises(StoreLockedError, match="No lease was granted"):
            store.acquire("W", "ann", LONG_SECONDS)
    assert store.head("W") == draft.head
    store.close()


def test_a_workflow_that_has_had_a_lease_waits_for_nobody_elses_commits():
    store = PostgresStore.open(server.url(reconnect_seconds="0.1"))
    store.release(store.acquire("W", "ann", LONG_SECONDS))
    with store._database.connections.connection() as connection, connection.transaction(force_rollback=True):
        connection.send(*built(History(store, "V").draft()))
        assert store.acquire("W", "bob", LONG_SECONDS).token == 2
    store.close()


def test_a_commit_waits_for_a_takeover_and_is_then_refused(store, url):
    lease = store.acquire("W", "ann", OVER_SECONDS)
    draft = History(store).draft(token=lease.token)
    with server.connected(url) as other, other.transaction():
        other.execute("update leases set token = token + 1, owner = 'bob' where workflow_id = 'W'")
        with beside(lambda: store.commit([draft])) as future:
            wait_until_blocked(other)
            other.execute("commit")
            [outcome] = future.result()
            other.execute("begin")
    assert isinstance(outcome, LeaseLostError) and "bob" in str(outcome)


def test_a_commit_without_a_token_waits_for_whoever_acquires(store, url):
    store.release(store.acquire("W", "ann", LONG_SECONDS))
    with server.connected(url) as other, other.transaction():
        other.execute(
            "update leases set released = false, owner = 'bob', expires_at = '2999' where token = 1"
        )
        with beside(lambda: store.commit([History(store).draft()])) as future:
            wait_until_blocked(other)
            other.execute("commit")
            [outcome] = future.result()
            other.execute("begin")
    assert isinstance(outcome, LeaseHeldError) and "bob" in str(outcome)


def test_the_time_is_the_servers(store):
    now = ServerClock(store._database).now()
    assert now.tzinfo is UTC and abs(now - datetime.now(UTC)) < timedelta(hours=1)
    lease = store.acquire("W", "ann", LONG_SECONDS)
    [(expected,)] = store._database.rows(
        "select to_char(clock_timestamp() + interval '1 hour', 'YYYY-MM-DD\"T\"HH24:MI')"
    )
    assert lease.expires_at[:13] == expected[:13] or lease.expires_at < expected


def test_who_may_only_read_gets_no_lease(store, url):
    lease = store.acquire("W", "ann", LONG_SECONDS)
    reader = PostgresStore.open(url, read_only=True)
    assert reader.lease("W") == lease
    for call in (
        lambda: reader.acquire("V", "ann", LONG_SECONDS),
        lambda: reader.renew(lease, LONG_SECONDS),
        lambda: reader.release(lease),
    ):
        with pytest.raises(StoreReadOnlyError):
            call()
    reader.close()
