"""What is sent as a binary array is what the server takes out of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.postgres import arrays
from holdfast.adapters.postgres.connection import Connection
from tests.adapters.postgres import server

#: What `text` can hold.
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@pytest.fixture(scope="module")
def connection():
    with Connection.connect(**server.parameters()) as connection:
        yield connection


def returned(connection, array, kind):
    [(found,)] = connection.read(connection.ask(f"select array(select * from unnest($1::{kind}[]))", [array]))
    return found


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


@given(TEXTS | st.none(), NUMBERS | st.none(), st.booleans(), st.integers(2, 5))
def test_columns_of_one_value_arrive_as_often_as_it_stands_there(connection, text, number, flag, count):
    for value, encode, kind in (
        (text, arrays.text_array, "text"),
        (number, arrays.int8_array, "bigint"),
        (flag, arrays.bool_array, "boolean"),
    ):
        assert returned(connection, encode([value] * count), kind) == [value] * count
