"""What a workflow consists of, as values: agents, the stages they stand in, and what comes after what."""

from __future__ import annotations

import graphlib
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import DeclarationError
from holdfast.domain.ids import check_id

AgentFunction = Callable[..., Any]
#: Given the context of the run; tells whether an agent is needed, or the items it is run for.
Condition = Callable[[Any], bool | Awaitable[bool]]
Items = Callable[[Any], Iterable[Any] | Awaitable[Iterable[Any]]]
#: Names an item.
Key = Callable[[Any], str | Awaitable[str]]
#: What step ids are made of; a name with one of these could be mistaken for an occurrence.
_RESERVED = frozenset("#[]>/")


class StageKind(StrEnum):
    """How the agents of a stage stand to each other."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    BARRIER = "barrier"
    LOOP = "loop"


class OnFailure(StrEnum):
    """What the failure of an agent means for its workflow, once nobody tries again."""

    #: The run ends as failed; it can be resumed.
    FAIL = "fail"
    #: The run goes on without a result.
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and after which pauses, an agent that failed is tried again.

    Attributes:
        attempts: tries altogether, the first one included.
        delay_seconds: pause before the second try.
        factor: how much longer each pause is than the one before.
        delay_max_seconds: no pause is longer.
        on: errors that are worth another try.
    """

    attempts: int = 1
    delay_seconds: float = 0.1
    factor: float = 2.0
    delay_max_seconds: float = 30.0
    on: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        is_sound = self.attempts >= 1 and self.factor >= 1
        if not (is_sound and self.delay_seconds >= 0 and self.delay_max_seconds >= 0):
            raise DeclarationError(
                "an agent is tried once at least, and pauses are not negative", place=repr(self)
            )

    def pause_seconds(self, attempts: int) -> float:
        """Give the pause after so many tries."""
        try:
            grown: float = self.delay_seconds * self.factor ** (attempts - 1)
        except OverflowError:
            return self.delay_max_seconds
        return min(grown, self.delay_max_seconds)

    def is_worth(self, error: BaseException, attempts: int) -> bool:
        """Tell whether to try again after so many tries."""
        return attempts < self.attempts and isinstance(error, self.on)


@dataclass(frozen=True, slots=True)
class Agent:
    """One unit of work: the smallest thing that is recorded, retried and never repeated once committed."""

    name: str
    function: AgentFunction = field(compare=False)
    stage: str
    after: tuple[str, ...] = ()
    when: Condition | None = field(default=None, compare=False)
    each: Items | None = field(default=None, compare=False)
    key: Key | None = field(default=None, compare=False)
    concurrency: int | None = None
    retry: Retry = Retry()
    timeout_seconds: float | None = None
    on_failure: OnFailure = OnFailure.FAIL
    engine: str | None = None
    is_evaluator: bool = False
    is_risky: bool = False

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def is_plain(self) -> bool:
        """Whether it is a function of this process, and nothing has to be asked or watched on the loop."""
        is_asked = self.each is not None or self.when is not None
        return not (is_asked or self.timeout_seconds is not None or self.engine is not None or self.is_async)


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the plan: agents one after another, at once, in a loop, or none at all."""

    name: str
    kind: StageKind
    agents: tuple[Agent, ...] = ()
    after: tuple[str, ...] = ()
    concurrency: int | None = None
    when: Condition | None = field(default=None, compare=False)
    #: Of a loop: how often at most, and what tells from the evaluator's answer that it is content.
    limit: int = 1
    until: Condition | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """Stages in layers: those of one layer run at once, and after all of the layers before."""

    name: str
    layers: tuple[tuple[Stage, ...], ...]
    concurrency: int | None = None

    @property
    def agents(self) -> dict[str, Agent]:
        """All agents by name."""
        return {agent.name: agent for layer in self.layers for stage in layer for agent in stage.agents}

    def structure(self) -> dict[str, Any]:
        """Tell the graph as plain data, for the checkpoint and for comparing."""
        stages = [
            {
                "name": stage.name,
                "kind": str(stage.kind),
                "layer": number,
                "after": list(stage.after),
                "agents": [{"name": agent.name, "after": list(agent.after)} for agent in stage.agents],
            }
            for number, layer in enumerate(self.layers)
            for stage in layer
        ]
        every = [stage for layer in self.layers for stage in layer]
        return {
            "workflow": self.name,
            "stages": stages,
            "fingerprint": _fingerprint(stages),
            # Beside the fingerprint, which runs of before have without them.
            "each": [agent.name for stage in every for agent in stage.agents if agent.each is not None],
            "limits": {stage.name: stage.limit for stage in every if stage.kind is StageKind.LOOP},
        }


def make_plan(name: str, stages: Mapping[str, Stage], concurrency: int | None = None) -> Plan:
    """Put stages into layers.

    Raises:
        DeclarationError: something comes after what is not there, or after itself; or a loop has nobody, or
            several, who tell when it is content.
    """
    for stage in stages.values():
        _check_loop(stage)
    home = {agent.name: stage.name for stage in stages.values() for agent in stage.agents}
    graph = {stage.name: _before(stage, stages, home) for stage in stages.values()}
    sorter = graphlib.TopologicalSorter(graph)
    try:
        sorter.prepare()
    except graphlib.CycleError as fault:
        circle = " -> ".join(reversed(fault.args[1]))
        raise DeclarationError(
            f"these come after each other in a circle: {circle}",
            place=name,
            hint="Leave one of the `after` out, or use a loop.",
        ) from None
    layers = []
    while sorter.is_active():
        ready = set(sorter.get_ready())
        layers.append(tuple(stage for stage in stages.values() if stage.name in ready))
        sorter.done(*ready)
    return Plan(name, tuple(layers), concurrency)


def check_name(kind: str, name: str) -> str:
    """Answer a name if it may be that of an agent or a stage.

    Raises:
        DeclarationError: it could be mistaken for something else.
    """
    check_id(kind, name)
    if _RESERVED & set(name):
        raise DeclarationError(
            f"the name of the {kind} holds one of {' '.join(sorted(_RESERVED))}",
            place=name,
            hint="These mark items and repetitions in the names of steps.",
        )
    return name


def _check_loop(stage: Stage) -> None:
    if stage.kind is StageKind.LOOP and sum(agent.is_evaluator for agent in stage.agents) != 1:
        raise DeclarationError(
            "a loop needs one evaluator", place=stage.name, hint="Declare it with `@loop.evaluator`."
        )


def _before(stage: Stage, stages: Mapping[str, Stage], home: Mapping[str, str]) -> set[str]:
    """Name the stages that have to be over first."""
    _check_order(stage, stages)
    names = [*stage.after, *(name for agent in stage.agents for name in agent.after)]
    before = set()
    for name in names:
        found = name if name in stages else home.get(name)
        if found is None:
            raise DeclarationError(
                f"{stage.name!r} comes after {name!r}, and there is no such agent or stage",
                place=name,
                hint=f"Declare it first. Known are: {', '.join(sorted({*home, *stages}))}.",
            )
        if found != stage.name or name in stages:
            before.add(found)
    return before


def _check_order(stage: Stage, stages: Mapping[str, Stage]) -> None:
    """Refuse what a stage cannot keep: its agents work at once, or in the order they are declared in."""
    names = [agent.name for agent in stage.agents]
    for place, agent in enumerate(stage.agents):
        earlier = () if stage.kind is StageKind.PARALLEL else names[:place]
        late = [name for name in agent.after if name in names and name not in (*earlier, *stages)]
        if late:
            raise DeclarationError(
                f"{agent.name!r} comes after {late[0]!r}, and in their stage it does not",
                place=stage.name,
                hint="Declare it later in a sequential stage, or in a stage of its own.",
            )


def _fingerprint(stages: list[dict[str, Any]]) -> str:
    return "sha256:" + hashlib.sha256(plainjson.dumps(stages)).hexdigest()
