"""The registry and the exact walk: every value comes back as it was, or is refused with its path."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from hypothesis import given

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointSchemaError,
    ConfigError,
    UnstorableValueError,
    UnsupportedTypeError,
    UnsupportedVersionError,
)
from holdfast.domain.msgpack import pack
from holdfast.domain.plain import NESTED_SETS_MAX, TypeRegistry, to_plain
from tests.values import (
    CONFUSABLE,
    Color,
    Invoice,
    Moon,
    depth_of,
    fingerprint,
    nested,
    nested_sets,
    registry,
    values,
)

TYPES = registry()


class Odd:
    """Nothing is known of it but its class."""


@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert fingerprint(TYPES.revive(to_plain(value, TYPES))) == fingerprint(value)


@pytest.mark.parametrize("row", CONFUSABLE)
def test_values_that_look_alike_have_different_trees(row: list[Any]) -> None:
    packed = [pack(to_plain(value, TYPES)) for value in row]
    assert len(set(packed)) == len(row)


@pytest.mark.parametrize("value", [value for row in CONFUSABLE for value in row], ids=repr)
def test_confusable_values_come_back_as_they_were(value: Any) -> None:
    assert fingerprint(TYPES.revive(to_plain([value], TYPES))) == fingerprint([value])


def test_tags_are_those_of_the_format() -> None:
    state = {"at": datetime(2026, 1, 11, 14, tzinfo=UTC), "who": Color.RED, "pair": (1, 2), "$hf": 1}
    assert to_plain(state, TYPES) == {
        "$hf": "dict",
        "v": [
            ["at", {"$hf": "datetime", "v": "2026-01-11T14:00:00+00:00"}],
            ["who", {"$hf": "enum", "t": "Color", "v": "RED"}],
            ["pair", {"$hf": "tuple", "v": [1, 2]}],
            ["$hf", 1],
        ],
    }
    assert to_plain(Invoice(7), TYPES) == {"$hf": "obj", "t": "Invoice", "v": {"number": 7, "lines": []}}
    assert to_plain({1: 2}, TYPES) == {"$hf": "map", "v": [[1, 2]]}
    assert to_plain(timedelta(1, 2, 3), TYPES) == {"$hf": "timedelta", "v": [1, 2, 3]}


def test_sets_have_one_order() -> None:
    first, second = {"b", "a", "ccc"}, {"ccc", "a", "b"}
    assert to_plain(first, TYPES) == to_plain(second, TYPES)


def test_sets_in_sets_have_one_order_and_cost_each_of_their_items_once() -> None:
    seen = []
    types = TypeRegistry()
    types.register(Odd, encode=lambda odd: seen.append(odd), decode=lambda _: Odd())
    plain = to_plain(nested_sets(12, Odd()), types)
    assert len(seen) == 1
    assert pack(plain) == pack(to_plain(types.revive(plain), types))


def test_sets_are_nested_as_deep_as_the_page_says_and_no_deeper() -> None:
    value = nested_sets(NESTED_SETS_MAX)
    assert TYPES.revive(to_plain([value, value], TYPES)) == [value, value]
    for depth in (NESTED_SETS_MAX + 1, 2_000):
        with pytest.raises(UnstorableValueError, match="sets are nested deeper than 100 levels") as refused:
            to_plain({"a": (nested_sets(depth),)}, TYPES)
        assert refused.value.place.startswith("a[0][")


def test_writable_bytes_become_bytes() -> None:
    assert to_plain([bytearray(b"a"), memoryview(b"abc")[::2]], TYPES) == [b"a", b"ac"]


def test_a_huge_integer_needs_no_decimal_conversion() -> None:
    huge = 7**10_000
    assert TYPES.revive(to_plain(-huge, TYPES)) == -huge


@pytest.mark.parametrize("depth", [2_000, 9_000])
def test_deep_values_come_back(depth: int) -> None:
    assert depth_of(TYPES.revive(to_plain(nested(depth), TYPES))) == depth


def test_a_value_nested_too_deep_is_refused() -> None:
    with pytest.raises(UnstorableValueError, match="nested deeper"):
        to_plain(nested(10_001), TYPES)


def test_a_value_that_contains_itself_is_refused_with_its_path() -> None:
    inner: list[Any] = [1]
    inner.append({"again": inner})
    with pytest.raises(UnstorableValueError) as refused:
        to_plain({"state": inner}, TYPES)
    assert refused.value.place == "state[1].again"


def test_the_same_list_twice_is_not_a_cycle() -> None:
    shared = [1]
    assert to_plain([shared, shared], TYPES) == [[1], [1]]


def test_an_unsupported_type_is_named_with_its_path() -> None:
    with pytest.raises(UnsupportedTypeError, match=r"OrderedDict.*tasks.*Register") as refused:
        to_plain({"tasks": [0, {"extra": {"odd key": OrderedDict()}}]}, TYPES)
    assert refused.value.place == "tasks[1].extra['odd key']"


def test_the_path_leads_through_registered_types() -> None:
    with pytest.raises(UnsupportedTypeError) as refused:
        to_plain({"bill": Invoice(1, [(object(),)])}, TYPES)
    assert refused.value.place == "bill.lines[0][0]"


def test_a_foreign_time_zone_is_refused_with_its_path() -> None:
    with pytest.raises(UnstorableValueError) as refused:
        to_plain({"at": [datetime(2026, 1, 1, tzinfo=Moon())]}, TYPES)
    assert refused.value.place == "at[0]"


def test_a_subclass_of_a_known_type_is_not_that_type() -> None:
    class Name(str):
        pass

    with pytest.raises(UnsupportedTypeError):
        to_plain(Name("a"), TYPES)


def test_an_unregistered_name_is_an_error_that_says_what_to_register() -> None:
    with pytest.raises(CheckpointSchemaError, match=r"'Invoice' is not registered.*Register"):
        TypeRegistry().revive(to_plain([Invoice(1)], TYPES))


def test_an_unknown_tag_may_come_from_a_newer_version() -> None:
    with pytest.raises(UnsupportedVersionError):
        TYPES.revive({"$hf": "quaternion"})


@pytest.mark.parametrize(
    "tagged",
    [
        {"$hf": "datetime", "v": 5},
        {"$hf": "datetime"},
        {"$hf": ["x"]},
        {"$hf": "set", "v": [[1]]},
        {"$hf": "uuid", "v": "no"},
        {"$hf": "map", "v": [[1, 2, 3]]},
        {"$hf": "int", "v": "os"},
        {"$hf": "enum"},
        {"$hf": "blob", "sha256": "0" * 64, "kind": "str", "len": 3},
    ],
)
def test_a_forged_tag_is_refused(tagged: dict[str, Any]) -> None:
    with pytest.raises(CheckpointCorruptError):
        TYPES.revive(tagged)


def test_revive_loads_blobs() -> None:
    reference = {"$hf": "blob", "kind": "str", "sha256": "ab", "len": 2}
    assert TYPES.revive([reference], {"ab": b"hi"}.__getitem__) == ["hi"]
    with pytest.raises(CheckpointCorruptError):
        TYPES.revive([reference], {"ab": b"longer"}.__getitem__)


def test_revive_leaves_the_tree_as_it_was() -> None:
    tree = {"a": [{"$hf": "tuple", "v": [1, {"$hf": "tuple", "v": []}]}]}
    assert TYPES.revive(tree) == {"a": [(1, ())]}
    assert tree == {"a": [{"$hf": "tuple", "v": [1, {"$hf": "tuple", "v": []}]}]}


def test_register_works_as_decorator_with_and_without_a_name() -> None:
    types = TypeRegistry()

    @types.register
    @dataclass
    class Plain:
        a: int

    @types.register(name="Other")
    @dataclass
    class Named:
        a: int

    assert to_plain([Plain(1), Named(2)], types) == [
        {"$hf": "obj", "t": "Plain", "v": {"a": 1}},
        {"$hf": "obj", "t": "Other", "v": {"a": 2}},
    ]


def test_any_class_can_be_registered_with_functions() -> None:
    types = TypeRegistry()
    types.register(OrderedDict, encode=lambda value: list(value.items()), decode=OrderedDict)
    value = OrderedDict(a=(1, 2))
    assert fingerprint(types.revive(to_plain(value, types))) == fingerprint(value)


def test_registering_is_refused_where_it_cannot_work() -> None:
    types = TypeRegistry()
    with pytest.raises(ConfigError, match="unknown how to store"):
        types.register(OrderedDict)
    with pytest.raises(ConfigError, match="unknown how to store"):
        types.register(OrderedDict, encode=list)
    with pytest.raises(ConfigError, match="by Holdfast itself"):
        types.register(datetime, encode=str, decode=str)


def test_a_name_belongs_to_one_class_but_the_class_may_be_defined_again() -> None:
    types = TypeRegistry()

    def define() -> type[Enum]:
        class Mood(Enum):
            GOOD = 1

        return Mood

    types.register(define())
    again = types.register(define())
    assert types.revive(to_plain(again.GOOD, types)) is again.GOOD  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="belongs to"):
        types.register(Color, name="Mood")


def test_a_decode_that_raises_names_the_type() -> None:
    types = TypeRegistry()
    types.register(OrderedDict, encode=list, decode=lambda _: 1 / 0)
    with pytest.raises(CheckpointSchemaError, match="'OrderedDict' does not fit"):
        types.revive(to_plain(OrderedDict(), types))
