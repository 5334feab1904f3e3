"""What a step is given: which one it is, what it may say, and what it needs of the run around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from holdfast.execution.triggers import Trigger


@dataclass(frozen=True, slots=True)
class Frame:
    """Which step this is of which agent, and what it was given."""

    step_id: str
    agent: str
    stage: str
    attempt: int = 1
    item: Any = None
    #: Of a loop: which round this is, from 1 on, and what came of those before.
    iteration: int = 1
    history: Sequence[Mapping[str, Any]] = ()
    #: The step that it comes from: who spawned it, or the one it comes after.
    parent_id: str | None = None


class Quiet(Protocol):
    """An attempt at work."""

    @property
    def quiet_seconds(self) -> float:
        """How long nothing was heard of it."""


class Parent(Protocol):
    """Whoever waits for agents that it has spawned."""

    @property
    def children(self) -> list[Quiet]:
        """Those that are at work now."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """An agent that another one begins: what it runs, for what, under which name.

    Attributes:
        given: tells its item from others; None where it is known by a key of its own.
        by: hears of the attempt of it that is at work.
    """

    function: Callable[..., Any]
    item: Any
    name: str
    given: str | None = None
    by: Parent | None = None


@dataclass(frozen=True, slots=True)
class Milestone:
    """Where an agent that was interrupted goes on from."""

    name: str
    state: Any
    partial: Any = None


@dataclass(slots=True)
class Notes:
    """What an agent said and what becomes part of the state with its result, and not before."""

    messages: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    artifacts: list[Any] = field(default_factory=list)
    confidence: float | None = None
    #: Whether the agent wrote into the progress report itself.
    reported: bool = False

    def told(self) -> dict[str, Any]:
        """Answer what there is."""
        names = ("messages", "outputs", "context", "metrics", "artifacts", "reported")
        told = {name: value for name in names if (value := getattr(self, name))}
        return told if self.confidence is None else {**told, "confidence": self.confidence}


class Surroundings(Protocol):
    """What a context needs of the run around it."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was given."""

    @property
    def config(self) -> Mapping[str, Any]:
        """How it is run."""

    def result(self, name: str) -> Any:
        """What an agent answered; of one that ran for several items, the list of all answers.

        Raises InvalidStateError if it has not run.
        """

    def done(self, step_id: str) -> tuple[Any] | None:
        """The result of a step that is over, alone in a tuple; None if it is not."""

    def is_due(self, trigger: Trigger) -> bool:
        """Tell whether a trigger makes a checkpoint."""

    async def answer(self, step_id: str, name: str) -> Any:
        """Wait for the answer to a question."""

    async def spawn(self, parent: Frame, spawned: Spawned) -> Any:
        """Run a function as an agent of its own."""
