from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError
from holdfast.domain.pointer import follow, look_up, parse_pointer, pointer_text, step_into, without
from holdfast.domain.tree import NOTHING

TREE: dict[str, Any] = {"a": [1, {"b/c": 2, "": 3, "~": 4}], "01": 5}


@given(st.lists(st.text()))
def test_a_pointer_is_read_as_it_was_written(steps: list[str]) -> None:
    assert parse_pointer(pointer_text(steps)) == tuple(steps)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", TREE), ("/a/0", 1), ("/a/1/b~1c", 2), ("/a/1/", 3), ("/a/1/~0", 4), ("/01", 5)],
)
def test_a_pointer_leads_to_a_place(text: str, value: Any) -> None:
    assert look_up(TREE, parse_pointer(text)) == value


@pytest.mark.parametrize("text", ["a", " /a", "/a~", "/~2"])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(InvalidIdError, match="no JSON Pointer"):
        parse_pointer(text)


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("/b", "/b", "There are a, 01."),
        ("/a/2", "/a/2", "There is a list of 2 items."),
        ("/a/-", "/a/-", "list"),
        ("/a/00", "/a/00", "list"),
        ("/a/\u0663", "/a/\u0663", "list"),
        ("/a/" + "9" * 5_000, "/a/9", "list"),
        ("/a/0/x/y", "/a/0/x", "neither"),
    ],
)
def test_a_pointer_that_leads_nowhere_says_from_where_on(text: str, place: str, hint: str) -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        look_up(TREE, parse_pointer(text))
    assert caught.value.place.startswith(place) and hint in caught.value.hint


def test_what_is_there_is_named_with_a_bound() -> None:
    with pytest.raises(CheckpointNotFoundError) as caught:
        look_up({str(n): n for n in range(10)}, ("x",))
    assert caught.value.hint == "There are 0, 1, 2, 3, 4, 5, 6, 7 and 2 more."
    with pytest.raises(CheckpointNotFoundError, match="no such place") as caught:
        look_up({}, ("x",))
    assert caught.value.hint == "There is an empty object."


def test_a_step_goes_into_objects_and_lists_only() -> None:
    assert step_into([7], "0") == 7
    with pytest.raises(KeyError):
        step_into("text", "0")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", (TREE, ())),
        ("/a/0", (1, ("a", 0))),
        ("/01", (5, ("01",))),
        ("/a/7/x", (NOTHING, ("a", 7, "x"))),
        ("/b/0", (NOTHING, ("b", "0"))),
    ],
)
def test_a_pointer_is_followed_as_far_as_it_leads(text: str, found: tuple[Any, Any]) -> None:
    assert follow(TREE, parse_pointer(text)) == found


def test_a_place_is_left_out_and_the_tree_stays_as_it_is() -> None:
    tree: dict[str, Any] = {"a": [1, 2], "b": 3, "c": {"d": 4, "e": 5}}
    assert without(tree, ("a", "0")) == {**tree, "a": [None, 2]}
    assert without(tree, ("c", "d")) == {**tree, "c": {"e": 5}}
    assert without(tree, ("b",)) == {"a": [1, 2], "c": {"d": 4, "e": 5}}
    assert without(tree, ("x", "y")) is tree and tree["b"] == 3
