"""Where trails stand is remembered, and may be wrong: others write to the same sessions."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from holdfast.adapters.postgres import trails
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.adapters.postgres.trails import Chained, KnownHeads, Unchainable
from holdfast.conformance.history import History
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointError, UnstorableValueError
from tests.adapters.postgres.waiting import beside, transaction, wait_until_blocked

WRONG = replace(told(9), facts={"n": "x" * 600})


@pytest.fixture
def other(store, url):
    """The same store, opened by somebody else."""
    other = PostgresStore.open(url)
    yield other
    other.close()


@pytest.fixture
def statements(store, monkeypatch):
    """Every statement that is sent."""
    sent = []

    def noting(send):
        def noted(self, query, *rest, **more):
            sent.append(query)
            return send(self, query, *rest, **more)

        return noted

    for kind, name in ((psycopg.Cursor, "execute"), (Connection, "send"), (Connection, "ask")):
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    return sent


def test_entries_cost_no_statement_more(store, statements):
    history = History(store)
    for number in range(5):
        draft = history.draft(audit=(told(number),))
        statements.clear()
        assert store.commit([draft]) == [None]
        assert len(statements) == 1
        history.follow(draft)
    statements.clear()
    group = [History(store, f"W{n}").draft(audit=(told(n), told(n, "s-2"))) for n in range(8)]
    statements.clear()
    assert store.commit([*group, about_the_store(told(8))]) == [None] * 9
    assert len(statements) == 1
    assert check_trail(store, "s-1").seq == 15


def test_who_finds_that_others_were_there_sends_one_statement_more(store, other, statements):
    store.commit([about_the_store(told(1))])
    other.commit([about_the_store(told(2))])
    statements.clear()
    assert store.commit([about_the_store(told(3))]) == [None]
    assert len(statements) == 2
    assert numbers(store.trail("s-1")) == [1, 2, 3]
    check_trail(store, "s-1")


def test_entries_stand_in_the_order_of_the_call(store):
    group = [History(store, name).draft(audit=(told(n),)) for n, name in enumerate("dbca")]
    assert store.commit([*group[:2], about_the_store(told(7)), *group[2:]]) == [None] * 5
    assert numbers(store.trail("s-1")) == [0, 1, 7, 2, 3]


def test_a_session_that_others_closed_is_begun_again(store, other):
    store.commit([about_the_store(told(1))])
    other.commit([about_the_store(replace(told(2), type="SESSION_CLOSED", facts={}))])
    assert store.commit([about_the_store(told(3))]) == [None]
    assert check_trail(store, "s-1").seq == 5


def test_a_store_that_was_put_back_to_an_older_copy_is_chained_as_it_is(store, url):
    for number in range(3):
        store.commit([about_the_store(told(number))])
    with transaction(url) as administrator:
        administrator.execute("delete from audit where seq > 2")
        administrator.execute("commit")
        administrator.execute("begin")
    assert store.commit([about_the_store(told(7))]) == [None]
    assert numbers(store.trail("s-1")) == [0, 7]
    check_trail(store, "s-1")


def test_too_many_sessions_are_forgotten_and_found_again(store, monkeypatch):
    monkeypatch.setattr(trails, "REMEMBERED_MAX", 3)
    for number in range(20):
        assert store.commit([about_the_store(told(number, f"s-{number % 5}"))]) == [None]
        assert len(store._committer._heads._heads) <= 3
    assert [check_trail(store, f"s-{n}").seq for n in range(5)] == [5] * 5


def test_a_session_nobody_knows_is_taken_to_be_new():
    heads = KnownHeads()
    assert heads.get("s") == TrailHead("s")
    heads.keep([TrailHead("s", 4)])
    assert heads.get("s").seq == 4


def test_what_cannot_be_chained_names_its_unit():
    units = [
        Unit((about_the_store(told(1)),), (0,)),
        Unit((about_the_store(WRONG),), (1,)),
    ]
    with pytest.raises(Unchainable) as caught:
        trails.chain_units(units, TrailHead)
    assert caught.value.unit is units[1] and isinstance(caught.value.problem, UnstorableValueError)


def test_an_entry_that_cannot_be_written_harms_its_commit_only(store):
    history = History(store)
    first = history.draft(audit=(told(1),))
    history.follow(first)
    wrong = history.draft(audit=(WRONG,))
    good = History(store, "V").draft(audit=(told(2),))
    outcomes = store.commit([first, wrong, good])
    assert outcomes[0] is None and outcomes[2] is None
    assert isinstance(outcomes[1], UnstorableValueError)
    assert sorted(numbers(store.trail("s-1"))) == [1, 2]
    assert store.head("W") == first.head
    check_trail(store, "s-1")


def test_a_name_that_cannot_be_kept_harms_its_commit_only(store):
    for name in ("nul\0", "lone \ud800"):
        outcomes = store.commit([about_the_store(told(1, name)), History(store).draft(audit=(told(2),))])
        assert isinstance(outcomes[0], CheckpointError) and outcomes[1] is None
    assert [store.trail_head(name).seq for name in store.sessions()] == [3]
    check_trail(store, "s-1")


def test_entries_are_known_by_their_place_and_their_hash(store):
    chained = Chained()
    chained.add((told(1),), TrailHead)
    assert [record.head.seq for record in chained.records] == [1, 2]
    assert chained.before == {"s-1": TrailHead("s-1")}
    assert not trails.have_landed(store._database, chained)
    store.commit([about_the_store(told(1))])
    assert trails.have_landed(store._database, chained)
    another = Chained()
    another.add((told(2),), TrailHead)
    assert not trails.have_landed(store._database, another)


def test_the_heads_of_many_trails_are_read_at_once(store):
    for name in ("a", "b"):
        store.commit([about_the_store(told(1, name))])
    found = trails.read_heads(store._database, ["a", "b", "c"])
    assert found == {name: store.trail_head(name) for name in ("a", "b")}
    assert trails.read_heads(store._database, []) == {}


def test_locks_are_taken_in_one_order_whatever_is_asked_for(store, url):
    """Two who want the same in opposite order: the second waits for the first, and nobody in a circle."""
    with store._database.transaction() as first:
        trails.lock(first, ["b", "a"], ["y", "x"], lock_seconds=30)

        def second():
            with store._database.transaction() as transaction:
                trails.lock(transaction, ["a", "b"], ["x", "y"], lock_seconds=30)
                return transaction.rows("select 1")

        with beside(second) as future:
            wait_until_blocked(first._connection)
            assert not future.done()
            first._connection.execute("commit")
            assert future.result() == [(1,)]
            first._connection.execute("begin")
