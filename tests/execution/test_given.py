from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import GraphChangedError
from holdfast.domain.plain import TypeRegistry
from holdfast.execution.given import check_given, digest_of, numbered, storable

TYPES = TypeRegistry()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1), VALUES))
def test_the_same_arguments_have_the_same_digest_in_any_order(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(arguments.items()))
    assert digest_of(arguments, TYPES) == digest_of(turned, TYPES)
    assert storable(arguments, TYPES) == arguments


@given(st.lists(st.text(), max_size=3), st.lists(st.text(), max_size=3))
def test_other_arguments_have_another_digest(one: list[str], other: list[str]) -> None:
    digests = [digest_of(numbered(tuple(texts), {}), TYPES) for texts in (one, other)]
    assert (digests[0] == digests[1]) is (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, "1"), (1, 1.0), (1, True), ((1,), [1]), ({1: 2}, {"1": 2}), (b"a", "a"), (None, math.nan)],
)
def test_values_that_look_alike_are_told_apart(one: Any, other: Any) -> None:
    assert digest_of({"a": one}, TYPES) != digest_of({"a": other}, TYPES)


def test_what_cannot_be_stored_does_not_count() -> None:
    circle: list[Any] = []
    circle.append(circle)
    odd = {"lock": object(), "circle": circle, "call": len}
    assert storable({**odd, "a": 1}, TYPES) == {"a": 1}
    assert digest_of({**odd, "a": 1}, TYPES) == digest_of({"a": 1}, TYPES)


def test_sets_have_the_same_digest_in_every_process() -> None:
    program = (
        "from holdfast.domain.plain import TypeRegistry\n"
        "from holdfast.execution.given import digest_of\n"
        "print(digest_of({'a': set('holdfast')}, TypeRegistry()))\n"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_what_was_recorded_for_other_arguments_is_refused_where_both_are_known() -> None:
    for known, now in [({}, "a"), ({"given": None}, "a"), ({"given": "a"}, "a"), ({"given": "b"}, None)]:
        check_given("it", known, now, "WF-1")
    with pytest.raises(GraphChangedError, match="it was recorded for other arguments"):
        check_given("it", {"given": "b"}, "a", "WF-1")
