"""What is refused as soon as an agent is declared."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from holdfast import Workflow
from holdfast.domain.errors import DeclarationError
from holdfast.execution.context import Context


def test_a_function_without_a_name_needs_one() -> None:
    with pytest.raises(DeclarationError, match="no name") as refused:
        Workflow("w").agent(lambda ctx: 1)
    assert "name=" in refused.value.hint
    with pytest.raises(DeclarationError, match="no name"):
        Workflow("w").agent(functools.partial(print))
    Workflow("w").agent(name="one")(lambda ctx: 1)


def test_an_option_that_does_not_exist_is_named_with_those_that_do() -> None:
    options: dict[str, Any] = {"timeout": 5}
    with pytest.raises(DeclarationError, match="no option 'timeout'") as refused:
        Workflow("w").agent(name="a", **options)(lambda ctx: 1)
    assert "timeout_seconds" in refused.value.hint


def test_a_function_that_cannot_be_called_as_its_run_will_is_refused() -> None:
    def nothing() -> None: ...

    def two(ctx: Context, item: int) -> None: ...

    workflow = Workflow("w")
    with pytest.raises(DeclarationError, match=r"take \(ctx\)"):
        workflow.agent(nothing)
    with pytest.raises(DeclarationError, match=r"take \(ctx\)"):
        workflow.agent(name="one")(two)
    with pytest.raises(DeclarationError, match=r"take \(ctx, item\)"):
        workflow.agent(name="each", each=lambda run: [1])(lambda ctx: 1)


def test_functions_that_do_not_tell_what_they_take_are_believed() -> None:
    Workflow("w").agent(name="dict")(dict)


@pytest.mark.parametrize("value", [0, -1])
def test_numbers_have_to_be_above_nothing(value: int) -> None:
    with pytest.raises(DeclarationError, match="concurrency"):
        Workflow("w").agent(name="a", concurrency=value)(lambda ctx: 1)


@pytest.mark.parametrize("factor", ["x", -3, 1.5, float("nan")])
def test_a_factor_of_confidence_is_from_0_to_1(factor: Any) -> None:
    with pytest.raises(DeclarationError, match="confidence_factor"):
        Workflow("w", confidence_factor=factor)


def test_what_answers_something_that_has_to_be_run_first_is_refused() -> None:
    class Awaited:
        async def __call__(self, ctx: object) -> None:
            """Do nothing."""

    def generator(ctx: object) -> Any:
        yield 1

    async def async_generator(ctx: object) -> Any:
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(DeclarationError, match="generator"):
            Workflow("w").agent(function)
    with pytest.raises(DeclarationError, match="has to be awaited"):
        Workflow("w").agent(name="awaited")(Awaited())
