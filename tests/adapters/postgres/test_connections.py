"""A pool per life of the server: lost connections are noticed, waited for, and never shared with a child."""

from __future__ import annotations

import logging
import os
import socket
import threading
from dataclasses import replace

import psycopg
import pytest

from holdfast.adapters.postgres.address import read_address
from holdfast.adapters.postgres.connections import ConnectionLost, Connections, Deadline
from holdfast.adapters.postgres.store import PostgresStore
from holdfast.cli.exits import Exit, exit_of
from holdfast.conformance.history import History
from holdfast.domain.errors import (
    CheckpointReadError,
    PermissionDeniedError,
    StoreClosedError,
    StoreNotFoundError,
)
from tests.adapters.postgres import server
from tests.adapters.postgres.proxy import Proxy

TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = %s"


@pytest.fixture
def name():
    return f"test {threading.get_ident()} {os.urandom(4).hex()}"


@pytest.fixture
def connections(name):
    # One only: a pool that may grow opens a second connection while its first is still on the way.
    made = Connections(
        read_address(server.url(application_name=name, pool_size="1")), read_only=False, create=True
    )
    yield made
    made.close()


def terminate(name):
    with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
        administrator.execute(TERMINATE, [name])


def backend(connections):
    with connections.connection() as connection:
        return connection.info.backend_pid


def hurry(connections):
    """Wait for nothing any longer: a busy machine may take its time for what came before."""
    connections.address = replace(connections.address, reconnect_seconds=0.05)


def test_a_connection_is_used_again(connections):
    assert backend(connections) == backend(connections)


def test_a_connection_that_dies_under_a_statement_is_told(connections, name):
    with pytest.raises(ConnectionLost), connections.connection() as connection:
        terminate(name)
        connection.execute("select 1")
    assert backend(connections)


def test_what_may_be_done_twice_is_done_again_when_the_connection_dies(connections, name):
    attempts = []

    def work(connection):
        attempts.append(connection)
        if len(attempts) < 3:
            terminate(name)
        return connection.execute("select 7").fetchone()[0]

    assert connections.persist(work) == 7
    assert len(attempts) == 3


def test_an_error_that_leaves_the_connection_alive_is_the_callers(connections):
    before = backend(connections)
    with pytest.raises(psycopg.errors.DivisionByZero), connections.connection() as connection:
        connection.execute("select 1/0")
    assert backend(connections) == before


def test_when_all_connections_stay_busy_it_is_told(name):
    url = server.url(application_name=name, pool_size="1")
    connections = Connections(read_address(url), read_only=False, create=True)
    with connections.connection(), pytest.raises(CheckpointReadError, match="pool_size"):
        hurry(connections)
        backend(connections)
    connections.close()


def test_a_closed_one_gives_nothing(connections):
    connections.close()
    connections.close()
    with pytest.raises(StoreClosedError):
        backend(connections)


def test_a_server_that_stays_away_is_not_waited_for_for_ever():
    proxy = Proxy()
    connections = Connections(read_address(server.at(proxy.host)), read_only=False, create=True)
    backend(connections)
    hurry(connections)
    proxy.close()
    with pytest.raises(CheckpointReadError, match="cannot be reached"):
        connections.persist(lambda connection: connection.execute("select 1"))
    connections.close()


def test_a_server_that_answers_and_always_dies_is_given_up():
    connections = Connections(
        read_address(server.url(application_name="dying", reconnect_seconds="0.2")),
        read_only=False,
        create=True,
    )

    def work(connection):
        terminate("dying")
        connection.execute("select 1")

    with pytest.raises(CheckpointReadError):
        connections.persist(work)
    connections.close()


def test_a_deadline_ends_and_pauses_grow():
    deadline = Deadline(0.0)
    assert deadline.is_over and deadline.left_seconds == 0
    deadline.pause()
    longer = Deadline(60.0)
    first = longer._pause_seconds
    longer.pause()
    assert not longer.is_over and longer._pause_seconds > first


# -- opening ------------------------------------------------------------------------------------------


def refused(url, caplog):
    """The error of an opening, which tells no secret and ends the command line with its own exit."""
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises((CheckpointReadError, PermissionDeniedError)) as caught,
    ):
        PostgresStore.open(url)
    error = caught.value
    assert error.__cause__ is None
    for text in (str(error), repr(error), caplog.text):
        assert server.PASSWORD not in text and "s3cr3t" not in text
    assert exit_of(error.code) in (Exit.UNREACHABLE, Exit.NO_STORE)
    assert error.hint
    return error


def test_a_port_where_nobody_listens_is_told(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = refused(f"postgresql://ann:s3cr3t@127.0.0.1:{port}/work", caplog)
    assert type(error) is CheckpointReadError and "refused" in str(error)


def test_a_wrong_password_is_told_and_the_right_one_lets_in(caplog):
    host = server.parameters()["host"]
    error = refused(f"postgresql://{server.GUARDED}:s3cr3t@/postgres?host={host}", caplog)
    assert isinstance(error, PermissionDeniedError) and server.GUARDED in str(error)
    escaped = server.PASSWORD.replace("/", "%2F").replace("@", "%40")
    with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
        administrator.execute(f"create schema if not exists guarded authorization {server.GUARDED}")
    url = f"postgresql://{server.GUARDED}:{escaped}@/postgres?host={host}&schema=guarded"
    with caplog.at_level(logging.DEBUG):
        store = PostgresStore.open(url)
        History(store).commit()
        shown = f"{store.url} {store!r} {vars(store)} {vars(store._database.connections)}"
        store.close()
    assert "p@ss" not in shown and "p%40ss" not in shown and "p@ss" not in caplog.text


def test_a_database_that_is_not_there_is_told(caplog):
    url = server.at(server.parameters()["host"], database="nowhere")
    assert isinstance(refused(url, caplog), StoreNotFoundError)


def test_a_user_that_may_not_create_is_told(caplog):
    url = server.at(server.parameters()["host"], user="guest", schema="not_theirs")
    with pytest.raises(PermissionDeniedError, match="permission denied"):
        PostgresStore.open(url)


# -- a fork -------------------------------------------------------------------------------------------


def test_a_child_lets_the_parents_connections_be(connections):
    before = backend(connections)
    pool = connections._pool
    connections.after_fork()
    assert backend(connections) != before
    connections._pool.close()
    connections._pool = pool
    assert backend(connections) == before


def test_a_child_of_a_closed_store_is_closed_too(connections):
    connections.close()
    connections.after_fork()
    with pytest.raises(StoreClosedError):
        backend(connections)


def test_a_server_of_ours_that_dies_just_as_it_is_asked_is_asked_again(monkeypatch):
    connect, faults = psycopg.connect, [psycopg.OperationalError("server closed the connection unexpectedly")]

    def dying(conninfo):
        if faults:
            raise faults.pop()
        return connect(conninfo)

    monkeypatch.setattr(psycopg, "connect", dying)
    address = read_address(f"postgresql+embedded:{server.embedded_folder()}")
    connections = Connections(address, read_only=False, create=True)
    assert faults == [] and connections.persist(lambda one: one.read(one.ask("select 1"))) == [(1,)]
    connections.close()


def test_a_server_of_somebody_else_that_is_away_is_told_at_once(monkeypatch):
    def away(conninfo):
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg, "connect", away)
    with pytest.raises(CheckpointReadError, match="cannot be reached"):
        Connections(read_address(server.url()), read_only=False, create=True)
