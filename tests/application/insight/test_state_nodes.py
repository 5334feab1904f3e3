"""Nodes of a state: walking all of them gives the state again, and what is shown is always JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.state_nodes import (
    PREVIEW_CHARS,
    VALUE_BYTES_MAX,
    children_of,
    count_below,
    kind_of,
    node_at,
    preview,
)
from holdfast.domain import plainjson
from holdfast.domain.pointer import look_up, parse_pointer

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | TEXT
    | st.binary()
    | st.just("long " * 200),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(TEXT, inner, max_size=5)
        | st.builds(lambda value: {"$hf": "tuple", "v": value}, st.lists(inner, max_size=3))
    ),
    max_leaves=30,
)


def walked(value: Any, pointer: tuple[str, ...], limit: int) -> Any:
    """Put a value together again from its nodes alone."""
    node = node_at(value, pointer)
    if node.value is not None:
        return json.loads(node.value)
    below, after = list[Any](), 0
    while after < count_below(value):
        found = list(children_of(value, pointer, after, limit))
        below += found
        after += len(found)
    if not below:
        # Long texts and bytes have nothing below; they are asked for as they are.
        return json.loads(plainjson.dumps(value))
    inner = [(one.key, walked(value[one.key], parse_pointer(one.pointer), limit)) for one in below]
    return [item for _, item in inner] if node.kind == "array" else dict(inner)


@given(PLAIN, st.integers(1, 4))
def test_walking_all_nodes_gives_the_value_again(value: Any, limit: int) -> None:
    assert walked(value, (), limit) == json.loads(plainjson.dumps(value))


@given(PLAIN)
def test_a_node_is_told_in_a_few_characters_and_found_by_its_pointer(value: Any) -> None:
    tree = {"a/b": {"~": [value]}}
    [child] = children_of(look_up(tree, ("a/b", "~")), ("a/b", "~"), 0, 9)
    assert look_up(tree, parse_pointer(child.pointer)) is value
    assert child.pointer == "/a~1b/~0/0" and child.key == 0
    assert len(child.preview) <= PREVIEW_CHARS
    assert (child.value is not None) == (child.size_bytes <= VALUE_BYTES_MAX)
    child.preview.encode()


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        ({}, "object", "{}"),
        ({"a": 1, "b": 2}, "object", "{2} a, b"),
        (dict.fromkeys("abcdefgh"), "object", "{8} a, b, c, d, e, f ..."),
        ([], "array", "[]"),
        ([1, 2], "array", "[2] 1 ..."),
        ("text", "string", '"text"'),
        (True, "boolean", "true"),
        (None, "null", "null"),
        (1.5, "number", "1.5"),
        (b"\x00\xff", "bytes", "00ff"),
        ({"$hf": "datetime", "v": "2026"}, "datetime", 'datetime "2026"'),
        ({"$hf": "tuple", "v": [1]}, "tuple", '{"$hf":"tuple","v":[1]}'),
        ({"$hf": 7}, "object", '{"$hf":7}'),
    ],
)
def test_a_value_is_known_by_its_kind_and_a_preview(value: Any, kind: str, shown: str) -> None:
    assert (kind_of(value), preview(value)) == (kind, shown)


def test_what_is_large_or_deep_is_previewed_without_being_written() -> None:
    deep: Any = "bottom"
    for _ in range(5_000):
        deep = [deep]
    assert preview(deep) == "[1] [[[[]]]]"
    assert preview("x" * 10_000_000).endswith("...")
    assert preview({"k" * 1_000_000: 1}).endswith("...")
    assert preview(b"x" * 10_000_000).endswith("...")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"role": "user", "content": "hello"}, "user: hello"),
        ({"type": "ai", "content": [{"text": "so"}, {"type": "image"}, "on", None]}, "ai: so [image] on"),
        ({"role": "ai", "content": None, "tool_calls": [{"name": "pay"}, {}, 1]}, "ai: -> pay() -> tool()"),
        ({"role": "ai", "content": 5}, "ai: 5"),
        ([{"role": "user", "content": "hello"}, 1], "[2] user: hello ..."),
        ({"role": 1, "content": "x"}, "{2} role, content"),
        ({"content": "x"}, "{1} content"),
        ({"role": "user", "content": "x" * 500}, f"user: {'x' * (PREVIEW_CHARS - 9)}..."),
    ],
)
def test_a_message_is_shown_as_who_says_what(value: Any, shown: str) -> None:
    assert preview(value) == shown
