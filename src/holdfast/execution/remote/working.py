"""Where an errand is carried out: in a worker, with a context over the journal of its step."""

from __future__ import annotations

import asyncio
import copy
import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.application.commit_queue import OnDone, Ticket
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import open as open_service
from holdfast.domain.errors import CheckpointWriteError, InvalidStateError, LeaseLostError
from holdfast.domain.record import Lease
from holdfast.domain.reducers import AGENT_STATE_EVENT
from holdfast.domain.request import Request
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED
from holdfast.execution.approvals import Approval, answer_fact
from holdfast.execution.context import Context
from holdfast.execution.driving import Driver
from holdfast.execution.engines.failing import as_failure
from holdfast.execution.engines.portable import portable
from holdfast.execution.faults import said
from holdfast.execution.frame import Frame, Spawned
from holdfast.execution.journal import LOST, Fact, Journal, Save
from holdfast.execution.leases import KEEPER
from holdfast.execution.outcome import RunStatus
from holdfast.execution.remote.child import ending, recovered
from holdfast.execution.remote.errand import Ending, Errand, Outcome
from holdfast.execution.stopping import Unwinding
from holdfast.execution.triggers import Trigger

_SERVICES: dict[str, CheckpointService] = {}
#: The attempt of each step that this process makes.
_WORKS: dict[str, Work] = {}
_MUTEX = threading.Lock()


def run_errand(errand: Errand) -> Outcome:
    """Carry an errand out, under the lease of its step, and tell how it went."""
    try:
        service = _service(errand.store)
        if service.recording.ended(errand.child_id) is not None:
            # Done by a worker that could not say so any more.
            return Outcome(Ending.DONE)
        with _leased(service, errand) as work:
            return work.carry_out()
    except LOST as lost:
        return Outcome(Ending.LOST, str(lost))
    except Exception as fault:
        return Outcome(Ending.FAILED, said(fault), portable(fault))


def _service(url: str) -> CheckpointService:
    """Open a store once for each process: errands come one after another."""
    with _MUTEX:
        if url not in _SERVICES:
            _SERVICES[url] = open_service(url, create=False)
        return _SERVICES[url]


@contextmanager
def _leased(service: CheckpointService, errand: Errand) -> Iterator[Work]:
    """Have the step for an attempt meanwhile."""
    recording = service.recording
    _leave_room(service, errand.child_id)
    lease = recording.take(errand.child_id, "work", errand.lease_seconds)
    work = _WORKS[errand.child_id] = Work(service, errand, lease)
    KEEPER.keep(recording, lease, errand.lease_seconds, work.lose)
    try:
        yield work
    finally:
        KEEPER.drop(recording, lease)
        if _WORKS.get(errand.child_id) is work:
            del _WORKS[errand.child_id]
        if not work.is_lost:
            recording.give_up(lease)


def _leave_room(service: CheckpointService, child_id: str) -> None:
    """Let an attempt end that this process makes no more: what is written here shows the newest lease."""
    earlier = _WORKS.get(child_id)
    lease = service.lease_of(child_id)
    if earlier is not None and not (lease and lease.is_live and lease.token == earlier.lease.token):
        earlier.lose()


class FencedJournal(Journal):
    """A journal that takes nothing more once its step belongs to somebody else."""

    def lose(self) -> None:
        """Take nothing from now on; what is being written is let pass."""
        with self._mutex:
            self.is_lost = True

    def _queue(self, fact: Fact, on_done: OnDone | None, *, is_urgent: bool) -> Ticket | None:
        with self._mutex:
            self._check()
            return super()._queue(fact, on_done, is_urgent=is_urgent)

    def _save(self, save: Save, on_done: OnDone | None) -> Ticket | None:
        with self._mutex:
            self._check()
            return super()._save(save, on_done)

    def _check(self) -> None:
        if self.is_lost:
            raise LeaseLostError(
                "the step belongs to somebody else",
                place=self.workflow_id,
                hint="Let the function end: nothing it does is recorded any more.",
            )


class Work:
    """One attempt of one agent in this process."""

    def __init__(self, service: CheckpointService, errand: Errand, lease: Lease) -> None:
        self._service = service
        self._errand = errand
        self._context: RemoteContext | None = None
        self._journal: FencedJournal | None = None
        self.lease = lease
        self.is_lost = False

    def lose(self) -> None:
        """Note that the step belongs to somebody else now; the agent is told when it next says something."""
        self.is_lost = True
        if self._journal is not None:
            self._journal.lose()
        if self._context is not None:
            self._context.end()

    def carry_out(self) -> Outcome:
        """Run the agent and record what came of it.

        Raises:
            LeaseLostError: the step belongs to somebody else now.
        """
        errand = self._errand
        journal = self._recovered()
        refusal = _refusal(errand, journal.agent_state(errand.frame.step_id))
        if refusal is not None:
            return Outcome(Ending.LOST, refusal)
        journal.commit(_state_fact(errand, {"begun": errand.id}))
        began = time.monotonic()
        try:
            context, result = self._called(journal)
            self._complete(journal, context, result, time.monotonic() - began)
            return Outcome(Ending.DONE)
        except Exception as fault:
            if journal.tells_loss(fault):
                raise
            told = {"type": type(fault).__name__, "message": said(fault)}
            failed = {"attempt": errand.frame.attempt, "error": told}
            journal.commit(Fact(AGENT_FAILED, failed, errand.frame.step_id, errand.frame.agent))
            return Outcome(Ending.FAILED, said(fault), portable(fault, journal.hidden))

    def _recovered(self) -> Journal:
        errand, recording = self._errand, self._service.recording
        fields = recovered(recording, errand.child_id).fields
        # Recovering gave the lease as long as a recovery may take.
        recording.renew(self.lease, errand.lease_seconds)
        self._journal = FencedJournal(recording, errand.child_id, fields)
        if self.is_lost:
            self._journal.lose()
        return self._journal

    def _called(self, journal: Journal) -> tuple[RemoteContext, Any]:
        """Call the agent: a coroutine in a loop of its own."""
        errand = self._errand
        around = Around(errand, journal, self._service, lambda: self.is_lost)
        is_async = inspect.iscoroutinefunction(errand.function)
        context = RemoteContext(errand, journal, around, is_async=is_async)
        self._context = context
        given = (context, context.item) if errand.takes_item else (context,)
        try:
            answer = errand.function(*given)
            return context, asyncio.run(answer) if is_async else answer
        except (Exception, Unwinding):
            raise
        except BaseException as fault:
            # It would end the worker, and look as if that had died.
            raise as_failure(fault) from fault

    def _complete(self, journal: Journal, context: RemoteContext, result: Any, seconds: float) -> None:
        errand = self._errand
        data = {
            "attempt": errand.frame.attempt,
            "result": result,
            "duration_seconds": round(seconds, 6),
            **context.notes.told(),
        }
        fact = Fact(AGENT_COMPLETED, data, errand.frame.step_id, errand.frame.agent)
        made = journal.commit(fact, *ending(RunStatus.COMPLETED))
        if made is None or not made.durable:
            raise CheckpointWriteError(
                "the result could not be recorded", place=errand.child_id, hint="; ".join(journal.warnings)
            )
        requests = self._service.requests
        requests.settle([request.id for request in requests.pending(errand.child_id)])


class RemoteContext(Context):
    """The context of an agent on a worker: its journal is that of its step, its run is elsewhere."""

    def __init__(self, errand: Errand, journal: Journal, around: Around, *, is_async: bool) -> None:
        super().__init__(errand.frame, journal, around, Driver(journal, None), is_async=is_async)
        self._errand = errand
        self._own = journal
        self._shown_at = time.monotonic()

    @property
    def workflow_id(self) -> str:
        """The run."""
        return self._errand.workflow_id

    @property
    def shared(self) -> Mapping[str, Any]:
        """What agents had remembered when this one began."""
        return copy.deepcopy(self._errand.shared)

    def heartbeat(self) -> None:
        """Say that the agent is alive; recorded where silence would end the attempt."""
        super().heartbeat()
        beat_seconds, now = self._errand.beat_seconds, time.monotonic()
        if beat_seconds is not None and now - self._shown_at >= beat_seconds:
            self._shown_at = now
            self._own.commit(_state_fact(self._errand, {"beat": round(now, 3)}))

    def _note(self, kind: str, data: Mapping[str, Any], agent: str | None = None) -> None:
        if kind != AGENT_STATE_EVENT:
            super()._note(kind, data, agent)
            return
        # Of progress and of what is in the way the run shall hear now, and not with the next result.
        self._check()
        self._own.commit(Fact(kind, data, self.step_id, agent or self.agent))


class Around:
    """What a worker knows of the run around its agent: what was sent along."""

    def __init__(
        self, errand: Errand, journal: Journal, service: CheckpointService, is_lost: Callable[[], bool]
    ) -> None:
        self._errand = errand
        self._journal = journal
        self._requests = service.requests
        self._is_lost = is_lost

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was given."""
        return self._errand.inputs

    @property
    def config(self) -> Mapping[str, Any]:
        """What its options tell the agents."""
        return self._errand.config

    def result(self, name: str) -> Any:
        """Answer the result of an agent that this one comes after."""
        if name not in self._errand.results:
            raise InvalidStateError(
                f"the result of {name!r} was not sent along",
                place=f"{self._errand.workflow_id} {self._errand.frame.step_id}",
                hint="Declare that the agent comes `after` it: only those results go to workers.",
            )
        return self._errand.results[name]

    def done(self, step_id: str) -> tuple[Any] | None:
        """Answer the result of a branch that the agent has confirmed."""
        tasks = self._journal.fields.get("tasks", ())
        return next(((task["result"],) for task in tasks if task["id"] == step_id), None)

    def is_due(self, trigger: Trigger) -> bool:
        """Tell whether a trigger makes a checkpoint."""
        return str(trigger) in self._errand.triggers

    async def answer(self, step_id: str, name: str) -> Approval:
        """Ask the run for an answer, and wait until it has left one."""
        await self._journal.commit_async(_state_fact(self._errand, {"asks": name}))
        while True:
            if self._is_lost():
                raise LeaseLostError("the step belongs to somebody else", place=self._errand.child_id)
            pending = await asyncio.to_thread(self._requests.pending, self._errand.child_id)
            found = next((one for one in pending if one.data.get("name") == name), None)
            if found is not None:
                return await self._taken(step_id, name, found)
            await asyncio.sleep(self._errand.poll_seconds)

    async def spawn(self, parent: Frame, spawned: Spawned) -> Any:
        """Refuse to run another agent."""
        raise InvalidStateError(
            "an agent on a worker cannot spawn others",
            place=f"{self._errand.workflow_id} {parent.step_id}",
            hint="Spawn from an agent of this process, or fan out with `each`.",
        )

    async def _taken(self, step_id: str, name: str, found: Request) -> Approval:
        approval = Approval(
            bool(found.data["granted"]), found.actor or "", found.reason, found.data.get("value")
        )
        await self._journal.commit_async(answer_fact(step_id, name, approval, found.id))
        await asyncio.to_thread(self._requests.settle, [found.id])
        return approval


def _refusal(errand: Errand, known: Mapping[str, Any]) -> str | None:
    """Say why an errand must not be carried out; None if it may."""
    if known.get("errand") != errand.id or known.get("status") != "running":
        return "the run has taken the errand back"
    if known.get("begun") == errand.id:
        return "another worker has begun it, and is gone"
    return None


def _state_fact(errand: Errand, state: Mapping[str, Any]) -> Fact:
    step_id = errand.frame.step_id
    return Fact(AGENT_STATE_EVENT, {"state": dict(state)}, step_id, step_id)
