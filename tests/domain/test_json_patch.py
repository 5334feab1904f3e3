"""JSON Patch: the six operations, what does not fit, and that nothing is half done."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.json_patch import EditError, Step, patched
from holdfast.domain.tree import NOTHING, copy_tree


def edit(op: Any, path: str, value: Any = NOTHING, source: str | None = None) -> Step:
    return Step(op, path, value, source)


STATE = {"a": {"b": [1, 2, 3]}, "n": 1, "t": True, "": {"": 0}, "x/y~z": "odd"}


@pytest.mark.parametrize(
    ("edits", "place", "value"),
    [
        ([edit("add", "/a/c", 1)], ("a", "c"), 1),
        ([edit("add", "/a/b/0", 0)], ("a", "b"), [0, 1, 2, 3]),
        ([edit("add", "/a/b/3", 4)], ("a", "b"), [1, 2, 3, 4]),
        ([edit("add", "/a/b/-", 4)], ("a", "b"), [1, 2, 3, 4]),
        ([edit("add", "/n", None)], ("n",), None),
        ([edit("replace", "/a/b/1", {"k": []})], ("a", "b"), [1, {"k": []}, 3]),
        ([edit("remove", "/a/b/0")], ("a", "b"), [2, 3]),
        ([edit("copy", "/m", source="/a/b")], ("m",), [1, 2, 3]),
        ([edit("move", "/m", source="/a/b/2")], ("m",), 3),
        ([edit("move", "/n", source="/n")], ("n",), 1),
        ([edit("put", "/a/c", 1)], ("a", "c"), 1),
        ([edit("put", "/a/b/1", 9)], ("a", "b"), [1, 9, 3]),
        ([edit("put", "/a/b/-", 4)], ("a", "b"), [1, 2, 3, 4]),
        ([edit("replace", "/x~1y~0z", "even")], ("x/y~z",), "even"),
        ([edit("replace", "//", 7)], ("", ""), 7),
        (
            [edit("test", "/n", 1.0), edit("test", "/t", True), edit("test", "/a", {"b": [1, 2, 3]})],
            ("n",),
            1,
        ),
    ],
)
def test_each_operation_does_what_it_says(edits, place, value):
    before = copy.deepcopy(STATE)
    found = patched(STATE, edits)
    for key in place:
        found = found[key]
    assert found == value
    assert before == STATE


def test_the_whole_state_can_be_replaced():
    assert patched(STATE, [edit("replace", "", {"n": 2})]) == {"n": 2}


def test_a_copy_is_a_copy():
    made = patched(STATE, [edit("copy", "/m", source="/a"), edit("add", "/m/b/-", 9)])
    assert made["a"]["b"] == [1, 2, 3] and made["m"]["b"] == [1, 2, 3, 9]


@pytest.mark.parametrize(
    "misfit",
    [
        edit("remove", "/missing"),
        edit("remove", ""),
        edit("replace", "/missing", 1),
        edit("replace", "", [1]),
        edit("add", "/missing/x", 1),
        edit("add", "/n/x", 1),
        edit("add", "/a/b/01", 1),
        edit("add", "/a/b/4", 1),
        edit("add", "/a/b/-1", 1),
        edit("add", "/a/b/x", 1),
        edit("add", "/a/b/\u0661", 1),
        edit("add", "", 1),
        edit("add", "/a/b/99999999999999999999", 1),
        edit("remove", "/a/b/-"),
        edit("add", "/a/c"),
        edit("move", "/a/b/c", source="/a/b"),
        edit("move", "/m"),
        edit("copy", "/m", source="/missing"),
        edit("test", "/n", True),
        edit("test", "/t", 1),
        edit("test", "/n", "1"),
        edit("test", "/a/b", [1, 2]),
        edit("test", "/a", {"c": 1}),
        edit("add", "/a/c", {"deep": [{"$hf": "blob"}]}),
        edit("add", "/a/$hf", "blob"),
    ],
)
def test_what_does_not_fit_is_named_by_its_number(misfit):
    with pytest.raises(EditError) as refused:
        patched(STATE, [edit("add", "/ok", 1), misfit])
    assert refused.value.index == 1 and refused.value.why


def test_nobody_looks_into_a_stored_type():
    state = {"when": {"$hf": "datetime", "v": "2026"}}
    with pytest.raises(EditError):
        patched(state, [edit("replace", "/when/v", "2027")])
    assert patched(state, [edit("replace", "/when", None)]) == {"when": None}


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
states = st.dictionaries(st.text(max_size=2), values, max_size=4)


@given(states, st.text(max_size=3), values)
def test_what_was_added_is_found_and_can_be_taken_away_again(state, key, value):
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    made = patched(state, [edit("add", pointer, value), edit("test", pointer, value)])
    assert made == {**state, key: value}
    assert patched(made, [edit("remove", pointer)]) == {k: v for k, v in state.items() if k != key}


def test_copies_of_copies_come_to_an_end():
    edits = [edit("copy", f"/x{number}", source="") for number in range(100)]
    with pytest.raises(EditError) as refused:
        patched({"text": "a" * 1000}, edits)
    assert "copies bring more" in refused.value.why


def test_what_is_too_deep_to_be_compared_does_not_fit():
    deep: list[object] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(EditError) as refused:
        patched({"a": deep}, [edit("test", "/a", copy_tree(deep))])
    assert "too deep" in refused.value.why
