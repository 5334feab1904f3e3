"""What the agents of a run have answered, found by step or by agent in the state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.execution.journal import Journal
from holdfast.execution.plan import Agent, Plan, StageKind

_ROUND = re.compile(r"#\d+")


def step_name(agent: str, key: str | None = None, iteration: int = 1) -> str:
    """Name a step: a stable name and its occurrence, so that steps beside it may come and go."""
    item = "" if key is None else f"[{key}]"
    return f"{agent}{item}" if iteration == 1 else f"{agent}{item}#{iteration}"


def subject_of(step_id: str) -> str:
    """Name whose confidence a step tells: that of the same agent, for the same item, in whatever round."""
    return _ROUND.sub("", step_id) if "#" in step_id else step_id


class Results:
    """The results of one run, read from its state as that grows."""

    def __init__(self, journal: Journal, plan: Plan, renamed: Mapping[str, str] | None = None) -> None:
        self._journal = journal
        self._agents = plan.agents
        self._loops = {stage.name for layer in plan.layers for stage in layer if stage.kind is StageKind.LOOP}
        #: Names of before, with those of now.
        self._renamed = dict(renamed or {})
        self._by_step: dict[str, Any] = {}
        self._seen = 0
        self._last: Any = None

    def has(self, step_id: str) -> bool:
        """Tell whether a step is over: its result is recorded, or that it was not needed."""
        return self._known(step_id) is not None

    def begun_as(self, step_id: str) -> str:
        """Answer the name under which a step began: its effects and milestones stand there."""
        return next(filter(self._journal.agent_state, self._names(step_id)), step_id)

    def of_step(self, step_id: str) -> Any:
        """Answer the result of a step that is over."""
        return self._by_step.get(self._known(step_id) or "")

    def of_agent(self, name: str) -> Any:
        """Answer the result of an agent; of one that ran for several items, all of them in order.

        Raises:
            InvalidStateError: there is none yet.
        """
        agent = self._agents.get(name)
        if agent is None:
            return self._of_stranger(name)
        iteration = self._round(agent) if agent.stage in self._loops else 1
        steps = self._steps(agent, iteration)
        if steps is None:
            return self._required(step_name(name, None, iteration))
        return [self._required(step) for step in steps]

    def of_last(self) -> Any:
        """Answer the result of the last agent of the plan; None where it has none."""
        last = next(reversed(self._agents), None)
        try:
            return None if last is None else self.of_agent(last)
        except InvalidStateError:
            return None

    def stage_state(self, stage: str) -> Mapping[str, Any]:
        """Answer what is known of a stage."""
        known: Mapping[str, Any] = self._journal.fields.get("stage_states", {}).get(stage, {})
        return known

    def by_step(self) -> dict[str, Any]:
        """Answer all results."""
        self._read()
        return dict(self._by_step)

    def _steps(self, agent: Agent, iteration: int) -> list[str] | None:
        """Name the steps of an agent that runs for several items; None where no item is known."""
        known = self.stage_state(agent.stage).get("items", {}) if agent.each is not None else {}
        items = known.get(step_name(agent.name, None, iteration))
        return None if items is None else [step_name(agent.name, item["key"], iteration) for item in items]

    def _round(self, agent: Agent) -> int:
        """Name the last round of its loop in which an agent was done."""
        now = len(self.stage_state(agent.stage).get("iterations", ())) + 1
        return next((one for one in range(now, 0, -1) if self._is_done(agent, one)), 1)

    def _is_done(self, agent: Agent, iteration: int) -> bool:
        steps = self._steps(agent, iteration)
        return all(map(self.has, [step_name(agent.name, None, iteration)] if steps is None else steps))

    def _of_stranger(self, name: str) -> Any:
        """Answer the result of an agent that only earlier versions of the workflow had."""
        return self._required(name)

    def _required(self, step_id: str) -> Any:
        if not self.has(step_id):
            raise InvalidStateError(
                f"{step_id!r} has no result yet",
                place=self._journal.workflow_id,
                hint="Declare that the agent comes `after` it.",
            )
        return self.of_step(step_id)

    def _known(self, step_id: str) -> str | None:
        """Answer the name under which a step is over; agents that were renamed keep their results."""
        self._read()
        return next(filter(self._is_over, self._names(step_id)), None)

    def _names(self, step_id: str) -> Sequence[str]:
        """Name a step as it is called now, then as it was called before."""
        if not self._renamed:
            return (step_id,)
        agent, rest = _parted(step_id)
        return [step_id, *(was + rest for was, name in self._renamed.items() if name == agent)]

    def _is_over(self, step_id: str) -> bool:
        return step_id in self._by_step or self._journal.agent_state(step_id).get("status") == "skipped"

    def _read(self) -> None:
        tasks = self._journal.fields.get("tasks", ())
        if self._seen and (len(tasks) < self._seen or tasks[self._seen - 1] is not self._last):
            # What a store refused was taken back.
            self._by_step, self._seen = {}, 0
        if len(tasks) == self._seen:
            return
        for task in tasks[self._seen :]:
            # An application may have tasks of its own in the state.
            if isinstance(task, Mapping) and {"id", "result"} <= task.keys():
                self._by_step[task["id"]] = task["result"]
        self._seen, self._last = len(tasks), tasks[-1]


def _parted(step_id: str) -> tuple[str, str]:
    ends = [place for mark in "[#>" if (place := step_id.find(mark)) >= 0]
    end = min(ends, default=len(step_id))
    return step_id[:end], step_id[end:]
