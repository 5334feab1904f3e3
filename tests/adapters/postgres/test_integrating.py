"""Every entry gets one place, in the order of its session, while others commit."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from holdfast.adapters.postgres import integrating, statement, trails
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.conformance.history import History, in_threads
from holdfast.conformance.trailing import about_the_store, told
from holdfast.domain.errors import StoreLockedError
from tests.adapters.postgres import server
from tests.adapters.postgres.waiting import transaction

TAKE_TREE = "select pg_advisory_xact_lock('audit_by_leaf'::regclass::oid::int, 0)"


def check_tree(store):
    """Places are dense, each entry has one, and those of a session are in order."""
    lines = [line for name in store.sessions() for line in store.trail(name)]
    assert sorted(store.leaves()) == sorted(lines) and list(store.waiting()) == []
    for name in store.sessions():
        places = [store.place(name, seq) for seq in range(1, store.trail_head(name).seq + 1)]
        assert places == sorted(places)
    assert [finding for finding in store.check() if finding.harm] == []
    stats = store.stats()
    assert stats["audit_entries"] == len(lines) and stats["sessions"] == len(list(store.sessions()))


@pytest.fixture(params=[1, 3, 2000])
def at_once(request, monkeypatch):
    monkeypatch.setattr(integrating, "AT_ONCE", request.param)
    return request.param


def test_entries_get_their_places_in_pieces_of_any_size(store, at_once):
    for number in range(5):
        store.commit([about_the_store(*(told(number, f"s-{n}") for n in (number % 3, 7)))])
    assert store.integrate() == 14
    check_tree(store)
    assert store.integrate() == 14


def test_what_is_placed_at_once_is_placed_by_its_time(store):
    for number, name in enumerate("zaybxc"):
        store.commit([about_the_store(told(number, name))])
    store.integrate()
    assert [store.place(name, 2) for name in "zaybxc"] == [1, 3, 5, 7, 9, 11]


def test_what_becomes_visible_later_is_placed_later(store):
    """A transaction that began first and commits last hides nothing and moves nothing."""
    late = Unit((about_the_store(told(1, "a-late")),), (0,))
    query, values = statement.build([], trails.chain_units([late], store.trail_head))
    with store._database.connections.connection() as connection, connection.transaction():
        connection.send(query, values)
        store.commit([about_the_store(told(2, "b-early"))])
        assert store.integrate() == 2
        before = list(store.leaves())
    assert len(list(store.waiting())) == 2
    assert store.integrate() == 4
    assert list(store.leaves())[:2] == before
    check_tree(store)


def test_nobody_who_commits_waits_for_who_integrates(store, url):
    history = History(store)
    history.commit(audit=(told(1),))
    with store._database.transaction() as transaction:
        assert integrating._place(transaction) == (0, 2)
        history.commit(audit=(told(2),))
        assert store.commit([about_the_store(told(3), files={"keys/a": b""})]) == [None]
        assert store.trail_head("s-1").seq == 4 and len(list(store.waiting())) == 4
    assert store.integrate() == 4
    check_tree(store)


def test_many_integrate_while_many_commit(url):
    stores = [PostgresStore.open(url) for _ in range(2)]
    done = threading.Event()

    def commit(number):
        for at in range(15):
            assert stores[number % 2].commit([about_the_store(told(at, f"s-{number % 3}"))]) == [None]
        done.set()

    def integrate(store):
        while not done.is_set():
            size = store.integrate()
            assert len(list(store.leaves())) >= size

    in_threads([partial(commit, n) for n in range(4)] + [partial(integrate, store) for store in stores])
    assert stores[0].integrate() == 63
    check_tree(stores[0])
    for store in stores:
        store.close()


def test_a_lost_connection_places_nothing_twice(store):
    store.commit([about_the_store(*(told(n) for n in range(5)))])
    with store._database.connections.connection() as connection:
        pid = connection.info.backend_pid
    with server.connected(server.url()) as administrator:
        administrator.execute("select pg_terminate_backend(%s)", [pid])
    assert store.integrate() == 6
    check_tree(store)


def test_who_may_only_read_is_told_how_far_others_got(store, url):
    store.commit([about_the_store(told(1))])
    reader = PostgresStore.open(url, read_only=True)
    assert reader.integrate() == 0 and len(list(reader.waiting())) == 2
    store.integrate()
    assert reader.integrate() == 2
    reader.close()


def test_who_integrates_waits_only_so_long_for_another():
    url = server.url(lock_seconds="0.1")
    store = PostgresStore.open(url)
    store.commit([about_the_store(told(1))])
    with transaction(url) as stopped:
        stopped.execute(TAKE_TREE)
        with pytest.raises(StoreLockedError):
            store.integrate()
    assert store.integrate() == 2
    store.close()


def test_a_gap_in_the_tree_or_in_a_session_is_found(store, url):
    store.commit([about_the_store(told(1), told(2))])
    store.integrate()
    with server.connected(url) as administrator:
        administrator.execute("delete from audit where seq = 2")
    problems = {finding.problem for finding in store.check() if finding.harm}
    assert any("session" in problem for problem in problems) and any("tree" in p for p in problems)
