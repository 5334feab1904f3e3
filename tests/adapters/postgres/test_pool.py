"""Who comes gets the oldest connection; so many are lent at a time, and none that is broken."""

from __future__ import annotations

import pytest

from holdfast.adapters.postgres import connection as connections
from holdfast.adapters.postgres import pool as pools
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.pool import Pool
from tests.adapters.postgres import server


def connected():
    return Connection.connect(**server.parameters(), autocommit=True)


@pytest.fixture
def pool():
    made = Pool(connected, 2)
    yield made
    made.close()


@pytest.mark.parametrize("is_last", [True, False])
def test_the_oldest_is_lent_whichever_came_back_last(pool, is_last):
    first, second = pool.take(0), pool.take(0)
    for connection in (second, first) if is_last else (first, second):
        pool.give_back(connection)
    for _ in range(3):
        assert pool.take(0) is first
        pool.give_back(first)


def test_no_more_are_lent_than_it_has(pool):
    first, _ = pool.take(0), pool.take(0)
    assert pool.take(0) is None
    pool.give_back(first)
    assert pool.take(0) is first


def test_one_that_is_broken_or_in_the_middle_of_something_is_not_lent_again(pool):
    broken, busy = pool.take(0), pool.take(0)
    broken.close()
    busy.execute("begin")
    pool.give_back(broken)
    pool.give_back(busy)
    assert busy.closed
    others = pool.take(0), pool.take(0)
    assert not {broken, busy} & set(others)
    for one in others:
        pool.give_back(one)


def test_one_that_carried_something_large_is_not_kept(pool, monkeypatch):
    monkeypatch.setattr(connections, "LARGE_BYTES", 10)
    connection = pool.take(0)
    connection.read(connection.ask("select $1", [bytes(10)]))
    pool.give_back(connection)
    assert pool.take(0) is connection
    connection.read(connection.ask("select $1", [bytes(11)]))
    pool.give_back(connection)
    assert connection.closed


def test_where_none_can_be_made_the_next_may_try(pool, monkeypatch):
    def refuse():
        raise OSError

    monkeypatch.setattr(pool, "_connect", refuse)
    for _ in range(3):
        with pytest.raises(OSError):
            pool.take(0)
    monkeypatch.undo()
    pool.give_back(pool.take(0))


def test_one_that_others_were_preferred_to_for_long_is_closed(pool):
    used, idle = pool.take(0), pool.take(0)
    pool.give_back(idle)
    pool.give_back(used)
    idle.idle_since -= pools._IDLE_SECONDS_MAX + 1
    pool.give_back(pool.take(0))
    assert idle.closed and not used.closed


def test_what_comes_back_after_the_end_is_closed(pool):
    lent, waiting = pool.take(0), pool.take(0)
    pool.give_back(waiting)
    pool.close()
    assert waiting.closed and not lent.closed
    pool.give_back(lent)
    assert lent.closed
