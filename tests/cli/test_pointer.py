from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.exits import Failure
from holdfast.cli.pointer import look_up, parse_pointer, pointer_text

ITEM = {"b/c": 1, "~": 2}
TREE = {"a": [ITEM], "": 3}


@pytest.mark.parametrize(
    ("pointer", "value"), [("", TREE), ("/a/0", ITEM), ("/a/0/b~1c", 1), ("/a/0/~0", 2), ("/", 3)]
)
def test_a_pointer_leads_to_its_value(pointer, value):
    assert look_up(TREE, parse_pointer(pointer)) == value


@given(st.lists(st.text()))
def test_a_pointer_is_read_as_it_is_written(steps):
    assert parse_pointer(pointer_text(steps)) == tuple(steps)


@pytest.mark.parametrize(
    ("pointer", "hint"),
    [
        ("/x", "There are a, ."),
        ("/a/1", "There is a list of 1 items."),
        ("/a/-1", "There is a list of 1 items."),
        ("/a/0/b~1c/0", "There is no object and no list, but int."),
    ],
)
def test_a_pointer_that_leads_nowhere_tells_what_is_there(pointer, hint):
    with pytest.raises(Failure) as caught:
        look_up(TREE, parse_pointer(pointer))
    assert (caught.value.leave, caught.value.place, caught.value.hint) == (4, pointer, hint)


def test_an_empty_object_and_one_with_many_keys_are_told_too():
    for tree, hint in (({}, "an empty object"), (dict.fromkeys("abcdefghij"), "and 2 more")):
        with pytest.raises(Failure) as caught:
            look_up(tree, ("x",))
        assert hint in caught.value.hint


def test_a_pointer_begins_with_a_slash():
    with pytest.raises(Failure) as caught:
        parse_pointer("messages")
    assert caught.value.leave == 2
