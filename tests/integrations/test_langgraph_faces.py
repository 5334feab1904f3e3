"""Only what is the same looks alike, and sets do whatever order they are in."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from langchain_core.messages import AIMessage
from langgraph.types import Send
from pydantic import BaseModel, ConfigDict, Field

from holdfast.integrations.langgraph_faces import face_of
from tests.integrations import langgraph_kinds as kinds


class Plan(BaseModel):
    model_config = ConfigDict(extra="allow")
    tags: Any
    unseen: int = Field(default=0, repr=False, exclude=True)


@dataclass
class Step:
    tags: Any


class Pair(NamedTuple):
    one: Any
    other: Any


def two_orders(make: type = set) -> tuple[Any, Any]:
    """Equal sets that are gone through in other orders: their members want the same place of a small one."""
    one, other = make([0, 8]), make([8, 0])
    assert one == other and list(one) != list(other)
    return one, other


WRAPPED = [
    lambda tags: tags,
    lambda tags: Plan(tags=tags),
    lambda tags: Plan(**{"tags": 1, "more": [tags]}),
    lambda tags: Step({"a": (tags, [tags])}),
    lambda tags: Pair(1, deque([tags])),
    lambda tags: Send("node", Plan(tags=tags)),
    lambda tags: {1: {frozenset(tags): 2}},
]


def face(value: Any) -> Any:
    return face_of(value, repr)


@pytest.mark.parametrize("make", [set, frozenset])
@pytest.mark.parametrize("wrap", WRAPPED)
def test_equal_sets_look_alike_in_whatever_order_they_are(wrap: Any, make: type):
    one, other = two_orders(make)
    assert face(wrap(one)) == face(wrap(other))
    assert face(wrap(one)) != face(wrap(make([0, 9])))


@pytest.mark.parametrize("other", [{0, True}, {0.0, 1}, {False, 1}, frozenset({0, 1}), [0, 1], {0: 1}, {0}])
@pytest.mark.parametrize("wrap", WRAPPED[:6])
def test_what_is_equal_and_of_another_type_does_not(wrap: Any, other: Any):
    assert face(wrap({0, 1})) != face(wrap(other))


def test_the_order_of_everything_else_counts():
    assert face([1, 2]) != face([2, 1]) and face({"a": 1, "b": 2}) != face({"b": 2, "a": 1})
    assert face(0.0) != face(-0.0) and face({float("nan")}) == face({float("nan")})
    assert face(Plan(tags=1)) != face(Step(1)) and face(Plan(tags=1)) != face(Plan(**{"tags": 1, "more": 1}))


def test_a_field_that_is_neither_shown_nor_written_is_not_looked_at():
    assert face(Plan(tags=1, unseen=1)) == face(Plan(tags=1, unseen=2))


def test_of_what_has_no_members_both_what_it_prints_and_what_is_written_count():
    assert face_of(slice(1), lambda _: 1) != face_of(slice(2), lambda _: 1)
    assert face_of(slice(1), lambda _: 1) != face_of(slice(1), lambda _: 2)


@given(kinds.values(), kinds.values())
def test_two_values_look_alike_where_they_are_the_same(one: Any, other: Any):
    assert (face(one) == face(other)) == (kinds.shape(one) == kinds.shape(other))
    assert face(one) == face(one)


def test_a_text_that_may_be_called_is_a_text_and_one_of_another_class_is_not():
    class Secret(str):
        pass

    text = AIMessage("hello").text
    assert type(text) is not str and face(Step(text)) == face(Step("hello")) != face(Step(Secret("hello")))
