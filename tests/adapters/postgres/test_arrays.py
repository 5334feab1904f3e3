"""What is sent as a binary array is what the server takes out of it."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.postgres import arrays
from tests.adapters.postgres import server

#: What `text` can hold.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def connection():
    with psycopg.connect(**server.parameters(), context=arrays.Adapting) as connection:
        yield connection


def returned(connection, array, kind):
    return connection.execute(f"select array(select * from unnest(%s::{kind}[]))", [array]).fetchone()[0]


@given(st.lists(TEXTS | st.none(), max_size=8))
def test_texts_arrive_as_they_are(connection, values):
    assert returned(connection, arrays.text_array(values), "text") == values


@given(st.lists(st.binary(max_size=20) | st.none(), max_size=8))
def test_bytes_arrive_as_they_are(connection, values):
    assert returned(connection, arrays.bytes_array(values), "bytea") == values


@given(st.lists(NUMBERS | st.none(), max_size=8))
def test_numbers_arrive_as_they_are(connection, values):
    assert returned(connection, arrays.int8_array(values), "bigint") == values


@given(st.lists(st.booleans(), max_size=8))
def test_flags_arrive_as_they_are(connection, values):
    assert returned(connection, arrays.bool_array(values), "boolean") == values


def test_numbers_of_any_size_are_one_type(connection):
    kinds = {connection.execute("select pg_typeof(%s)::text", [n]).fetchone()[0] for n in (1, 2**20, 2**40)}
    assert kinds == {"bigint"}
