"""What may be said about an agent, and what is refused as soon as it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypedDict, TypeVar

from holdfast.domain.errors import DeclarationError
from holdfast.execution.plan import Agent, AgentFunction, Condition, Items, Key, OnFailure, Retry, check_name

#: What has to be over first: names, functions or teams as they were declared, or several of them.
After = Any
_Number = TypeVar("_Number", int | None, float | None)


class AgentOptions(TypedDict, total=False):
    """What may be said about an agent."""

    #: What it is called; by default as the function is.
    name: str | None
    #: What has to be over first: agents or stages, by name or as they were declared.
    after: After
    #: Given the run; False skips the agent, and that is recorded.
    when: Condition | None
    #: Given the run; answers items, and the agent is run for each of them, at once.
    each: Items | None
    #: Names an item, so that a changed order of items changes nothing.
    key: Key | None
    #: How many items are worked on at once at most.
    concurrency: int | None
    #: How often it is tried.
    retry: Retry | None
    #: How long nothing may be heard of an attempt.
    timeout_seconds: float | None
    #: `fail` ends the run, `skip` goes on without a result.
    on_failure: OnFailure | str
    #: Name of the engine that it runs on.
    engine: str | None
    #: A checkpoint is made before it starts.
    risky: bool


def check_number(option: str, value: _Number, place: str) -> _Number:
    """Answer a number if there is none, or it is above 0."""
    if value is not None and not value > 0:
        raise DeclarationError(f"{option} is {value}", place=place, hint="Give a number above 0, or none.")
    return value


def check_factor(value: float, place: str) -> float:
    """Answer a factor if it raises nothing."""
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise DeclarationError(f"confidence_factor is {value!r}", place=place, hint="Give 0 to 1.")
    return value


def agent_name(function: AgentFunction, given: str | None) -> str:
    named = given or str(getattr(function, "__name__", ""))
    if named in ("", "<lambda>"):
        raise DeclarationError("the agent has no name", place=repr(function), hint="Give it one: name='...'.")
    return check_name("agent", named)


def check_options(name: str, given: Mapping[str, Any]) -> None:
    known = {*AgentOptions.__annotations__, "is_evaluator"}
    unknown = next((option for option in given if option not in known), None)
    if unknown is not None:
        raise DeclarationError(
            f"an agent has no option {unknown!r}",
            place=name,
            hint=f"Known are: {', '.join(sorted(AgentOptions.__annotations__))}.",
        )


def check_signature(agent: Agent) -> None:
    """Refuse a function that cannot be called as its run will call it."""
    _check_kind(agent)
    given = (None,) if agent.each is None else (None, None)
    try:
        inspect.signature(agent.function).bind(*given)
    except TypeError:
        wanted = "(ctx)" if agent.each is None else "(ctx, item)"
        raise DeclarationError(
            f"the agent has to take {wanted}", place=agent.name, hint="Others are given with `each`."
        ) from None
    except ValueError:
        # Some functions of C do not tell what they take.
        return


def _check_kind(agent: Agent) -> None:
    """Refuse what answers no result when it is called, but something that would have to be run first."""
    function = agent.function
    calls = (function, type(function).__call__)
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in calls):
        raise DeclarationError(
            "the agent is a generator", place=agent.name, hint="Answer a list, or run for items with `each`."
        )
    if not agent.is_async and inspect.iscoroutinefunction(calls[1]):
        raise DeclarationError(
            "the agent is an object that has to be awaited",
            place=agent.name,
            hint="Declare an `async def` function that awaits it.",
        )
