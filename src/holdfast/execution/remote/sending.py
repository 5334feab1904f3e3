"""Running a step elsewhere: sending it to a worker, waiting for it, and going on with what it recorded.

A worker has no part in the journal of the run. It works with a journal of its own, a workflow that stands for
the step, under a lease: so it is noticed when it dies, its successor goes on from its last milestone, and it
is fenced off should it wake up again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from holdfast.domain.errors import ConfigError, InvalidStateError
from holdfast.domain.state import WorkflowState
from holdfast.execution.context import Context
from holdfast.execution.engines.port import Engine, WorkerLostError
from holdfast.execution.engines.portable import RemoteAgentError
from holdfast.execution.engines.remote_port import RemoteEngine
from holdfast.execution.frame import Frame, Notes, Surroundings
from holdfast.execution.journal import Journal
from holdfast.execution.outcome import RunStatus
from holdfast.execution.plan import Agent, StageKind
from holdfast.execution.remote.child import Child
from holdfast.execution.remote.errand import Ending, Errand, Outcome
from holdfast.execution.remote.following import ChildWatch
from holdfast.execution.remote.working import run_errand
from holdfast.execution.stopping import StopSign

#: Stores that are where their URL says, for every process of the machine.
_SHARED = ("file", "sqlite")
#: So many heartbeats are recorded before silence counts as the end of an attempt.
_BEATS_PER_TIMEOUT = 4


class Remote:
    """Runs the steps of one run that belong elsewhere."""

    def __init__(self, journal: Journal, around: Surroundings, stop: StopSign) -> None:
        self._journal = journal
        self._around = around
        self._stop = stop
        #: Steps that were sent from here: whoever else works on one of them is none of ours.
        self._sent: set[str] = set()

    async def run(self, chosen: Engine, agent: Agent, frame: Frame, context: Context) -> Any:
        """Run one attempt of a step on a worker, and answer its result.

        A worker that an earlier run had sent, and that is still at work, is waited for; what one has finished
        is taken as it is.

        Raises:
            WorkerLostError: the worker is gone.
            Suspended: it asks something, and the run does not wait for answers.
        """
        # That is what `is_remote` says.
        engine = cast(RemoteEngine, chosen)
        engine.check(agent.function)
        child = Child(self._journal, frame.step_id)
        store = _store_of_workers(engine, child.url)
        watch = ChildWatch(child, self._journal, self._around, context)
        outcome = Outcome(Ending.DONE)
        try:
            ended = await asyncio.to_thread(child.ended)
            if ended is None:
                errand = self._errand(engine, agent, frame, child, store)
                outcome = await self._outcome(engine, child, watch, errand)
                ended = await asyncio.to_thread(child.ended)
            await watch.catch_up()
        finally:
            watch.close()
        if ended is None:
            raise _fault(outcome)
        return _adopted(ended, frame.step_id, context)

    async def _outcome(
        self, engine: RemoteEngine, child: Child, watch: ChildWatch, errand: Errand
    ) -> Outcome:
        """Have an errand carried out, or wait for who carries one out already."""
        is_new = child.step_id not in self._sent
        self._sent.add(child.step_id)
        found = await asyncio.to_thread(child.look)
        future: asyncio.Future[Any] | None = None
        try:
            if not (is_new and found.is_held):
                if not await asyncio.to_thread(child.send, errand):
                    return Outcome(Ending.DONE)
                future = engine.submit(run_errand, errand)
            return await _waited(future, watch, engine)
        except BaseException:
            # Whatever the worker still does must leave no trace. Done here and now: the run may be about to
            # end, and whoever tries again must not be earlier.
            if future is not None:
                future.cancel()
            child.withdraw(errand, ends=self._stop.status is RunStatus.CANCELLED)
            raise

    def _errand(self, engine: RemoteEngine, agent: Agent, frame: Frame, child: Child, store: str) -> Errand:
        fields = self._journal.fields
        triggers = fields.get("execution_config", {}).get("triggers", {})
        names = _before(fields.get("dag_structure", {}), frame)
        timeout_seconds = agent.timeout_seconds
        return Errand(
            secrets.token_hex(8),
            store,
            child.id,
            self._journal.workflow_id,
            frame,
            agent.function,
            agent.each is not None or frame.item is not None,
            self._around.inputs,
            self._around.config,
            fields.get("context", {}),
            dict(self._results(names)),
            frozenset(name for name, value in triggers.items() if value is True),
            engine.lease_seconds,
            engine.poll_seconds,
            None if timeout_seconds is None else timeout_seconds / _BEATS_PER_TIMEOUT,
        )

    def _results(self, names: list[str]) -> Iterator[tuple[str, Any]]:
        for name in names:
            try:
                yield name, self._around.result(name)
            except InvalidStateError:
                # Not there yet: the agent is told so if it asks for it.
                continue


async def _waited(future: asyncio.Future[Any] | None, watch: ChildWatch, engine: RemoteEngine) -> Outcome:
    """Wait for the end of an errand: by its future, or by the journal where there is none or it hangs."""
    patience = _patience(engine) if future is not None else dict.fromkeys(Ending, 0.0)
    while future is None or not future.done():
        await _pause((*watch.answering, future), engine.poll_seconds)
        await watch.look()
        found = watch.outcome(patience)
        if found is not None:
            if future is not None:
                future.cancel()
            return found
        if future is None and watch.is_left:
            # Whoever had the step when this run began may have been killed before it began the attempt.
            raise WorkerLostError("whoever had the step left it without a word")
    outcome: Outcome = future.result()
    return outcome


def _patience(engine: RemoteEngine) -> dict[Ending, float]:
    """Tell how long a future may take after the journal: that of a failure has an error of its own class."""
    return {Ending.DONE: 2 * engine.poll_seconds, Ending.FAILED: engine.lease_seconds}


async def _pause(awaited: Iterable[asyncio.Future[Any] | None], seconds: float) -> None:
    """Wait so long at most, or until one of several things has happened."""
    still = {one for one in awaited if one is not None and not one.done()}
    if still:
        await asyncio.wait(still, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    else:
        await asyncio.sleep(seconds)


def _fault(outcome: Outcome) -> Exception:
    """Answer what kept an errand from its end: what the agent raised, or that its worker had to leave it."""
    if outcome.ending is Ending.FAILED:
        return outcome.error or RemoteAgentError(outcome.reason)
    return WorkerLostError(outcome.reason or "nothing was recorded")


def _adopted(ended: WorkflowState, step_id: str, context: Context) -> Any:
    """Take over what a worker recorded: everything its agent said, and its result."""
    if ended.status != str(RunStatus.COMPLETED):
        raise InvalidStateError(
            "the step was cancelled on its worker", place=step_id, hint="Run the workflow under another id."
        )
    confidence = ended.confidence if isinstance(ended.confidence, Mapping) else {}
    context.notes = Notes(
        list(ended.messages),
        list(ended.outputs),
        dict(ended.context),
        dict(ended.metrics),
        list(ended.agent_states.get(step_id, {}).get("artifacts", ())),
        confidence.get(step_id),
    )
    return next(task["result"] for task in ended.tasks if task["id"] == step_id)


def _store_of_workers(engine: RemoteEngine, url: str) -> str:
    """Answer the URL by which workers open the store of the run.

    Raises:
        ConfigError: they cannot, or nobody said how.
    """
    if engine.store is not None:
        return engine.store
    scheme, _, place = url.partition(":")
    if scheme in _SHARED:
        return f"{scheme}:{Path(place).absolute()}"
    if scheme == "memory":
        raise ConfigError(
            "other processes cannot open a store in memory",
            place=url,
            hint="Run on a file, SQLite or PostgreSQL store.",
        )
    raise ConfigError(
        "workers have to be told how they open the store: its address here is without user and password",
        place=url,
        hint="Give the engine the whole URL: store=...",
    )


def _before(structure: Mapping[str, Any], frame: Frame) -> list[str]:
    """Name the agents that a step comes after: those of the stages before, and those of its own."""
    stages = {stage["name"]: stage for stage in structure.get("stages", ())}
    own = stages.get(frame.stage)
    if own is None:
        return []
    agents = {agent["name"]: agent for agent in own["agents"]}
    asked = [*own["after"], *agents.get(frame.agent, {}).get("after", ())]
    beside = list(agents) if own["kind"] != str(StageKind.PARALLEL) else []
    return list(dict.fromkeys([*_agents(stages, asked), *beside]))


def _agents(stages: Mapping[str, Any], names: list[str]) -> Iterator[str]:
    """Name the agents of stages; of one without any, those before it."""
    for name in names:
        stage = stages.get(name)
        if stage is None:
            yield name
        elif stage["agents"]:
            yield from (agent["name"] for agent in stage["agents"])
        else:
            yield from _agents(stages, stage["after"])
