"""What is small for sure is told from all else, without looking at all of it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.execution.weight import is_light


@pytest.mark.parametrize(
    "value", [None, True, 1, 1.5, "text", b"bytes", (), [1, ["two"]], {"a": {"b": (1, None)}}, "x" * 60_000]
)
def test_usual_values_are_light(value: Any) -> None:
    assert is_light(value)


@pytest.mark.parametrize(
    "value",
    ["x" * 70_000, b"x" * 70_000, ["x" * 1000] * 70, {str(n): n for n in range(5000)}, [0] * 10**6],
)
def test_what_may_be_large_is_not(value: Any) -> None:
    assert not is_light(value)
    assert not is_light({"result": [value]})


def test_numbers_weigh_as_much_as_they_are_long() -> None:
    assert not is_light(1 << 10**6)


def test_what_nobody_can_weigh_is_not() -> None:
    assert not is_light({"result": object()})


def test_what_holds_itself_is_not() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert not is_light(endless)
