"""Shared statements in the words of this database, and transactions that survive what passes."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import errors

from holdfast.adapters.postgres.database import ATTEMPTS_MAX, in_dialect
from holdfast.domain.errors import (
    CheckpointReadError,
    CheckpointWriteError,
    InvalidIdError,
    StoreClosedError,
    StoreNotFoundError,
)
from tests.adapters.postgres import server


@pytest.fixture
def database(store):
    return store._database


@pytest.mark.parametrize(
    ("shared", "ours"),
    [
        ("select :a, :b_2, :a", ("select $1, $2, $1", ("a", "b_2"))),
        ("select :a::text", ("select $1::text", ("a",))),
        ("select 'HH24:MI:SS', 10 % 3", ("select 'HH24:MI:SS', 10 % 3", ())),
    ],
)
def test_parameters_are_written_as_the_server_wants_them(shared, ours):
    assert in_dialect(shared) == ours


def test_a_query_answers_rows_of_native_values(database):
    [row] = database.rows("select :n, :t, :b, true, null", {"n": 2**40, "t": "caf\u00e9", "b": b"\0\xff"})
    assert row == (2**40, "caf\u00e9", b"\0\xff", True, None)


def test_a_transaction_is_kept_or_undone_as_a_whole(database):
    with database.transaction() as transaction:
        assert (
            transaction.run("insert into blobs (sha256, data) values ('a', :d), ('b', :d)", {"d": b"x"}) == 2
        )
    with pytest.raises(RuntimeError), database.transaction() as transaction:
        transaction.run("delete from blobs")
        raise RuntimeError
    assert database.rows("select sha256 from blobs order by 1") == [("a",), ("b",)]


def test_what_got_into_another_ones_way_is_tried_again(database):
    tries = []

    def work(transaction):
        tries.append(transaction)
        if len(tries) < 4:
            raise errors.DeadlockDetected("again")
        return 5

    assert database.atomically(work) == 5 and len(tries) == 4


def test_what_is_always_in_the_way_is_given_up(database):
    tries = []

    def work(transaction):
        tries.append(transaction)
        raise errors.SerializationFailure("never")

    with pytest.raises(CheckpointWriteError):
        database.atomically(work)
    assert len(tries) == ATTEMPTS_MAX


def test_a_transaction_survives_the_loss_of_its_connection(database):
    pids = []

    def work(transaction):
        [(pid,)] = transaction.rows("select pg_backend_pid()")
        pids.append(pid)
        transaction.run("insert into blobs (sha256, data) values ('a', '')")
        if len(pids) == 1:
            with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
                administrator.execute("select pg_terminate_backend(%s)", [pid])
        return transaction.rows("select count(*) from blobs")[0][0]

    assert database.atomically(work) == 1
    assert len(set(pids)) == 2


def test_a_bare_transaction_tells_that_its_connection_was_lost(database):
    with (
        pytest.raises(CheckpointWriteError, match="connection was lost"),
        database.transaction() as transaction,
    ):
        [(pid,)] = transaction.rows("select pg_backend_pid()")
        with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
            administrator.execute("select pg_terminate_backend(%s)", [pid])
        transaction.rows("select 1")


def test_errors_are_ours(database):
    with pytest.raises(StoreNotFoundError):
        database.rows("select * from nowhere")
    with pytest.raises(CheckpointReadError, match="division by zero"):
        database.rows("select 1/0")
    for name in ("nul\0", "lone \ud800"):
        with pytest.raises(InvalidIdError):
            database.rows("select :name", {"name": name})


def test_whole_tables_are_read_with_other_plans(database):
    assert database.rows("show enable_seqscan") == [("off",)]
    assert database.scans().rows("show enable_seqscan") == [("on",)]
    assert database.rows("show enable_seqscan") == [("off",)]


def test_only_one_migrates_at_a_time(database):
    order: list[str] = []
    inside = threading.Event()

    def second():
        inside.wait()
        with database.migrating():
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with database.migrating() as transaction:
        inside.set()
        while not transaction.rows("select 1 from pg_locks where locktype = 'advisory' and not granted"):
            pass
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_closed_database_answers_nothing(store):
    store.close()
    for ask in (store._database.rows, store._database.scans().rows):
        with pytest.raises(StoreClosedError):
            ask("select 1")
    with pytest.raises(StoreClosedError), store._database.transaction():
        pass
