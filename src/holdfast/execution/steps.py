"""Running one step: attempts, timeouts, pauses between, and what is recorded of each."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.application.commands import CheckpointOptions
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    AgentFailedError,
    StateTooLargeError,
    UnstorableValueError,
    UnsupportedTypeError,
)
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_SKIPPED, AGENT_STARTED
from holdfast.execution.context import Context
from holdfast.execution.driving import Asking, Attempt, Driver, Note, OnLoop, RowDriver, Together
from holdfast.execution.engines.local import call_apart
from holdfast.execution.engines.port import Engine, WorkerLostError
from holdfast.execution.faults import said, shown
from holdfast.execution.floor import floor
from holdfast.execution.frame import Frame, Parent, Surroundings
from holdfast.execution.journal import Fact, Journal, Save
from holdfast.execution.options import ConfidenceRule
from holdfast.execution.plan import Agent, OnFailure
from holdfast.execution.promises import check_kept
from holdfast.execution.remote.sending import Remote
from holdfast.execution.results import subject_of
from holdfast.execution.run_spans import agent_span
from holdfast.execution.stopping import StopSign
from holdfast.execution.triggers import Moment, Trigger, TriggerWatch
from holdfast.execution.weight import is_light

_TRACE_CHARS = 4000
_MESSAGE_CHARS = 20_000
_HOME = Path(__file__).parents[1]
_HOPELESS = (UnsupportedTypeError, UnstorableValueError, StateTooLargeError)
#: How often an agent whose worker was lost goes on elsewhere, before that counts as its own failure.
_WORKERS_LOST_MAX = 5


@dataclass(frozen=True, slots=True)
class Desks:
    """Everything that steps share."""

    journal: Journal
    around: Surroundings
    engines: Callable[[str | None], Engine]
    watch: TriggerWatch
    stop: StopSign
    confidence: ConfidenceRule


@dataclass(frozen=True, slots=True)
class Follower:
    """A step that begins right after another."""

    step_id: str
    agent: str


@dataclass(frozen=True, slots=True)
class Work:
    """One step to run.

    Attributes:
        agent: what is run.
        frame: for what.
        then: what begins right after: its start is recorded with the result, as one fact.
        given: tells what it was spawned for from other items.
        by: the attempt that has spawned it.
        is_awaited: wait until the result is durable; else it goes with the next commit, unless it is large.
    """

    agent: Agent
    frame: Frame
    then: Follower | None = None
    is_awaited: bool = True
    given: str | None = None
    by: Parent | None = None


class Steps:
    """Runs steps, each to its result or its end."""

    def __init__(self, desks: Desks) -> None:
        self._desks = desks
        self._journal = desks.journal
        self._remote = Remote(desks.journal, desks.around, desks.stop)
        #: The steps of all attempts that were made here.
        self._tried: list[str] = []
        #: Steps whose start was recorded with the result before, and the attempts that are.
        self._begun: dict[str, int] = {}

    @property
    def ran(self) -> int:
        """How many attempts were made here."""
        return len(self._tried)

    async def run(self, work: Work) -> None:
        """Run a step until its result is recorded.

        Raises:
            AgentFailedError: it failed for good, and the workflow does not go on without it.
        """
        with floor().busy():
            loop = asyncio.get_running_loop()
            await Driver(self._journal, loop).drive_async(self._step(work, loop))

    async def run_row(self, works: Iterator[Work]) -> None:
        """Run plain agents one after another in one thread: between two of them nothing waits for the loop.

        Raises:
            AgentFailedError: one failed for good, and the workflow does not go on without it.
        """
        loop = asyncio.get_running_loop()
        driver = RowDriver(self._journal, loop)

        def take_turns() -> None:
            for work in works:
                driver.drive(self._step(work, loop))

        with floor().busy():
            try:
                await self._desks.engines(None).submit(take_turns)
            finally:
                driver.end()

    async def skip(self, agent: Agent, frame: Frame, reason: str) -> None:
        """Record that a step was not needed."""
        driver = Driver(self._journal, asyncio.get_running_loop())
        await driver.drive_async(self._skipped(agent, frame, reason))

    def _step(self, work: Work, loop: asyncio.AbstractEventLoop) -> Asking:
        tracing, name = self._journal.recording.tracing, work.agent.name
        with agent_span(tracing, name, work.frame.step_id, self._journal.workflow_id):
            yield from self._run(work, loop)

    def _run(self, work: Work, loop: asyncio.AbstractEventLoop) -> Asking:
        agent, failures, lost = work.agent, 0, 0
        while True:
            self._desks.stop.check()
            frame = yield from self._begin(work)
            began, context = time.monotonic(), self._context(agent, frame, loop)
            siblings = [] if work.by is None else work.by.children
            siblings.append(context)
            try:
                result = yield self._attempt(agent, frame, context)
                check_kept(context.promises, agent.name)
                yield from self._complete(work, context, result, began)
                return
            except WorkerLostError as problem:
                lost += 1
                self._journal.warn(f"{frame.step_id} goes on elsewhere, its worker was lost: {problem}")
                if lost < _WORKERS_LOST_MAX:
                    continue
                fault: Exception = problem
            except Exception as problem:
                if self._journal.tells_loss(problem):
                    raise
                fault = problem
            finally:
                siblings.remove(context)
                context.end()
            failures += 1
            # What cannot be stored now cannot be stored the next time either.
            if isinstance(fault, _HOPELESS) or not agent.retry.is_worth(fault, failures):
                yield from self._give_up(work, context, fault)
                return
            yield from self._fail(work, context, fault, {"retries": True})
            yield OnLoop(partial(asyncio.sleep, agent.retry.pause_seconds(failures)))

    def _begin(self, work: Work) -> Asking:
        agent, frame = work.agent, work.frame
        attempt = self._begun.pop(frame.step_id, None)
        if attempt is None:
            attempt = yield from self._started(work)
        self._journal.tell("agent_started", step_id=frame.step_id, agent=agent.name, attempt=attempt)
        self._tried.append(frame.step_id)
        return frame if attempt == frame.attempt else replace(frame, attempt=attempt)

    def _started(self, work: Work) -> Asking:
        """Record that an attempt begins, and answer which one it is."""
        agent, frame = work.agent, work.frame
        attempt = self._next_attempt(frame.step_id)
        told: dict[str, Any] = {"attempt": attempt}
        if work.given is not None:
            told["given"] = work.given
        if agent.is_risky and self._desks.watch.due(Moment(Trigger.BEFORE_RISKY_OPERATION)):
            yield Save(str(Trigger.BEFORE_RISKY_OPERATION))
        yield _fact(AGENT_STARTED, told, frame)
        return attempt

    def _next_attempt(self, step_id: str) -> int:
        return int(self._journal.agent_state(step_id).get("attempt", 0)) + 1

    def _context(self, agent: Agent, frame: Frame, loop: asyncio.AbstractEventLoop) -> Context:
        driver = Driver(self._journal, loop)
        return Context(frame, self._journal, self._desks.around, driver, is_async=agent.is_async)

    def _attempt(self, agent: Agent, frame: Frame, context: Context) -> Attempt:
        given = (context,) if agent.each is None and frame.item is None else (context, context.item)
        call = partial(call_apart, agent.function, *given)
        return Attempt(context, call, partial(self._elsewhere, agent, frame, context, given))

    async def _elsewhere(self, agent: Agent, frame: Frame, context: Context, given: tuple[Any, ...]) -> Any:
        """Have an agent run where its engine runs it, and wait for it."""
        engine = self._desks.engines(agent.engine)
        future: asyncio.Future[Any]
        if engine.is_remote:
            future = asyncio.ensure_future(self._remote.run(engine, agent, frame, context))
        else:
            future = engine.submit(agent.function, *given)
        if agent.timeout_seconds is None:
            return await _undisturbed(future)
        return await _in_time(future, agent.timeout_seconds, context)

    def _complete(self, work: Work, context: Context, result: Any, began: float) -> Asking:
        agent, then = work.agent, work.then
        data = {
            "attempt": context.attempt,
            "result": result,
            "duration_seconds": round(time.monotonic() - began, 6),
            **context.notes.told(),
        }
        if self._desks.stop.status is not None:
            then = None
        if then is not None:
            attempt = self._next_attempt(then.step_id)
            data["next"] = {"step_id": then.step_id, "agent": then.agent, "attempt": attempt}
        fact = _fact(AGENT_COMPLETED, data, work.frame)
        occasion = Trigger.EVALUATION_COMPLETED if agent.is_evaluator else Trigger.SPECIALIST_FINISHED
        moment = Moment(occasion, subject_of(context.step_id), context.notes.confidence)
        due = self._desks.watch.due(moment)
        if due is not None:
            save = Save(str(due), {"type": CheckpointType.AGENT_COMPLETE, "agent_id": context.step_id})
            if (yield Together((fact, save))) is not None:
                self._desks.watch.checkpointed(self._journal.cost_seconds)
        else:
            # A store may refuse what is large, and nothing that comes after it may have begun by then.
            is_awaited = work.is_awaited or then is not None or not is_light(data)
            yield fact if is_awaited else Note(fact)
        if then is not None:
            self._begun[then.step_id] = data["next"]["attempt"]
        self._journal.tell(
            "agent_completed",
            step_id=context.step_id,
            agent=agent.name,
            seconds=data["duration_seconds"],
            metrics=context.notes.metrics,
            confidence=context.notes.confidence,
        )

    def _skipped(self, agent: Agent, frame: Frame, reason: str) -> Asking:
        yield _fact(AGENT_SKIPPED, {"reason": reason}, frame)
        self._journal.tell("agent_skipped", step_id=frame.step_id, agent=agent.name, reason=reason)

    def _give_up(self, work: Work, context: Context, fault: Exception) -> Asking:
        """Record that nobody tries again, with a checkpoint of everything that may help."""
        yield from self._fail(work, context, fault, {"retries": False})
        if self._desks.watch.due(Moment(Trigger.ERROR_ENCOUNTERED)):
            partial_notes = context.notes.told()
            told = {"error": self._told(fault), "attempt": context.attempt}
            if self._journal.recording.packs(partial_notes):
                # What cannot be stored may be why it failed, and the checkpoint shall be made all the same.
                told["partial"] = partial_notes
            options: CheckpointOptions = {
                "type": CheckpointType.ERROR_STATE,
                "agent_id": context.step_id,
                "agent_state": told,
            }
            made = yield Save(str(Trigger.ERROR_ENCOUNTERED), options)
            if made is not None:
                mark = self._journal.recording.mark
                yield OnLoop(partial(asyncio.to_thread, mark, made, shown(fault)))
        if work.agent.on_failure is OnFailure.SKIP:
            yield from self._skipped(work.agent, work.frame, f"it failed: {said(fault)}")
            return
        raise AgentFailedError(
            f"the agent failed: {shown(fault)}{_where(fault)}",
            place=f"{context.workflow_id} {context.step_id}",
            hint="Mend the cause and run it again: what was committed is kept.",
        ) from fault

    def _fail(self, work: Work, context: Context, fault: Exception, more: Mapping[str, Any]) -> Asking:
        before = self._confidence_of(context)
        after = self._desks.confidence(before, context.attempt, fault)
        data = {
            "attempt": context.attempt,
            "error": self._told(fault),
            "confidence": after,
            "confidence_before": before,
            "reason": f"attempt {context.attempt} failed with {type(fault).__name__}",
            **more,
        }
        yield _fact(AGENT_FAILED, data, work.frame)
        self._journal.tell(
            "agent_failed",
            step_id=context.step_id,
            agent=work.agent.name,
            error=shown(fault),
            **more,
        )

    def _told(self, fault: BaseException) -> dict[str, Any]:
        lines, hidden = "".join(traceback.format_exception(fault)), self._journal.hidden
        message = hidden(said(fault), _MESSAGE_CHARS)
        return {"type": type(fault).__name__, "message": message, "trace": hidden(lines, _TRACE_CHARS)}

    def _confidence_of(self, context: Context) -> float:
        if context.notes.confidence is not None:
            return context.notes.confidence
        known = self._journal.fields.get("confidence")
        value = known.get(context.step_id) if isinstance(known, Mapping) else None
        return float(value) if value is not None else 1.0


def _fact(kind: str, data: Mapping[str, Any], frame: Frame) -> Fact:
    """Tell something of a step, and where that comes from."""
    return Fact(kind, data, frame.step_id, frame.agent, parent_id=frame.parent_id)


async def _undisturbed(future: asyncio.Future[Any]) -> Any:
    """Wait for an agent; what it raises while it is ended is no failure of its own: it will begin again."""
    try:
        return await future
    except Exception as fault:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from fault
        raise


async def _in_time(future: asyncio.Future[Any], timeout_seconds: float, context: Context) -> Any:
    """Wait for an agent as long as it shows itself in time."""
    try:
        while True:
            left_seconds = timeout_seconds - context.quiet_seconds
            if left_seconds <= 0:
                raise TimeoutError(f"nothing was heard of the agent for {timeout_seconds:g} seconds")
            done, _ = await asyncio.wait({future}, timeout=left_seconds)
            if done:
                return future.result()
    except BaseException:
        future.cancel()
        raise


def _where(fault: BaseException) -> str:
    """Tell where an error was raised, as far as it was in somebody's program."""
    frames = [one for one in traceback.extract_tb(fault.__traceback__) if not _is_ours(one.filename)]
    return f" ({Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def _is_ours(filename: str) -> bool:
    return Path(filename).is_relative_to(_HOME)
