"""Values of every kind Holdfast stores, and a comparison that sees every difference."""

from __future__ import annotations

import struct
from collections import namedtuple
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, Flag, IntEnum, StrEnum
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pydantic
from hypothesis import strategies as st

from holdfast.domain.plain import TypeRegistry


class Color(Enum):
    RED = 1
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    YES = "yes"


class Right(Flag):
    READ = 1
    WRITE = 2


@dataclass
class Invoice:
    number: int
    lines: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Point:
    x: Any
    y: Any


class Pair(NamedTuple):
    left: Any
    right: Any = None


class Report(pydantic.BaseModel):
    title: str
    body: Any = None


class Ticket(msgspec.Struct):
    number: int
    notes: Any = None


Plainly = namedtuple("Plainly", "a b")


def registry() -> TypeRegistry:
    """Give a registry with every class of this module."""
    types = TypeRegistry()
    for cls in (Color, Level, Word, Right, Invoice, Point, Pair, Report, Ticket, Plainly):
        types.register(cls)
    return types


def fingerprint(value: Any) -> Any:
    """Turn a value into something whose equality means the same value of the same type, order included."""
    kind = type(value).__qualname__
    if isinstance(value, Enum):
        return kind, value.name
    if type(value) is float:
        return kind, "nan" if value != value else struct.pack(">d", value)
    if isinstance(value, datetime | time):
        return kind, value.isoformat(), repr(value.tzinfo), value.fold
    if isinstance(value, Decimal | PurePath):
        return kind, str(value)
    if isinstance(value, dict):
        return kind, [(fingerprint(key), fingerprint(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return kind, [fingerprint(item) for item in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(fingerprint(item)) for item in value)
    return kind, _members(value)


def _members(value: Any) -> Any:
    if isinstance(value, pydantic.BaseModel):
        return fingerprint(value.__dict__), sorted(value.model_fields_set), fingerprint(value.model_extra)
    if isinstance(value, msgspec.Struct):
        return [fingerprint(getattr(value, name)) for name in value.__struct_fields__]
    if is_dataclass(value):
        return [fingerprint(getattr(value, member.name)) for member in fields(value)]
    return value


ZONES = [UTC, ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), timezone(timedelta(hours=-3, seconds=7)),
         timezone(timedelta(hours=1), "CET"), timezone(timedelta(0), "zero")]  # fmt: skip

#: Values that compare equal in Python, or nearly so, and must be told apart. All of a row differ.
CONFUSABLE: list[list[Any]] = [
    [1, True, 1.0, Decimal("1"), Decimal("1.0"), Decimal("1.00"), Level.LOW, Color.RED, "1", Right.READ],
    [0, False, 0.0, -0.0, Decimal("0"), Decimal("-0"), None, "", b"", [], (), {}, set(), frozenset()],
    [{1, 2}, frozenset({1, 2}), [1, 2], (1, 2), Pair(1, 2), Plainly(1, 2), Point(1, 2)],
    ["yes", Word.YES, b"yes", PurePosixPath("yes"), Path("yes"), PureWindowsPath("yes")],
    [datetime(2026, 1, 11, 14), *(datetime(2026, 1, 11, 14, tzinfo=zone) for zone in ZONES)],
    [datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin")) for fold in (0, 1)],
    [date(2026, 1, 11), datetime(2026, 1, 11), "2026-01-11", {"$hf": "date", "v": "2026-01-11"}],
    [float("inf"), float("-inf"), float("nan"), Decimal("NaN"), Decimal("Infinity"), "nan"],
    [{"a": 1, "b": 2}, {"b": 2, "a": 1}, [["a", 1], ["b", 2]], {"$hf": "map", "v": [["a", 1], ["b", 2]]}],
    [{1: "a"}, {True: "a"}, {"1": "a"}, {1.0: "a"}],
    [2**64, str(2**64), float(2**64), {"$hf": "int", "v": str(2**64)}],
    [UUID(int=1), str(UUID(int=1)), 1],
]

ODD_TEXTS = ["\ud800", "a\udfffb", "$hf", "\xa3$hf", "", "\x00", "\u2028", "\U0001f600", '"\\', "\x7f"]

texts = st.text(max_size=12) | st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec=None), max_size=4)
integers = st.integers() | st.sampled_from(
    [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**50, -(10**1000), 127, 128, -32, -33]
)
hashables = st.recursive(
    st.none() | st.booleans() | integers | st.floats() | texts | st.binary(max_size=8)
    | st.uuids() | st.dates() | st.timedeltas() | st.decimals(allow_nan=False)
    | st.sampled_from([*Color, *Level, *Word, Right.READ | Right.WRITE, Right(0)])
    | st.sampled_from([Path("a/b"), PurePosixPath("/a"), PureWindowsPath("c:\\a"), Path("\udc80")]),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3) | st.builds(Pair, inner, inner),
    max_leaves=4,
)  # fmt: skip
moments = st.builds(
    lambda moment, zone, fold: moment.replace(tzinfo=zone, fold=fold),
    st.datetimes() | st.times(), st.sampled_from([None, *ZONES]), st.sampled_from([0, 1]),
)  # fmt: skip
scalars = hashables | moments | st.sampled_from([Decimal("NaN"), Decimal("sNaN123"), Decimal("1E+9")])


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=5)
        | st.dictionaries(texts, inner, max_size=5)
        | st.dictionaries(hashables, inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$hf", "v", "t", "a"]), inner, max_size=4)
        | st.sets(hashables, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.builds(Invoice, st.integers(), st.lists(inner, max_size=3))
        | st.builds(Point, inner, inner)
        | st.builds(Report, title=st.text(st.characters(codec="utf-8"), max_size=5), body=inner)
        | st.builds(Ticket, st.integers(), inner)
    )


#: Anything the registry of this module can store.
values = st.recursive(scalars, _containers, max_leaves=20)

#: Plain trees without tags.
plain_trees = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


def nested(depth: int, bottom: Any = "bottom") -> Any:
    """Nest lists and objects that deep."""
    value = bottom
    for level in range(depth):
        value = [value] if level % 2 else {"k": value}
    return value


def nested_sets(depth: int, bottom: Any = "bottom") -> Any:
    """Nest sets that deep, each beside an item of its own."""
    value = bottom
    for level in range(depth):
        value = frozenset((value, level))
    return value


def depth_of(value: Any) -> int:
    """Count the levels of what `nested` gives, or gave before a round trip."""
    depth = 0
    while type(value) in (list, dict):
        value = value[0] if type(value) is list else value["k"]
        depth += 1
    return depth


class Moon(tzinfo):
    """A time zone that nobody could find again by what it says of itself."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "Moon"
