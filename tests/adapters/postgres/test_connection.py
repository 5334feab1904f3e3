"""Values arrive as what they are, and a statement that is asked again is prepared."""

from __future__ import annotations

import enum
import struct

import psycopg
import pytest
from psycopg import errors

from holdfast.adapters.postgres import connection as connections
from holdfast.adapters.postgres.arrays import int8_array
from holdfast.adapters.postgres.connection import Connection
from tests.adapters.postgres import server

NAMES = "select name, statement from pg_prepared_statements order by name"


class Word(enum.StrEnum):
    SAID = "said"


@pytest.fixture
def connection():
    with Connection.connect(**server.parameters(), autocommit=True, prepare_threshold=None) as connection:
        yield connection


def answered(connection, query, *values):
    return connection.read(connection.ask(query, values))


def prepared(connection):
    return [statement for _, statement in connection.execute(NAMES).fetchall()]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "caf\u00e9"),
        ("bytea", b"\0\xff"),
        ("bigint", 2**40),
        ("bigint", -1),
        ("boolean", True),
        ("boolean", False),
        ("text[]", ["a", "b"]),
        ("text", None),
    ],
)
def test_a_value_arrives_as_it_is(connection, kind, value):
    for _ in range(3):
        assert answered(connection, f"select $1::{kind}", value) == [(value,)]
        [row] = connection.read(connection.send(f"select $1::{kind}", [value]))
        assert row == (value,)


def test_a_value_of_a_type_that_inherits_is_sent_as_what_it_inherits(connection):
    assert answered(connection, "select $1::text", Word.SAID) == [("said",)]


def test_a_value_that_nothing_is_known_of_is_refused_before_it_is_sent(connection):
    with pytest.raises(TypeError, match="complex"):
        connection.ask("select $1", [1j])
    with pytest.raises(struct.error):
        connection.ask("select $1", [2**63])
    assert answered(connection, "select 1") == [(1,)]


def test_an_array_has_the_type_of_its_items(connection):
    assert answered(connection, "select $1", int8_array([1, None])) == [([1, None],)]


def test_numbers_of_any_size_are_one_statement(connection):
    for number in (1, 2**20, 2**40):
        assert answered(connection, "select pg_typeof($1)::text", number) == [("bigint",)]
    assert prepared(connection) == ["select pg_typeof($1)::text"]


def test_what_is_asked_once_is_not_prepared_and_what_is_sent_is(connection):
    answered(connection, "select 1")
    assert prepared(connection) == []
    answered(connection, "select 1")
    connection.send("select 2", [])
    assert prepared(connection) == ["select 1", "select 2"]


def test_a_transaction_that_is_undone_forgets_nothing(connection):
    for _ in range(3):
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.send("select 2", [])
            connection.ask("select 1/0")
    assert "select 2" in prepared(connection)


def test_more_statements_than_are_remembered_are_forgotten_together(connection, monkeypatch):
    monkeypatch.setattr(connections, "PREPARED_MAX", 3)
    for _ in range(2):
        for number in range(5):
            connection.send(f"select {number}", [])
    assert len(prepared(connection)) <= 3


def test_a_statement_that_is_refused_raises_and_the_connection_goes_on(connection):
    for _ in range(3):
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.ask("select 1 / $1", [0])
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.send("select * from nowhere", [])
    assert answered(connection, "select 1") == [(1,)]


def test_a_connection_that_was_ended_raises_and_is_closed(connection):
    [(pid,)] = answered(connection, "select pg_backend_pid()")
    with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
        administrator.execute("select pg_terminate_backend(%s, 10000)", [pid])
    with pytest.raises(psycopg.OperationalError):
        connection.ask("select 1")
    assert connection.closed


@pytest.mark.parametrize(
    ("at_commit", "expected"),
    [
        ("raise exception 'not this one'", errors.RaiseException),
        ("perform pg_terminate_backend(pg_backend_pid())", psycopg.OperationalError),
    ],
)
def test_what_fails_after_its_rows_were_answered_is_no_success(connection, at_commit, expected):
    connection.execute("create temporary table late (n int)")
    body = f"begin {at_commit}; return null; end"
    connection.execute(f"create function pg_temp.late() returns trigger language plpgsql as $$ {body} $$")
    connection.execute(
        "create constraint trigger late after insert on late deferrable initially deferred "
        "for each row execute function pg_temp.late()"
    )
    with pytest.raises(expected):
        connection.ask("insert into late values ($1) returning n", [1])
