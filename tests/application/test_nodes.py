"""The parts of a snapshot know their size and share what did not change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.nodes import (
    ListNode,
    NodeReader,
    ObjectNode,
    is_tagged,
    may_be_tagged,
    plain_of,
    value_at,
)
from holdfast.domain.plain import Plain
from tests.values import fingerprint, registry, values

PACKER = OrmsgpackPacker(registry())
READER = NodeReader(PACKER)

LARGE_OBJECT = {f"key {number}": ["x" * 50] * 3 for number in range(100)}
LARGE_LIST = [{"n": number, "text": "y" * 40} for number in range(300)]


@pytest.mark.parametrize(
    "value", [LARGE_OBJECT, LARGE_LIST, {"a": LARGE_LIST, "é" * 40: LARGE_OBJECT}, [[0] * 9_000]]
)
def test_the_size_of_a_split_value_is_that_of_its_packed_bytes(value: Any) -> None:
    node = READER.node(value, None, None, 0)
    assert not isinstance(node, bytes)
    assert len(node) == len(PACKER.pack(value))
    assert plain_of(node, PACKER) == value


@given(values)
def test_any_value_decodes_to_its_plain_tree(value: Any) -> None:
    node = READER.node(value, None, None, 0)
    assert fingerprint(plain_of(node, PACKER)) == fingerprint(PACKER.unpack(PACKER.pack(value)))


@pytest.mark.parametrize("value", [LARGE_OBJECT, LARGE_LIST])
def test_a_value_that_did_not_change_is_the_same_node(value: Any) -> None:
    node = READER.node(value, None, None, 0)
    assert READER.node(value, node, None, 0) is node


def test_what_did_not_change_is_shared() -> None:
    before = READER.node(LARGE_LIST, None, None, 0)
    after = READER.node([*LARGE_LIST, 1], before, None, 0)
    assert isinstance(before, ListNode)
    assert isinstance(after, ListNode)
    assert all(new is old for new, old in zip(after.chunks[:-1], before.chunks, strict=False))


def test_large_items_make_small_chunks() -> None:
    node = READER.node(["x" * 6_000] * 10, None, None, 0)
    assert isinstance(node, ListNode)
    assert node.step == 1


def test_keys_that_need_a_tag_make_a_leaf() -> None:
    base = READER.node(LARGE_OBJECT, None, None, 0)
    assert isinstance(base, ObjectNode)
    for key in ("$hf", 1, "\ud800", ("a",)):
        node = READER.node({**LARGE_OBJECT, key: 1}, base, None, 0)
        assert isinstance(node, bytes)
        assert is_tagged(node)


def test_a_reordered_object_is_another_node() -> None:
    base = READER.node(LARGE_OBJECT, None, None, 0)
    node = READER.node(dict(reversed(LARGE_OBJECT.items())), base, None, 0)
    assert node is not base
    assert list(plain_of(node, PACKER)) == list(reversed(LARGE_OBJECT))


def test_a_tagged_object_is_recognised_by_its_bytes() -> None:
    assert is_tagged(PACKER.pack((1, 2)))
    assert not is_tagged(PACKER.pack({"a": 1}))
    assert not is_tagged(PACKER.pack(Plain({})))
    assert not is_tagged(PACKER.pack("$hf"))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (["list", 290, "text"], LARGE_LIST[290]["text"]),
        (["list", 7], LARGE_LIST[7]),
        (["object", "key 3", 1], "x" * 50),
        (["object"], LARGE_OBJECT),
        (["small", "a", 1, "b"], "found"),
        ([], None),
    ],
)
def test_a_value_is_found_by_its_path(path: list[Any], wanted: Any) -> None:
    tree = {"list": LARGE_LIST, "object": LARGE_OBJECT, "small": {"a": [0, {"b": "found"}]}}
    node = READER.node(tree, ObjectNode({}), None, 0)
    assert value_at(node, path, PACKER) == (tree if wanted is None else wanted)


@given(st.lists(values, max_size=6), st.lists(values, max_size=6), st.integers(0, 320))
def test_a_list_that_was_looked_through_is_read_as_if_it_had_not_been(
    come: list[Any], more: list[Any], at: int
) -> None:
    base = READER.node(LARGE_LIST, None, None, 0)
    assert isinstance(base, ListNode) and not may_be_tagged(base)
    now = LARGE_LIST[:at] + come + LARGE_LIST[at:] + more
    known, fresh = READER.node(now, base, None, 0), READER.node(now, None, None, 0)
    assert PACKER.pack_plain(plain_of(known, PACKER)) == PACKER.pack_plain(plain_of(fresh, PACKER))
    assert may_be_tagged(known) == may_be_tagged(fresh)


def test_data_that_looks_like_a_tag_is_found_where_there_was_none() -> None:
    base = READER.node(LARGE_LIST, None, None, 0)
    assert not may_be_tagged(base)
    now = [*LARGE_LIST[:-1], {"$hf": "tuple", "v": []}]
    node = READER.node(now, base, None, 0)
    assert may_be_tagged(node)
    assert plain_of(node, PACKER)[-1] == {"$hf": "dict", "v": [["$hf", "tuple"], ["v", []]]}


class Named(str):
    """A text of a type of its own."""


def test_a_key_that_only_equals_a_text_is_no_text_in_a_split_object_either() -> None:
    types = registry()
    types.register(Named, encode=str.__str__, decode=Named)
    packer = OrmsgpackPacker(types)
    reader = NodeReader(packer)
    before = reader.node(LARGE_OBJECT, None, None, 0)
    named = {Named(key): value for key, value in LARGE_OBJECT.items()}
    after = types.revive(plain_of(reader.node(named, before, None, 0), packer))
    assert {type(key) for key in after} == {Named}
