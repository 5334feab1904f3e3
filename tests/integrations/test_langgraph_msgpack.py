"""What the serializer wrote is opened and closed again, to the byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Interrupt, Send

from holdfast.integrations.langgraph_msgpack import closed, opened

SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)
trees = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.text(max_size=5), st.binary(max_size=5)
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(trees)
def test_what_is_opened_is_closed_to_the_same_bytes(tree: Any):
    data = SERDE.dumps_typed({"of": tree})[1]
    assert closed(opened(data)) == data


@pytest.mark.parametrize(
    "value",
    [Command(resume="yes"), Send("node", {"a": (1, 2)}), Interrupt("sure?", id="1")],
    ids=lambda v: type(v).__name__,
)
def test_objects_are_opened(value: Any):
    data = SERDE.dumps_typed(value)[1]
    tree = opened(data)
    assert type(tree) is dict and closed(tree) == data
    assert type(SERDE.loads_typed(("msgpack", closed(tree)))) is type(value)


def test_texts_in_it_are_texts():
    assert "a-secret" in repr(opened(SERDE.dumps_typed(Command(resume="a-secret"))[1]))


def test_what_is_no_packed_data_stays_what_it_is():
    assert opened(b"\xc1 nothing") == b"\xc1 nothing" == closed(b"\xc1 nothing")
