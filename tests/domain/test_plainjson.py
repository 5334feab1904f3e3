"""JSON for people and tools: compact, in order, lossless, and strict about what it reads."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, UnstorableValueError, UnsupportedTypeError
from holdfast.domain.plain import to_plain
from holdfast.domain.plainjson import as_json_tree, dumps, loads, loads_object
from tests.values import depth_of, fingerprint, nested, plain_trees, registry, values

TYPES = registry()


@given(plain_trees)
def test_plain_trees_come_back_as_they_were(plain: Any) -> None:
    data = dumps(plain)
    assert fingerprint(loads(data)) == fingerprint(plain)
    assert fingerprint(loads(data, strict=True)) == fingerprint(plain)
    json.loads(data, parse_constant=pytest.fail)


@given(values)
def test_tagged_trees_come_back_as_they_were(value: Any) -> None:
    plain = to_plain(value, TYPES)
    assert fingerprint(loads(dumps(plain))) == fingerprint(plain)


def test_the_text_is_compact_utf8_in_the_order_of_the_value() -> None:
    assert dumps({"b": [1, 2.5, None, True], "a": "ä\n"}) == '{"b":[1,2.5,null,true],"a":"ä\\n"}'.encode()


def test_what_json_lacks_is_tagged() -> None:
    assert dumps([b"ab"]) == b'[{"$hf":"bytes","v":"YWI="}]'
    assert dumps({"x": [math.inf, -math.inf]}) == (
        b'{"x":[{"$hf":"float","v":"inf"},{"$hf":"float","v":"-inf"}]}'
    )
    assert dumps([math.nan, b"ab"]) == b'[{"$hf":"float","v":"nan"},{"$hf":"bytes","v":"YWI="}]'


def test_a_huge_integer_does_not_crash() -> None:
    huge = 7**10_000
    assert TYPES.revive(loads(dumps([huge, -huge]))) == [huge, -huge]


def test_tagging_leaves_the_tree_as_it_was() -> None:
    tree = {"a": [math.inf]}
    dumps(tree)
    assert tree == {"a": [math.inf]}


@pytest.mark.parametrize(
    "bottom", ["text", b"bytes", math.inf, [], {}, {"a": [1, {"b": None}, 2], "c": -1.5e10}]
)
def test_deep_trees_come_back_in_the_same_bytes(bottom: Any) -> None:
    shallow = dumps(nested(4, bottom))
    core = shallow.removeprefix(b'[{"k":[{"k":').removesuffix(b"}]}]")
    assert dumps(nested(2_000, bottom)) == b'[{"k":' * 1_000 + core + b"}]" * 1_000
    back: Any = loads(dumps(nested(2_000, bottom)))
    for _ in range(1_000):
        back = back[0]["k"]
    assert fingerprint(back) == fingerprint(bottom)


def test_a_tree_at_the_limit_comes_back() -> None:
    assert depth_of(loads(dumps(nested(10_000)))) == 10_000


def test_what_is_not_plain_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(UnstorableValueError):
        dumps(cycle)
    with pytest.raises(UnstorableValueError, match="surrogates"):
        dumps(["\ud800"])
    with pytest.raises(UnsupportedTypeError):
        dumps([object()])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1,]",
        b"[1] 2",
        b"[NaN]",
        b"[Infinity]",
        b"[-Infinity]",
        b'{"a":1,}',
        b'["\\ud800"]',
        b'["\\uDFFF"]',
        b'"\xff"',
        b"[01]",
        b"1" * 5_000,
        b'{"$hf":"bytes","v":"?"}',
        b'{"$hf":"bytes"}',
        b'{"$hf":"bytes","v":7}',
        b'{"$hf":"float","v":"1.5"}',
        b'{"$hf":"float","v":[]}',
        b"[" * 100_000,
        b"[" * 11_002 + b"]" * 11_002,
        b'{"a":' * 2_000 + b"1" + b"}" * 1_999,
        b"[" * 2_000 + b"NaN" + b"]" * 2_000,
        b"[" * 2_000 + b"1,," + b"]" * 2_000,
        b"[" * 2_000 + b"]" * 2_000 + b"x",
        b"[" * 2_000 + b'"\\ud800"' + b"]" * 2_000,
        b"[" * 2_000 + b'{"a":1,"a":2}' + b"]" * 2_000,
        b"[" * 2_000 + b'{"a" 1}' + b"]" * 2_000,
        b"[" * 2_000 + b"{1:1}" + b"]" * 2_000,
        b"[" * 2_000 + b"1}" + b"]" * 1_999,
    ],
    ids=lambda data: data[-12:].hex(),
)
def test_bytes_that_are_not_our_json_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        loads(data)


def test_a_key_that_stands_twice_is_refused_when_strict() -> None:
    with pytest.raises(CheckpointCorruptError, match="'a' stands twice"):
        loads(b'{"b":{"a":1,"a":1}}', strict=True)


def test_spaces_are_allowed_however_deep() -> None:
    assert loads(b' { "a" : [ 1 , { "$hf" : "bytes" , "v" : "YQ==" } ] } ') == {"a": [1, b"a"]}
    assert depth_of(loads(b"[ " * 2_000 + b"1 , 2" + b" ]" * 2_000)) == 2_000


@pytest.mark.sweep
@given(st.recursive(plain_trees, lambda inner: st.lists(inner, max_size=2), max_leaves=3))
def test_the_slow_reader_agrees_with_the_fast_one(plain: Any) -> None:
    data = b"[" * 1_500 + dumps(plain) + b"]" * 1_500
    back: Any = loads(data)
    for _ in range(1_500):
        (back,) = back
    assert fingerprint(back) == fingerprint(plain)


def test_every_nan_keeps_its_bits():
    for bits in ("7ff8000000000000", "7ff8000000000001", "fff8000000000000", "7ff0000000000001"):
        (value,) = struct.unpack(">d", bytes.fromhex(bits))
        assert struct.pack(">d", loads(dumps([value]))[0]).hex() == bits


def test_values_that_json_has_no_word_for_are_tagged_in_a_tree_for_json() -> None:
    assert as_json_tree({"b": b"\x00", "n": float("nan"), "i": 2**70}) == {
        "b": {"$hf": "bytes", "v": "AA=="},
        "n": {"$hf": "float", "v": "nan"},
        "i": {"$hf": "int", "v": hex(2**70)},
    }
    deep = nested(5_000)
    assert as_json_tree(deep) is deep


def test_an_infinity_beside_a_text_that_looks_like_an_escape_is_read() -> None:
    plain = {"text": '"\\ud800"', "n": float("inf")}
    assert loads(dumps(plain)) == plain


def test_an_object_is_read_however_deep_and_nothing_else_is_one() -> None:
    deep = {"deep": nested(3_000, 1)}
    assert dumps(loads_object(dumps(deep))) == dumps(deep)
    for data in (b"[]", b"null", b"{", b"[" * 100_000):
        with pytest.raises(CheckpointCorruptError):
            loads_object(data)
