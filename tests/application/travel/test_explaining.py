"""What differs between the events and a stored state is put down to whom it belongs to."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.travel.explaining import Kind, explain
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.tree import NOTHING

PACKER = OrmsgpackPacker(TypeRegistry())
UNEXPLAINED, LEFT_OUT, DIVERGED = Kind.UNEXPLAINED, Kind.LEFT_OUT, Kind.DIVERGED


def told(before: Any, replayed: Any, stored: Any) -> list[tuple[Any, ...]]:
    found = explain({"f": before}, {"f": replayed}, {"f": stored}, PACKER)
    return [(one.kind, one.path[1:]) for one in found]


@pytest.mark.parametrize(
    ("before", "replayed", "stored", "expected"),
    [
        (1, 2, 2, []),
        (1, 1, 2, [(UNEXPLAINED, ())]),
        (1, 1, True, [(UNEXPLAINED, ())]),
        (1, 2, 3, [(DIVERGED, ())]),
        (1, 2, 1, [(DIVERGED, ())]),
        ({"a": 1}, {"a": 1}, {"a": 1, "b": 2}, [(UNEXPLAINED, ("b",))]),
        ({"a": 1, "b": 1}, {"a": 1, "b": 1}, {"a": 1}, [(UNEXPLAINED, ("b",))]),
        ({}, {"a": 1}, {}, [(LEFT_OUT, ("a",))]),
        ({"a": 1}, {"a": 2}, {}, [(DIVERGED, ("a",))]),
        ({"a": 1}, {}, {"a": 1}, [(LEFT_OUT, ("a",))]),
        ({"a": 1}, {}, {"a": 2}, [(DIVERGED, ("a",))]),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 2, "c": 3}}, [(UNEXPLAINED, ("a", "c"))]),
        ([1, 2], [1, 2, 3], [1, 2, 3], []),
        ([1, 2], [1, 2, 3], [1, 2], [(LEFT_OUT, (2,))]),
        ([1, 2], [1, 2, 3], [1, 2, 4], [(DIVERGED, (2,))]),
        ([1, 2], [1, 2, 3], [2, 3], [(UNEXPLAINED, (0,))]),
        ([1, 2], [1, 2, 3], [0, 1, 2, 3], [(UNEXPLAINED, (0,))]),
        ([], [{"text": "go", "ts": 1}], [{"text": "go"}], [(LEFT_OUT, (0, "ts"))]),
        ([], [{"text": "go"}], [{"text": "stop"}], [(DIVERGED, (0, "text"))]),
        (
            [{"id": 1}, {"id": 2}],
            [{"id": 1}, {"id": 2, "n": 2}],
            [{"id": 3}, {"id": 2, "n": 3}, {"id": 4}],
            [(UNEXPLAINED, (0,)), (DIVERGED, (1, "n")), (UNEXPLAINED, (0,)), (UNEXPLAINED, (2,))],
        ),
        ({"$hf": "set", "v": [1]}, {"$hf": "set", "v": [1]}, {"$hf": "set", "v": [2]}, [(UNEXPLAINED, ())]),
        ("a", "ab", "abc", [(DIVERGED, ())]),
    ],
)
def test_each_place_is_put_down_to_somebody(before: Any, replayed: Any, stored: Any, expected: Any) -> None:
    assert sorted(told(before, replayed, stored), key=str) == sorted(expected, key=str)


def test_a_field_that_is_not_there_is_nothing() -> None:
    (found,) = explain({}, {"messages": [1]}, {}, PACKER)
    assert (found.kind, found.path, found.before, found.stored) == (LEFT_OUT, ("messages",), NOTHING, NOTHING)
    assert repr(found.stored) == "NOTHING"


TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["id", "x", "y"]), inner, max_size=3)
    ),
    max_leaves=8,
)
STATES = st.dictionaries(st.sampled_from(["f", "g"]), TREES, max_size=2)


@pytest.mark.sweep
@given(STATES, STATES, STATES)
def test_something_is_told_just_if_the_events_and_the_store_differ(
    before: Any, replayed: Any, stored: Any
) -> None:
    kept = copy.deepcopy((before, replayed, stored))
    found = list(explain(before, replayed, stored, PACKER))
    is_same = sorted(replayed) == sorted(stored) and all(
        PACKER.pack_plain(replayed[key]) == PACKER.pack_plain(stored[key]) for key in stored
    )
    # Objects that differ in the order of their keys only have no place where they differ.
    assert not (found and is_same)
    assert found or replayed == stored
    assert (before, replayed, stored) == kept


@pytest.mark.sweep
@given(STATES, STATES)
def test_without_events_every_change_is_the_callers(before: Any, stored: Any) -> None:
    assert {one.kind for one in explain(before, before, stored, PACKER)} <= {UNEXPLAINED}


@given(STATES, STATES)
@example({"f": [False, 0]}, {"f": [0, False]})
@example({"f": [[], []]}, {"f": [None, [], None]})
def test_a_caller_that_takes_no_event_up_is_never_put_down_to_itself(before: Any, replayed: Any) -> None:
    assert UNEXPLAINED not in {one.kind for one in explain(before, replayed, before, PACKER)}
