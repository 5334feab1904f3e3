"""The packer: equal bytes exactly when values are the same, whatever way they were packed."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.domain import msgpack
from holdfast.domain.errors import CheckpointCorruptError, UnstorableValueError, UnsupportedTypeError
from holdfast.domain.plain import NESTED_SETS_MAX, Plain, TypeRegistry, to_plain
from tests.values import CONFUSABLE, Invoice, depth_of, fingerprint, nested, nested_sets, registry, values

TYPES = registry()
PACKER = OrmsgpackPacker(TYPES)


@pytest.mark.sweep
@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert fingerprint(TYPES.revive(PACKER.unpack(PACKER.pack(value)))) == fingerprint(value)


@pytest.mark.sweep
@given(values)
def test_the_fast_way_gives_the_bytes_of_the_exact_way(value: Any) -> None:
    assert PACKER.pack(value) == msgpack.pack(to_plain(value, TYPES))


@pytest.mark.sweep
@given(values)
def test_a_plain_tree_is_packed_as_it_is(value: Any) -> None:
    data = PACKER.pack(value)
    assert PACKER.pack(Plain(PACKER.unpack(data))) == data


@pytest.mark.parametrize("row", CONFUSABLE)
def test_values_that_look_alike_have_different_bytes(row: list[Any]) -> None:
    assert len({PACKER.pack(value) for value in row}) == len(row)
    assert len({PACKER.pack({"in": [value]}) for value in row}) == len(row)


@pytest.mark.parametrize(
    "value",
    [
        {"$hf": "datetime", "v": "2026-01-11"},
        ["$hf"],
        [(1,), "$hf"],
        [(1,), {"$hf": "tuple", "v": [1]}],
        {"$hf": {"$hf": {"$hf": 1}}},
        b"\xa3$hf",
        "$" * 500 + "\xa3$hf",
        "$" * 500,
        {"price": "$5", "$": 1, "$h": 2, "$hfx": 3},
        Invoice(1, [{"$hf": "blob"}]),
    ],
    ids=repr,
)
def test_data_that_looks_like_a_tag_stays_data(value: Any) -> None:
    assert fingerprint(TYPES.revive(PACKER.unpack(PACKER.pack(value)))) == fingerprint(value)


def test_nan_is_the_same_twice() -> None:
    assert PACKER.pack([float("nan")]) == PACKER.pack([float("nan")])


@pytest.mark.sweep
@pytest.mark.parametrize("depth", [254, 255, 256, 1_100, 2_000, 9_999])
def test_deep_values_come_back(depth: int) -> None:
    assert depth_of(PACKER.unpack(PACKER.pack(nested(depth)))) == depth
    assert depth_of(TYPES.revive(PACKER.unpack(PACKER.pack(nested(depth - 5, (1, 2)))))) == depth - 5


def test_cycles_and_too_deep_values_are_refused_with_a_path() -> None:
    cycle: dict[str, Any] = {"a": (1,)}
    cycle["me"] = [cycle]
    with pytest.raises(UnstorableValueError) as refused:
        PACKER.pack({"state": cycle})
    assert refused.value.place == "state.me[0]"
    with pytest.raises(UnstorableValueError):
        PACKER.pack(nested(20_000))


def test_an_unsupported_type_is_named_with_its_path() -> None:
    with pytest.raises(UnsupportedTypeError) as refused:
        PACKER.pack({"a": [(1, {"b": OrderedDict()})]})
    assert refused.value.place == "a[0][1].b"


def test_a_set_of_odd_items_has_one_order() -> None:
    items = ["$hf", ("$hf", 1), 1, "b", b"b", frozenset({"x", 2})]
    assert PACKER.pack(set(items)) == PACKER.pack(set(reversed(items)))


class Odd:
    """Nothing is known of it but its class."""


@pytest.mark.parametrize("beside", ["", 2**70], ids=["the fast way", "the exact way"])
def test_sets_in_sets_cost_each_of_their_items_once(beside: Any) -> None:
    seen = []
    types = TypeRegistry()
    types.register(Odd, encode=lambda odd: seen.append(odd), decode=lambda _: Odd())
    OrmsgpackPacker(types).pack([nested_sets(12, Odd()), beside])
    assert len(seen) <= 2


@pytest.mark.parametrize("beside", ["", 2**70], ids=["the fast way", "the exact way"])
def test_sets_are_nested_as_deep_either_way(beside: Any) -> None:
    value = [nested_sets(NESTED_SETS_MAX), nested_sets(NESTED_SETS_MAX), beside]
    assert PACKER.pack(value) == msgpack.pack(to_plain(value, TYPES))
    with pytest.raises(UnstorableValueError, match="sets are nested deeper") as refused:
        PACKER.pack([beside, nested_sets(NESTED_SETS_MAX + 1)])
    assert refused.value.place.startswith("[1][")


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\xa5ab", b"\xd4\x01\x00", b"\x91" * 20_000])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        PACKER.unpack(data)


def test_packing_survives_threads_that_change_the_value() -> None:
    """A hook that runs Python inside the C encoder would crash the process here."""
    shared: list[Any] = []
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            shared[:] = [(number, {"list": [number] * 5}) for number in range(200)]
            shared.clear()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        lengths = {len(PACKER.unpack(PACKER.pack({"shared": shared}))["shared"]) for _ in range(500)}
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert lengths <= {0, 200}
