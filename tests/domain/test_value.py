from __future__ import annotations

import pickle
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from math import nan

from holdfast.domain.value import value


@value
class Point:
    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default=())


@value
class Named:
    name: str
    note: str = field(default="", compare=False)
    secret: str = field(default="", repr=False)

    def __hash__(self) -> int:
        return 7


@value
class Single:
    only: float


@value
class Blank:
    pass


def test_values_are_what_they_hold():
    assert Point(1) == Point(1, 0, ()) != Point(2)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert replace(Point(1), y=3) == Point(1, 3)


def test_values_hold_nothing_but_their_fields():
    assert not hasattr(Point(1), "__dict__")


def test_a_value_is_shown_and_compared_as_a_dataclass_is():
    @dataclass(frozen=True)
    class Plain:
        x: int
        tags: tuple[str, ...] = ()

    shown = repr(Plain(1, ("a",))).replace(Plain.__qualname__, "Point").replace("tags", "y=0, tags")
    assert repr(Point(1, tags=("a",))) == shown
    other: object = Plain(1)
    assert Point(1) != other and hash(Point(1, 2)) == hash((1, 2, ()))
    assert (Blank() == Blank(), repr(Blank()), hash(Blank())) == (True, "Blank()", hash(()))


def test_fields_that_do_not_count_or_are_not_shown_are_left_out():
    assert Named("a", "one") == Named("a", "two") != Named("b", "one")
    assert repr(Named("a", "one", "hush")) == "Named(name='a', note='one')"


def test_what_a_class_says_itself_stands():
    assert hash(Named("a")) == hash(Named("b")) == 7


def test_what_is_the_same_is_equal_whatever_it_says_itself():
    assert Single(nan) == Single(nan) and Single(nan) != Single(float("nan"))


def test_a_value_within_itself_can_be_shown():
    within: list[object] = []
    point = Point(1, tags=within)
    within.append(point)
    assert repr(point) == "Point(x=1, y=0, tags=[...])"


def test_values_can_be_sent_to_another_process():
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)
    assert copy(Point(1)) == deepcopy(Point(1)) == Point(1)
