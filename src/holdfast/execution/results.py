"""What the agents of a run have answered, found by step or by agent in the state."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.execution.journal import Journal
from holdfast.execution.origins import origins_of
from holdfast.execution.plan import Agent, Plan, StageKind

_ROUND = re.compile(r"#\d+")
#: A step of a round after the first, with its agent; what it spawned is none.
_LATER = re.compile(r"([^\[#>]+)(?:\[.*\])?#(\d+)", re.DOTALL)


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
        self._origins = origins_of(plan)
        self._loops = {stage.name for layer in plan.layers for stage in layer if stage.kind is StageKind.LOOP}
        #: Names of before, with those of now.
        self._renamed = dict(renamed or {})
        self._mutex = threading.Lock()
        self._by_step: dict[str, Any] = {}
        #: The last rounds in which agents have results, by the names that those are recorded under.
        self._rounds: dict[str, int] = {}
        self._seen = 0
        self._last: Any = None

    def has(self, step_id: str) -> bool:
        """Tell whether a step is over: its result is recorded, or that it was not needed."""
        return self._known(step_id) is not None

    def is_over(self, agent: Agent, iteration: int = 1) -> bool:
        """Tell whether nothing is left to do of an agent; results of another shape do not count."""
        name = step_name(agent.name, None, iteration)
        if agent.each is None:
            return self.has(name)
        steps = self._steps(agent, iteration)
        if steps is None:
            return any(map(self._is_skipped, self._names(name)))
        return all(map(self.has, steps))

    def recorded(self, step_id: str) -> tuple[Any] | None:
        """Answer the result that is recorded under just this name; None if the step is not over."""
        self._read()
        return (self._by_step.get(step_id),) if self._is_over(step_id) else None

    def begun_as(self, step_id: str) -> str:
        """Answer the name under which a step began: its effects and milestones stand there."""
        names = self._names(step_id)
        return next(filter(self._journal.agent_state, names), names[0])

    def origin(self, agent: Agent, iteration: int) -> str | None:
        """Name the one step that those of an agent come from; None where they come from several, or none."""
        if iteration > 1 and agent.name in self._origins.rounds:
            return self._over(self._origins.rounds[agent.name], iteration - 1)
        name = self._origins.before.get(agent.name)
        is_elsewhere = name is not None and self._agents[name].stage != agent.stage
        return self._over(name, self._round(self._agents[name]) if name and is_elsewhere else iteration)

    def _over(self, name: str | None, iteration: int) -> str | None:
        """Name the step of an agent in a round, if there was one: its stage may not have been needed."""
        step_id = None if name is None else step_name(name, None, iteration)
        return self.begun_as(step_id) if step_id is not None and self.has(step_id) else None

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
        iteration = self._round(agent)
        steps = self._steps(agent, iteration)
        if steps is not None:
            return [self._required(step) for step in steps]
        step_id = step_name(name, None, iteration)
        if agent.each is not None and not self.is_over(agent, iteration):
            # What it answered alone, before it ran for items, is none of its results now.
            raise self._missing(step_id)
        return self._required(step_id)

    def of_last(self) -> Any:
        """Answer the result of the last agent of the plan; None where it has none."""
        last = next(reversed(self._agents), None)
        try:
            return None if last is None else self.of_agent(last)
        except InvalidStateError:
            return None

    def stage_state(self, stage: str) -> Mapping[str, Any]:
        """Answer what is known of a stage."""
        known: Mapping[str, Any] = self._stage_states().get(self.stage_as(stage), {})
        return known

    def stage_as(self, stage: str) -> str:
        """Answer the name under which a stage is recorded: an agent on its own takes its stage along."""
        agent = self._agents.get(stage)
        if not self._renamed or agent is None or agent.stage != stage:
            return stage
        names = self._names(stage)
        return next(filter(self._stage_states().__contains__, names), names[0])

    def items(self, agent: Agent, iteration: int = 1) -> Sequence[Mapping[str, Any]] | None:
        """Answer the items that were settled for an agent, wherever it stood then; None where none were."""
        names = self._names(step_name(agent.name, None, iteration))
        own = self.stage_state(agent.stage)
        for state in (own, *self._stage_states().values()):
            known = state.get("items") if isinstance(state, Mapping) else None
            # An application may have states of its own there.
            kept = known if isinstance(known, Mapping) else {}
            found = next((kept[name] for name in names if name in kept), None)
            if found is not None:
                items: Sequence[Mapping[str, Any]] = found
                return items
        return None

    def by_step(self) -> dict[str, Any]:
        """Answer all results."""
        self._read()
        return dict(self._by_step)

    def _stage_states(self) -> Mapping[str, Any]:
        states: Mapping[str, Any] = self._journal.fields.get("stage_states", {})
        return states

    def _steps(self, agent: Agent, iteration: int) -> list[str] | None:
        """Name the steps of an agent that runs for several items; None where no item is known."""
        items = self.items(agent, iteration) if agent.each is not None else None
        return None if items is None else [step_name(agent.name, item["key"], iteration) for item in items]

    def _round(self, agent: Agent) -> int:
        """Name the last round in which an agent was done; one that is in no loop now may have been in one."""
        self._read()
        if agent.stage in self._loops:
            last = len(self.stage_state(agent.stage).get("iterations", ())) + 1
        else:
            last = max(self._rounds.get(name, 1) for name in self._names(agent.name))
        return next((one for one in range(last, 0, -1) if self.is_over(agent, one)), 1)

    def _of_stranger(self, name: str) -> Any:
        """Answer the result of an agent that only earlier versions of the workflow had."""
        return self._required(name)

    def _required(self, step_id: str) -> Any:
        if not self.has(step_id):
            raise self._missing(step_id)
        return self.of_step(step_id)

    def _missing(self, step_id: str) -> InvalidStateError:
        return InvalidStateError(
            f"{step_id!r} has no result yet",
            place=self._journal.workflow_id,
            hint="Declare that the agent comes `after` it.",
        )

    def _known(self, step_id: str) -> str | None:
        """Answer the name under which a step is over; agents that were renamed keep their results."""
        self._read()
        return next(filter(self._is_over, self._names(step_id)), None)

    def _names(self, step_id: str) -> Sequence[str]:
        """Name a step as it is called now, then as it was before; never by what is another's."""
        if not self._renamed:
            return (step_id,)
        agent, rest = parted(step_id)
        before = [was + rest for was, name in self._renamed.items() if name == agent != was]
        is_taken = self._renamed.get(agent, agent) != agent
        return before if is_taken and before else [step_id, *before]

    def _is_over(self, step_id: str) -> bool:
        return step_id in self._by_step or self._is_skipped(step_id)

    def _is_skipped(self, step_id: str) -> bool:
        return self._journal.agent_state(step_id).get("status") == "skipped"

    def _read(self) -> None:
        """Take in what came since; one thread at a time, for what another takes in is seen then."""
        with self._mutex:
            tasks: Sequence[Any] = self._journal.fields.get("tasks", ())
            by_step, rounds, seen = self._by_step, self._rounds, self._seen
            if seen and (len(tasks) < seen or tasks[seen - 1] is not self._last):
                # What a store refused was taken back.
                by_step, rounds, seen = {}, {}, 0
            elif len(tasks) == seen:
                return
            for task in tasks[seen:]:
                # An application may have tasks of its own in the state.
                if isinstance(task, Mapping) and {"id", "result"} <= task.keys():
                    by_step[task["id"]] = task["result"]
                    _count_round(rounds, str(task["id"]))
            self._by_step, self._rounds = by_step, rounds
            self._seen, self._last = len(tasks), tasks[-1] if tasks else None


def _count_round(rounds: dict[str, int], step_id: str) -> None:
    later = _LATER.fullmatch(step_id) if "#" in step_id else None
    if later is not None:
        agent, number = later[1], int(later[2])
        rounds[agent] = max(number, rounds.get(agent, 1))


def parted(step_id: str) -> tuple[str, str]:
    """Part the name of a step into that of its agent, and what tells its occurrence."""
    ends = [place for mark in "[#>" if (place := step_id.find(mark)) >= 0]
    end = min(ends, default=len(step_id))
    return step_id[:end], step_id[end:]
