"""What a run asks the application: conditions, items and their keys, and whether a loop is content."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from holdfast.domain.errors import AgentFailedError, DeclarationError
from holdfast.execution.faults import shown
from holdfast.execution.journal import Journal
from holdfast.execution.plan import Agent, Stage


class Asks(Protocol):
    """What answers need to know of the run."""

    journal: Journal

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was given."""

    @property
    def config(self) -> Mapping[str, Any]:
        """What its agents are told."""

    def result(self, name: str) -> Any:
        """What an agent answered."""


class View:
    """What conditions and fan-outs see of a run: copies, to change as they like."""

    def __init__(self, run: Asks) -> None:
        self.inputs = copy.deepcopy(run.inputs)
        self.config = copy.deepcopy(run.config)
        self.workflow_id = run.journal.workflow_id
        self._run = run

    def result(self, name: str) -> Any:
        """Answer the result of an agent."""
        return copy.deepcopy(self._run.result(name))

    @property
    def shared(self) -> Mapping[str, Any]:
        """What agents have remembered."""
        shared: Mapping[str, Any] = self._run.journal.fields.get("context", {})
        return copy.deepcopy(shared)


async def is_wanted(run: Asks, condition: Callable[[Any], Any], name: str) -> bool:
    """Ask whether an agent or a stage is needed."""
    return bool(await _answered(run, lambda: condition(View(run)), "its condition", name))


async def items_of(run: Asks, agent: Agent) -> list[dict[str, Any]]:
    """Ask for the items that an agent is run for, and for their keys."""
    each, key = agent.each, agent.key
    if each is None:
        return []
    answer = await _answered(run, lambda: each(View(run)), "what tells its items", agent.name)
    items = await _answered(run, lambda: list(answer), "what tells its items", agent.name)
    found = [{"key": str(number), "item": item} for number, item in enumerate(items)]
    if key is not None:
        for one in found:
            one["key"] = await _answered(run, partial(key, one["item"]), "its key", agent.name)
    _check_keys(agent, found)
    return found


async def is_content(run: Asks, stage: Stage, evaluation: Any) -> bool:
    """Ask whether a loop is over: what was declared for that, else what the evaluator says itself."""
    until = stage.until
    if until is not None:
        return bool(await _answered(run, lambda: until(copy.deepcopy(evaluation)), "its `until`", stage.name))
    if isinstance(evaluation, Mapping) and "content" in evaluation:
        return bool(evaluation["content"])
    return bool(evaluation)


async def _answered(run: Asks, question: Callable[[], Any], what: str, name: str) -> Any:
    """Call a function of the application, and await what it answers if that has to be."""
    try:
        answer = question()
        return await answer if inspect.isawaitable(answer) else answer
    except Exception as fault:
        raise AgentFailedError(
            f"{what} failed: {shown(fault)}",
            place=f"{run.journal.workflow_id} {name}",
            hint="Mend the function and run it again: what was committed is kept.",
        ) from fault


def _check_keys(agent: Agent, items: Sequence[Mapping[str, Any]]) -> None:
    keys = [one["key"] for one in items]
    wrong = next((key for key in keys if not isinstance(key, str)), None)
    if wrong is not None:
        raise DeclarationError(
            f"the key of an item is a {type(wrong).__name__}", place=agent.name, hint="Answer text."
        )
    if len(set(keys)) < len(keys):
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise DeclarationError(
            f"two items have one key: {', '.join(twice)}",
            place=agent.name,
            hint="Give a `key` that tells them apart.",
        )
