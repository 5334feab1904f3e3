"""A state that is opened part by part is looked at once."""

from __future__ import annotations

from holdfast.server.looks import Looks


def test_a_second_look_within_a_minute_is_none_of_its_own():
    now = [0.0]
    looks = Looks(lambda: now[0])
    assert looks.is_new("ann WF@1")
    now[0] = 59.0
    assert not looks.is_new("ann WF@1")
    assert looks.is_new("bob WF@1") and looks.is_new("ann WF@2")
    now[0] = 60.0
    assert looks.is_new("ann WF@1")
    assert not looks.is_new("ann WF@1")


def test_those_of_long_ago_are_forgotten():
    looks = Looks(lambda: 0.0)
    for number in range(10_002):
        looks.is_new(str(number))
    assert looks.is_new("0") and not looks.is_new("10001")
