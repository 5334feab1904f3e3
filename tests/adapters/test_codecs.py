"""Three encodings, one tree: everything comes back from each, in order, and nothing but plain data."""

from __future__ import annotations

import struct
import sys
from typing import Any

import cbor2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.adapters.codecs import NAMES, codec
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.domain.errors import CheckpointCorruptError, ConfigError, UnstorableValueError
from tests.values import CONFUSABLE, depth_of, fingerprint, nested, plain_trees, registry, values

TYPES = registry()
PACKER = OrmsgpackPacker(TYPES)

every_codec = pytest.mark.parametrize("name", NAMES)


@every_codec
@given(value=values)
def test_every_value_comes_back_through_packer_and_codec(name: str, value: Any) -> None:
    plain = PACKER.unpack(PACKER.pack(value))
    data = codec(name).encode(plain)
    assert codec(name).encode(plain) == data
    assert fingerprint(codec(name).decode(data)) == fingerprint(plain)
    assert fingerprint(TYPES.revive(codec(name).decode(data))) == fingerprint(value)


@every_codec
@pytest.mark.parametrize("row", CONFUSABLE)
def test_values_that_look_alike_come_back_apart(name: str, row: list[Any]) -> None:
    for value in row:
        plain = PACKER.unpack(PACKER.pack(value))
        back = TYPES.revive(codec(name).decode(codec(name).encode(plain)))
        assert PACKER.pack(back) == PACKER.pack(value)


@every_codec
def test_the_order_of_keys_survives(name: str) -> None:
    plain = {"zz": 1, "a": {"y": 1, "b": 2, "": 3}, "m": 2}
    back = codec(name).decode(codec(name).encode(plain))
    assert list(back) == ["zz", "a", "m"]
    assert list(back["a"]) == ["y", "b", ""]


@every_codec
@pytest.mark.parametrize(
    "bits",
    ["7ff8000000000000", "fff8000000000000", "7ff8000000000001", "ffffffffffffffff", "7ff0000000000001"],
)
def test_the_bits_of_a_nan_survive(name: str, bits: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    for plain in ([number, float("nan"), 1.5, float("inf")], nested(300, number)):
        data = codec(name).encode(plain)
        back = codec(name).decode(data)
        assert struct.pack(">d", _bottom(back)).hex() == bits
        assert codec(name).encode(back) == data


def test_the_usual_nan_and_the_infinities_are_short_in_cbor() -> None:
    odd = -float("nan")
    assert codec("cbor").encode(float("nan")).hex() == "f97e00"
    assert codec("cbor").encode([float("inf"), float("nan"), odd, float("-inf")]) == bytes.fromhex(
        "84f97c00f97e00fbfff8000000000000f9fc00"
    )


def _bottom(value: Any) -> Any:
    while type(value) in (list, dict):
        value = value[0] if type(value) is list else value["k"]
    return value


@every_codec
@pytest.mark.parametrize("depth", [250, 256, 399, 401, 2_000, 10_000])
def test_deep_trees_come_back(name: str, depth: int) -> None:
    assert depth_of(codec(name).decode(codec(name).encode(nested(depth)))) == depth


@every_codec
def test_a_cycle_is_refused(name: str) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(UnstorableValueError):
        codec(name).encode(cycle)


@every_codec
def test_trailing_and_missing_bytes_are_refused(name: str) -> None:
    data = codec(name).encode({"a": [1, "text", b"bytes", 2.5, None]})
    for damaged in (data + b"\x01", data[:-1], b""):
        with pytest.raises(CheckpointCorruptError):
            codec(name).decode(damaged)


@every_codec
@given(data=st.binary(max_size=60))
def test_random_bytes_give_plain_data_or_are_refused(name: str, data: bytes) -> None:
    try:
        plain = codec(name).decode(data)
    except CheckpointCorruptError:
        return
    codec(name).encode(plain)


@pytest.mark.sweep
@given(plain_trees)
def test_deep_cbor_has_the_bytes_of_the_library(plain: Any) -> None:
    # To the library all NaNs are one.
    assume(b"\xf9\x7e\x00" not in cbor2.dumps(plain))
    deep = codec("cbor").encode([nested(300), plain])
    assert deep.endswith(cbor2.dumps(plain))
    assert fingerprint(codec("cbor").decode(deep)[1]) == fingerprint(plain)


@pytest.mark.parametrize(
    "data",
    [
        cbor2.dumps(cbor2.CBORTag(0, "2013-03-21T20:04:00Z")),
        cbor2.dumps(cbor2.CBORTag(35, "(a+)+")),
        cbor2.dumps(cbor2.CBORTag(123_456, 1)),
        bytes.fromhex("d81c81d81d00"),
        bytes.fromhex("c24101"),
        bytes.fromhex("f7"),
        bytes.fromhex("f0"),
        bytes.fromhex("a10102"),
        bytes.fromhex("a14161 02".replace(" ", "")),
        bytes.fromhex("a2616101616102"),
        bytes.fromhex("9f01ff"),
        bytes.fromhex("9b000000ffffffffff"),
        bytes.fromhex("5b000000ffffffffff"),
        b"\x81" * 50_000 + b"\x80",
    ],
    ids=lambda data: data[:9].hex(),
)
def test_cbor_that_is_more_than_plain_data_is_refused(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        codec("cbor").decode(data)


def test_a_repeated_key_in_messagepack_is_refused() -> None:
    with pytest.raises(CheckpointCorruptError):
        codec("msgpack").decode(b"\x82\xa1a\x01\xa1a\x02")


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(ConfigError, match="json, msgpack, cbor"):
        codec("pickle")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cbor2", None)
    with pytest.raises(ConfigError, match=r"holdfast\[cbor\]"):
        codec("cbor")
