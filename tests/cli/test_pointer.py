from __future__ import annotations

import pytest

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.pointer import look_up, parse_pointer


def test_a_pointer_leads_to_its_value():
    assert look_up({"a": [{"b/c": 1}]}, parse_pointer("/a/0/b~1c")) == 1


def test_a_pointer_that_leads_nowhere_ends_the_command_and_tells_what_is_there():
    with pytest.raises(Failure) as caught:
        look_up({"a": [1]}, parse_pointer("/a/1"))
    assert (caught.value.leave, caught.value.code) == (Exit.NOT_FOUND, "no_such_place")
    assert (caught.value.place, caught.value.hint) == ("/a/1", "There is a list of 1 items.")


def test_what_is_no_pointer_is_wrong_usage():
    with pytest.raises(Failure) as caught:
        parse_pointer("messages")
    assert (caught.value.leave, caught.value.code) == (Exit.USAGE, "wrong_usage")
    assert "Begin with a slash" in caught.value.hint
