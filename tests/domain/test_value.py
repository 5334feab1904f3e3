from __future__ import annotations

from dataclasses import field, replace

from holdfast.domain.value import value


@value
class Point:
    x: int
    y: int = 0
    tags: tuple[str, ...] = field(default=())


def test_values_are_what_they_hold():
    assert Point(1) == Point(1, 0, ()) != Point(2)
    assert len({Point(1), Point(1), Point(2)}) == 2
    assert replace(Point(1), y=3) == Point(1, 3)


def test_values_hold_nothing_but_their_fields():
    assert not hasattr(Point(1), "__dict__")
