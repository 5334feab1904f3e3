"""Each thing that an attempt does has a name of its own."""

from __future__ import annotations

import pytest

from holdfast.domain.errors import InvalidStateError
from holdfast.execution.naming import Names


def test_the_second_of_a_name_has_a_number_and_each_key_counts_for_itself() -> None:
    names = Names("WF-1 a")
    asked = [("send", None), ("send", None), ("send", "k"), ("send", "k"), ("send", "j"), ("send", None)]
    told = [names.numbered("effect", name, key) for name, key in asked]
    assert told == ["send", "send#2", "send[k]", "send[k]#2", "send[j]", "send#3"]
    assert names.numbered("approval", "send") == "send"


@pytest.mark.parametrize(
    "asked",
    [
        [("send", None), ("send", None), ("send#2", None)],
        [("send#2", None), ("send", None), ("send", None)],
        [("send", "k"), ("send[k]", None)],
        [("send[k]", None), ("send", "k")],
        [("send", "k"), ("send", "k"), ("send[k]#2", None)],
    ],
)
def test_a_name_that_another_one_has_is_refused(asked: list[tuple[str, str | None]]) -> None:
    names = Names("WF-1 a")
    *before, (name, key) = asked
    for one in before:
        names.numbered("effect", *one)
    with pytest.raises(InvalidStateError, match="WF-1 a"):
        names.numbered("effect", name, key)


def test_a_name_with_such_marks_that_is_its_own_is_as_good_as_any() -> None:
    names = Names("WF-1 a")
    assert [names.numbered("effect", "send#2"), names.numbered("effect", "send")] == ["send#2", "send"]
