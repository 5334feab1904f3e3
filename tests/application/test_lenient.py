"""What is of an unknown type goes through unharmed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.lenient import Unknown, plain_again, revive_known
from holdfast.domain.errors import UnsupportedTypeError
from holdfast.domain.plain import TypeRegistry


@dataclass(frozen=True)
class Invoice:
    number: int
    lines: Any = None


class Colour(Enum):
    RED = 1


def registries() -> tuple[TypeRegistry, TypeRegistry]:
    """One that knows the application's types, and one that does not."""
    known = TypeRegistry()
    known.register(Invoice)
    known.register(Colour)
    return known, TypeRegistry()


VALUES = [
    {"a": [Invoice(1), 2, {"deep": Invoice(2, [Invoice(3)])}]},
    {"set": {Colour.RED}, "frozen": frozenset([Invoice(1)]), "ids": {UUID(int=3)}},
    {"map": {1: Invoice(1)}, "keys": {Invoice(1): 2}, "plain": {1: 2}},
    {"tuple": (1, Invoice(1), (Colour.RED,)), "when": datetime(2026, 1, 11, tzinfo=UTC)},
    {"like a tag": {"$hf": "unknown", "v": 0}, "one": Invoice(1), "two": {"$hf": Colour.RED}},
]


@pytest.mark.parametrize("value", VALUES)
def test_values_of_unknown_types_come_out_as_they_went_in(value: Any) -> None:
    known, strange = registries()
    packer = OrmsgpackPacker(known)
    plain = packer.unpack(packer.pack(value))
    kept = packer.pack_plain(plain)
    again = plain_again(revive_known(plain, strange), strange, OrmsgpackPacker(strange))
    assert packer.pack_plain(again) == kept == packer.pack_plain(plain)


@pytest.mark.parametrize("value", VALUES)
def test_values_of_known_types_are_values(value: Any) -> None:
    known, _ = registries()
    packer = OrmsgpackPacker(known)
    plain = packer.unpack(packer.pack(value))
    assert revive_known(plain, known) == value
    assert packer.pack_plain(plain_again(value, known, packer)) == packer.pack_plain(plain)


def test_what_is_unknown_is_equal_to_its_like() -> None:
    known, strange = registries()
    packer = OrmsgpackPacker(known)
    one, other = (revive_known(packer.unpack(packer.pack(Colour.RED)), strange) for _ in range(2))
    assert isinstance(one, Unknown) and one == other


def test_a_value_that_never_was_in_a_store_is_refused() -> None:
    _, strange = registries()
    with pytest.raises(UnsupportedTypeError):
        plain_again({"a": Invoice(1)}, strange, OrmsgpackPacker(strange))
