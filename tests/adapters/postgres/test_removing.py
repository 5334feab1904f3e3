"""Events go while others commit, and yet nobody gets in on top of an event that went."""

from __future__ import annotations

import threading

import pytest

from holdfast.adapters.postgres import barrier, removing
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History
from holdfast.domain.errors import CheckpointConflictError, StoreLockedError
from holdfast.domain.record import Removal
from tests.adapters.postgres import server
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

HOUR_SECONDS = 3600.0


@pytest.fixture
def has_looked(monkeypatch):
    """Set once a removal knows for whom it waits."""
    looked = threading.Event()
    writers = barrier._writers

    def noted(database):
        found = writers(database)
        looked.set()
        return found

    monkeypatch.setattr(barrier, "_writers", noted)
    return looked


def remove_during_a_stale_commit(store, url, has_looked):
    """Let a commit stop once it has its snapshot, others commit and remove; answer what became of it."""
    store.release(store.acquire("A", "ann", HOUR_SECONDS))
    has_looked.clear()
    history = History(store)
    history.commit()
    history.commit()
    # The group waits at the first one's lease, before the second one gets to the row it races for.
    group = [History(store, "A").draft(), history.draft(text="stale", is_checkpoint=False)]
    with server.connected(url) as other, other.transaction():
        other.execute("select * from leases where workflow_id = 'A' for update")
        with beside(lambda: store.commit(group)) as committing:
            wait_until_blocked(other)
            history.commit(text="faster")
            history.commit(text="faster")
            removal = Removal(sequences=(1, 2, 3), events_through=3)
            with beside(lambda: store.remove("W", removal)) as removed:
                while not (removed.done() or has_looked.is_set()):
                    pass
                other.execute("commit")
            outcomes = committing.result()
            other.execute("begin")
    return outcomes


def seqs(url):
    with server.connected(url) as administrator:
        query = "select seq from events where workflow_id = 'W' order by seq"
        return [seq for (seq,) in administrator.execute(query).fetchall()]


def test_a_stale_commit_meets_the_event_it_races_for_before_that_goes(store, url, has_looked):
    first, stale = remove_during_a_stale_commit(store, url, has_looked)
    assert first is None and isinstance(stale, CheckpointConflictError)
    assert seqs(url) == [4]


def test_without_waiting_it_would_get_in(store, url, has_looked, monkeypatch):
    """The negative control: it is acknowledged, behind a head that it does not build on."""
    monkeypatch.setattr(removing, "await_writers", lambda database, undone: None)
    assert remove_during_a_stale_commit(store, url, has_looked) == [None, None]
    assert seqs(url) == [3, 4]


def test_events_that_came_after_it_began_to_wait_stay(store, url, monkeypatch):
    history = History(store)
    history.commit()
    history.commit()

    def commit_meanwhile(database, undone):
        history.commit()
        history.commit()

    monkeypatch.setattr(removing, "await_writers", commit_meanwhile)
    store.remove("W", Removal(sequences=(1, 2, 3), events_through=3))
    assert seqs(url) == [3, 4]


def test_a_commit_that_never_ends_is_not_waited_for_for_ever_and_stops_no_other():
    url = server.url(reconnect_seconds="0.1")
    store = PostgresStore.open(url)
    history = History(store)
    history.commit()
    history.commit(group=2)
    with transaction(url) as other:
        other.execute("insert into events (workflow_id, seq, timestamp, hash) values ('V', 1, '', '')")
        with pytest.raises(StoreLockedError, match="Nothing was removed"):
            store.remove("W", Removal(sequences=(1,), groups=(1,), events_through=1))
        assert seqs(url) == [1, 2] and not any(entry.pruned for entry in store.entries("W"))
        history.commit(group=2)
        assert store.remove("W", Removal(sequences=(1,), groups=(1,))) > 0
    store.remove("W", Removal(sequences=(1,), events_through=1))
    assert seqs(url) == [2, 3]
    store.close()
