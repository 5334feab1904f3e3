"""A row: agents one after another, and what is left to do of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from typing import Any

from holdfast.execution.frame import Frame
from holdfast.execution.plan import Agent
from holdfast.execution.results import Results, step_name
from holdfast.execution.steps import Follower, Work

#: An agent, and the one after it.
Pair = tuple[Agent, Agent | None]


@dataclass(frozen=True, slots=True)
class Row:
    """One round of agents that work one after another."""

    results: Results
    iteration: int = 1
    history: Sequence[Mapping[str, Any]] = ()

    def works(self, pairs: Iterable[Pair]) -> Iterator[Work]:
        """Find what is left, step by step as the row goes on."""
        for agent, following in pairs:
            name = step_name(agent.name, None, self.iteration)
            if not self.results.has(name):
                frame = self.frame(agent, self.results.begun_as(name))
                yield Work(agent, frame, self.follower(following), is_awaited=False)

    def frame(self, agent: Agent, step_id: str) -> Frame:
        """Say what a step of this round is given."""
        number, parent_id = self.iteration, self.results.origin(agent, self.iteration)
        return Frame(step_id, agent.name, agent.stage, 1, None, number, self.history, parent_id)

    def follower(self, agent: Agent | None) -> Follower | None:
        """Name the step of an agent if nothing has to be asked or done before it begins."""
        if agent is None or agent.each is not None or agent.when is not None or agent.is_risky:
            return None
        name = step_name(agent.name, None, self.iteration)
        return None if self.results.has(name) else Follower(self.results.begun_as(name), agent.name)


def stretches(agents: Sequence[Agent]) -> Iterator[tuple[bool, list[Pair]]]:
    """Part a row into stretches of agents that can share a thread, and of those that need the loop."""
    pairs = zip_longest(agents, agents[1:])
    for is_plain, some in groupby(pairs, lambda pair: pair[0].is_plain):
        yield is_plain, list(some)
