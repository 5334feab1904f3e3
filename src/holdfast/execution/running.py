"""Walking through a plan: layer by layer, stage by stage, with a checkpoint after each layer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import AgentFailedError, CheckpointError
from holdfast.domain.run_events import STAGE_UPDATED
from holdfast.execution.approvals import Approval, Desk, Suspended
from holdfast.execution.engines.port import Engine
from holdfast.execution.frame import Frame, Spawned
from holdfast.execution.given import check_given
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.options import RunOptions, lowering
from holdfast.execution.outcome import RunStatus
from holdfast.execution.places import Places
from holdfast.execution.plan import Agent, Condition, Plan, Stage, StageKind
from holdfast.execution.questions import is_content, is_wanted, items_of
from holdfast.execution.results import Results, step_name
from holdfast.execution.rows import Row, stretches
from holdfast.execution.steps import Desks, Follower, Steps, Work
from holdfast.execution.stopping import Stopped, StopSign
from holdfast.execution.triggers import Moment, Trigger, TriggerWatch

#: Step id of facts about the run as a whole.
RUN = "run"


class Runner:
    """One run of a plan, from wherever its journal stands to its end."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        options: RunOptions,
        watch: TriggerWatch,
        engines: Callable[[str | None], Engine],
        confidence_factor: float,
    ) -> None:
        self.plan = plan
        self.journal = journal
        self.options = options
        self.watch = watch
        self.desk = Desk(waits=options.waits)
        #: Looks for what others ask; set by whoever brings that to this run.
        self.look: Callable[[], Awaitable[None]] = _see_nothing
        self.stop = StopSign()
        self.results = Results(journal, plan, journal.fields.get("metadata", {}).get("renamed"))
        self.steps = Steps(
            Desks(
                journal,
                self,
                engines,
                watch,
                self.stop,
                lowering(options.confidence_rule, confidence_factor, journal.warn),
            )
        )
        self._places = Places(plan.concurrency)

    # -- the run -----------------------------------------------------------------------------

    async def walk(self) -> None:
        """Run everything that has no result yet.

        Raises:
            AgentFailedError: an agent failed for good.
            Stopped: the run was asked to stop.
            Suspended: nothing is left to do until somebody answers.
        """
        last = len(self.plan.layers) - 1
        for number, layer in enumerate(self.plan.layers):
            self.stop.check()
            if self._is_over(layer):
                continue
            await self._at_once([partial(self._stage, stage) for stage in layer])
            await self._end_layer(number, layer, is_last=number == last)

    def _is_over(self, layer: Sequence[Stage]) -> bool:
        """Tell whether a layer was left behind; one whose agents have changed since was not."""
        return all(map(self._is_left, layer))

    def _is_left(self, stage: Stage) -> bool:
        state = self.results.stage_state(stage.name)
        if state.get("status") == "skipped":
            return bool(state.get("agents") == self._agents_told(stage))
        if state.get("status") != "completed":
            return False
        history = state.get("iterations", ()) if stage.kind is StageKind.LOOP else ()
        is_settled = stage.kind is not StageKind.LOOP or _is_settled(stage, history)
        return is_settled and self._has_all(stage, len(history) or 1)

    def _has_all(self, stage: Stage, iteration: int) -> bool:
        return all(self.results.is_over(agent, iteration) for agent in stage.agents)

    def _agents_told(self, stage: Stage) -> list[str]:
        return [agent.name for agent in stage.agents]

    async def _end_layer(self, number: int, layer: Sequence[Stage], *, is_last: bool) -> None:
        """Record that a layer is over, with a checkpoint; the last one's is that of the run."""
        facts = [self._stage_fact(stage, self._ended(stage), number + 1) for stage in layer]
        due = None if is_last else self.watch.due(Moment(Trigger.PHASE_COMPLETED))
        is_barrier = any(stage.kind is StageKind.BARRIER for stage in layer)
        if due is not None or is_barrier:
            kind = CheckpointType.SYNC_BARRIER if is_barrier else CheckpointType.STAGE_COMPLETE
            save = Save(str(due or Trigger.PHASE_COMPLETED), {"type": kind, "stage_id": layer[-1].name})
            made = await self.journal.commit_async(*facts, save)
            if made is not None:
                self.watch.checkpointed(self.journal.cost_seconds)
        else:
            for fact in facts:
                self.journal.note(fact)
        self.journal.tell("phase_completed", phase=number + 1, of=len(self.plan.layers))

    def _ended(self, stage: Stage) -> dict[str, Any]:
        status = self.results.stage_state(stage.name).get("status") or "completed"
        return {"status": status, "agents": self._agents_told(stage)}

    # -- stages ------------------------------------------------------------------------------

    async def _stage(self, stage: Stage) -> None:
        if stage.when is not None and not await self._is_wanted(stage, stage.when):
            self.journal.note(self._stage_fact(stage, {"status": "skipped"}))
            return
        if stage.kind is StageKind.LOOP:
            await self._loop(stage)
        elif stage.kind is StageKind.PARALLEL:
            limit = asyncio.Semaphore(stage.concurrency) if stage.concurrency else None
            await self._at_once(
                [partial(self._agent, agent, Row(self.results), limit=limit) for agent in stage.agents]
            )
        else:
            await self._row(stage.agents)

    async def _row(
        self, agents: Sequence[Agent], iteration: int = 1, history: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Run agents one after another; the result of one and the start of the next are one fact."""
        row = Row(self.results, iteration, history)
        for is_plain, pairs in stretches(agents):
            if is_plain and not self._places.is_limited:
                await self.steps.run_row(row.works(pairs))
                continue
            for agent, following in pairs:
                await self._agent(agent, row, then=row.follower(following), is_alone=True)

    async def _is_wanted(self, stage: Stage, when: Condition) -> bool:
        known = self.results.stage_state(stage.name).get("wanted")
        if known is None:
            known = await is_wanted(self, when, stage.name)
            self.journal.note(self._stage_fact(stage, {"wanted": known}))
        return bool(known)

    async def _loop(self, stage: Stage) -> None:
        """Repeat a stage until its evaluator is content, or the limit is reached."""
        [evaluator] = [agent for agent in stage.agents if agent.is_evaluator]
        while True:
            history = list(self.results.stage_state(stage.name).get("iterations", ()))
            if _is_settled(stage, history):
                await self._settled(stage, history)
                return
            await self._row(stage.agents, len(history) + 1, history)
            evaluation = self.results.of_step(step_name(evaluator.name, None, len(history) + 1))
            content = await is_content(self, stage, evaluation)
            told = {"iteration": len(history) + 1, "content": content, "evaluation": evaluation}
            self.journal.note(self._stage_fact(stage, {"iterations": [*history, told]}))
            self.journal.tell("iteration_completed", stage=stage.name, **told)

    async def _settled(self, stage: Stage, history: Sequence[Mapping[str, Any]]) -> None:
        """End a loop: agents that came into it since its last round are run in that one."""
        if not self._has_all(stage, len(history)):
            await self._row(stage.agents, len(history), history[:-1])
        if not history[-1]["content"]:
            self.journal.warn(f"loop {stage.name!r} ended at its limit, and nobody was content")

    # -- agents ------------------------------------------------------------------------------

    async def _agent(
        self,
        agent: Agent,
        row: Row,
        *,
        limit: asyncio.Semaphore | None = None,
        then: Follower | None = None,
        is_alone: bool = False,
    ) -> None:
        """Run an agent, for each of its items if it has some."""
        name = step_name(agent.name, None, row.iteration)
        if self.results.is_over(agent, row.iteration):
            return
        if not self._has_begun(agent, row) and not await self._is_needed(agent):
            frame = row.frame(agent, self.results.begun_as(name))
            await self.steps.skip(agent, frame, "its condition does not hold")
            return
        if agent.each is None:
            await self._step(agent, row.frame(agent, name), limit, then, is_alone=is_alone)
            return
        items = await self._items(agent, row)
        width = asyncio.Semaphore(agent.concurrency) if agent.concurrency else limit
        frames = [
            replace(row.frame(agent, step_name(agent.name, one["key"], row.iteration)), item=one["item"])
            for one in items
        ]
        left = [frame for frame in frames if not self.results.has(frame.step_id)]
        await self._at_once([partial(self._step, agent, frame, width) for frame in left])

    async def _is_needed(self, agent: Agent) -> bool:
        return agent.when is None or await is_wanted(self, agent.when, agent.name)

    def _has_begun(self, agent: Agent, row: Row) -> bool:
        """Tell whether an agent was found to be needed: it was at work, or its items were settled."""
        begun = self.results.begun_as(step_name(agent.name, None, row.iteration))
        has_items = agent.each is not None and self.results.items(agent, row.iteration) is not None
        return has_items or bool(self.journal.agent_state(begun))

    async def _step(
        self,
        agent: Agent,
        frame: Frame,
        limit: asyncio.Semaphore | None,
        then: Follower | None = None,
        *,
        is_alone: bool = False,
    ) -> None:
        """Run one step, when there is room for it."""
        named = replace(frame, step_id=self.results.begun_as(frame.step_id))
        # The narrower room first: who waits for that takes no place in the wider one.
        async with limit or nullcontext(), self._places.taken(named.step_id):
            await self.steps.run(Work(agent, named, then, is_awaited=not is_alone))

    async def _items(self, agent: Agent, row: Row) -> Sequence[Mapping[str, Any]]:
        """Answer the items of an agent: those recorded when it began, however often it is resumed."""
        name = step_name(agent.name, None, row.iteration)
        items = self.results.items(agent, row.iteration)
        if items is None:
            found = await items_of(self, agent)
            known = self.results.stage_state(agent.stage).get("items", {})
            state = {"items": {**known, self.results.begun_as(name): found}}
            stage = self.results.stage_as(agent.stage)
            self.journal.note(Fact(STAGE_UPDATED, {"stage": stage, "state": state}, RUN, agent.name))
            # As they are recorded: whoever has the ones that were given may change them.
            items = self.results.items(agent, row.iteration) or []
        self.journal.tell("agent_items", step_id=name, agent=agent.name, count=len(items))
        return items

    async def _at_once(self, works: Sequence[Callable[[], Awaitable[None]]]) -> None:
        """Run things at once; all that began end before the first problem is told, but for a lost lease."""
        if len(works) == 1:
            await works[0]()
            return
        tasks = [asyncio.ensure_future(work()) for work in works]
        try:
            pending = set(tasks)
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
                if any(_is_final(task, self.journal) for task in done):
                    break
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        _raise_first(ended, self.journal)

    # -- what contexts ask -------------------------------------------------------------------

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was given."""
        inputs: Mapping[str, Any] = self.journal.fields.get("context", {}).get("inputs", {})
        return inputs

    @property
    def config(self) -> Mapping[str, Any]:
        """What the agents are told: as the run began, and what its options say since."""
        return self.options.told(self.journal.fields)

    def result(self, name: str) -> Any:
        """Answer the result of an agent."""
        return self.results.of_agent(name)

    def done(self, step_id: str) -> tuple[Any] | None:
        """Answer the result of a step that is over."""
        return self.results.recorded(step_id)

    def is_due(self, trigger: Trigger) -> bool:
        """Tell whether a trigger makes a checkpoint."""
        return self.watch.due(Moment(trigger)) is not None

    async def answer(self, step_id: str, name: str) -> Any:
        """Wait for an answer; one that was left before anybody waited for it is taken at once."""
        if not self.options.waits:
            await self.look()
        found = Approval.of(self.journal.agent_state(step_id).get("approvals", {}).get(name, {}))
        if found is not None:
            return found
        async with self._places.left(step_id):
            return await self.desk.answer(step_id, name)

    async def spawn(self, parent: Frame, spawned: Spawned) -> Any:
        """Run a function as an agent of its own, named after the one that asked for it.

        Raises:
            GraphChangedError: the step was begun for another item.
        """
        name, step_id = spawned.name, f"{parent.step_id}>{spawned.name}"
        known = self.journal.agent_state(step_id)
        if known.get("status") != "failed":
            check_given(f"the spawned step {step_id!r}", known, spawned.given, self.journal.workflow_id)
        if self.results.recorded(step_id) is None:
            agent = Agent(name, spawned.function, parent.stage)
            frame = Frame(step_id, name, parent.stage, item=spawned.item, parent_id=parent.step_id)
            async with self._places.left(parent.step_id), self._places.taken(step_id):
                await self.steps.run(Work(agent, frame, given=spawned.given, by=spawned.by))
        found = self.results.recorded(step_id)
        return None if found is None else found[0]

    def _stage_fact(self, stage: Stage, state: Mapping[str, Any], phase: int | None = None) -> Fact:
        data: dict[str, Any] = {"stage": self.results.stage_as(stage.name), "state": dict(state)}
        return Fact(STAGE_UPDATED, data if phase is None else {**data, "phase": phase}, RUN)


async def _see_nothing() -> None:
    """Find that nobody asks for anything."""


def _is_settled(stage: Stage, history: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether a loop has no further round."""
    return bool(history) and (history[-1]["content"] or len(history) >= stage.limit)


def _is_final(task: asyncio.Future[Any], journal: Journal) -> bool:
    """Tell whether something ended that nothing else may go on after."""
    if task.cancelled():
        return True
    fault = task.exception()
    is_stop = isinstance(fault, Stopped) and fault.status is not RunStatus.PAUSED
    return is_stop or journal.tells_loss(fault)


def _raise_first(ended: Sequence[Any], journal: Journal) -> None:
    """Raise the weightiest of what went wrong: a lost lease, a stop, a failure, an open question."""
    faults = [one for one in ended if isinstance(one, BaseException)]
    for fault in filter(journal.tells_loss, faults):
        raise fault
    for kind in (Stopped, AgentFailedError, CheckpointError, Suspended):
        for fault in faults:
            if isinstance(fault, kind):
                raise fault
    rest = [one for one in faults if not isinstance(one, asyncio.CancelledError)]
    if rest:
        raise rest[0]
    if faults:
        raise faults[0]
