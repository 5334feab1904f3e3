"""The journal of one run: what is recorded, the state that follows from it, and who is told.

The state in memory is always the last committed one with the recorded events folded in, by the same
reducers that recovery uses. Threads of agents and the loop of the run record here alike.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from holdfast.application.commands import AppendEvent, CheckpointOptions
from holdfast.application.commit_queue import OnDone, Ticket, is_above_refused
from holdfast.application.recording import Recording
from holdfast.application.storage_faults import is_refusal, reason_of
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, LeaseHeldError, LeaseLostError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.progress_report import has_section
from holdfast.domain.state import WorkflowState
from holdfast.domain.unwritten import Unwritten
from holdfast.execution.floor import floor
from holdfast.execution.options import Subscriber

_LOG = logging.getLogger("holdfast")
#: Lists that only ever grow, which saves comparing them.
_APPEND_ONLY = ("tasks", "messages", "decisions")
#: The workflow belongs to somebody else: nothing more may be done here.
LOST = (LeaseLostError, LeaseHeldError)


class Care(Enum):
    """What follows when a fact that is waited for cannot be recorded; what the store refuses is raised."""

    #: A fault of the store is told, and the next checkpoint has what is missing.
    USUAL = "usual"
    #: To wait in memory for a store that can be written is not enough: that is raised, too.
    DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class Fact:
    """One event to record."""

    kind: str
    data: Mapping[str, Any]
    step_id: str
    agent: str | None = None
    care: Care = Care.USUAL
    #: The step that this one comes from.
    parent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Save:
    """A checkpoint to make of the state as it then is, and why."""

    reason: str
    options: CheckpointOptions = field(default_factory=CheckpointOptions)


@dataclass(frozen=True, slots=True)
class Queued:
    """Facts and checkpoints on their way, and since when."""

    items: tuple[Fact | Save, ...]
    tickets: list[Ticket | None]
    began: float


@dataclass(slots=True)
class Said:
    """A fact on its way that the state in memory has already, and the fields without it."""

    fact: Fact
    ticket: Ticket
    before: dict[str, Any]
    #: Whether nobody waits for it.
    is_noted: bool


class Pad(Protocol):
    """What an agent writes on while it works: the journal of its run, or a draft of it."""

    @property
    def workflow_id(self) -> str:
        """The run."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the state as of now."""

    @property
    def types(self) -> TypeRegistry:
        """The types that can be stored."""

    def agent_state(self, step_id: str) -> Mapping[str, Any]:
        """What is known of one step."""

    def hidden(self, text: str, chars_max: int) -> str:
        """Hide the secrets of a text, and cut it."""

    def note(self, fact: Fact) -> None:
        """Record a fact that goes with the next commit."""

    def tell(self, kind: str, **particulars: Any) -> None:
        """Tell subscribers."""


class Journal:
    """Records the facts of one run and holds its state."""

    def __init__(
        self,
        recording: Recording,
        workflow_id: str,
        fields: Mapping[str, Any],
        subscribers: tuple[Subscriber, ...] = (),
        session_id: str | None = None,
    ) -> None:
        self.recording = recording
        self.workflow_id = workflow_id
        self.hidden = recording.hidden
        self._fields = dict(fields)
        self._subscribers = subscribers
        self._session_id = session_id
        #: Given what people shall read, once it is committed.
        self.publish: Callable[[Sequence[Event]], None] | None = None
        self._readable: list[Ticket] = []
        #: What is not decided yet, and what has to be said again because of others.
        self._said: deque[Said] = deque()
        self._again: list[Fact] = []
        self._mutex = threading.RLock()
        #: Whether the store has said that the run is somebody else's now.
        self.is_lost = False
        #: Whether it goes on with a run that existed.
        self.is_resumed = False
        self.has_crashed = False
        #: Facts that were not recorded since the last checkpoint; the next one has what is missing.
        self.lost: Unwritten | None = None
        #: How many checkpoints were made, how long the last one took, and what went wrong.
        self.checkpoints = 0
        self.cost_seconds = 0.0
        self.warnings: list[str] = []

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the state as of now; never changed in place."""
        return self._fields

    @property
    def types(self) -> TypeRegistry:
        """The types that can be stored."""
        return self.recording.types

    def agent_state(self, step_id: str) -> Mapping[str, Any]:
        """Answer what is known of one step."""
        known: Mapping[str, Any] = self._fields.get("agent_states", {}).get(step_id, {})
        return known

    def tells_loss(self, fault: BaseException | None) -> bool:
        """Tell whether an error says that this run is lost; agents may be kept from another one."""
        return self.is_lost and isinstance(fault, LOST)

    def note(self, fact: Fact) -> None:
        """Record a fact that goes with the next commit."""
        self._queue(fact, self._on_noted, is_urgent=False)

    def begin(self, save: Save) -> None:
        """Record the first checkpoint; what cannot be stored is the caller's error, before anything ran.

        Raises:
            CheckpointError: nothing was recorded.
        """
        began = time.perf_counter()
        made = self.recording.wait(self._checkpoint(save, None))
        self._saved(made, save.reason, time.perf_counter() - began)

    def commit(self, *items: Fact | Save) -> CheckpointID | None:
        """Record facts and checkpoints together, and wait here until they are durable.

        A storage fault is told and never stops the run; answers the last checkpoint that was made.

        Raises:
            CheckpointWriteError: the store will never take a fact, which then was not said; or one that has
                to be durable is not.
        """
        return self.settled(self.queued(*items))

    def queued(self, *items: Fact | Save) -> Queued:
        """Record facts and checkpoints together; they are durable once they are settled."""
        began = time.perf_counter()
        return Queued(items, [self._submit(item) for item in items], began)

    def settled(self, queued: Queued) -> CheckpointID | None:
        """Wait here until what was queued is durable, as `commit` does."""
        results = [self._waited(ticket) for ticket in queued.tickets]
        made, again = self._concluded(queued.items, results, queued.began)
        return self.commit(*again) or made if again else made

    async def commit_async(self, *items: Fact | Save) -> CheckpointID | None:
        """Record facts and checkpoints as `commit` does, without keeping the loop from other work."""
        place = floor()
        if place.is_quiet:
            return self.commit(*items)
        began, awaited = time.perf_counter(), []
        for number, item in enumerate(items, 1):
            future, bring = place.expect()
            # The last one calls the leader, so that all of them go together.
            awaited.append((future, self._submit(item, bring, is_urgent=number == len(items))))
        if awaited and awaited[-1][1] is None:
            # A checkpoint that was refused calls nobody, and what is before it would wait for company.
            await asyncio.to_thread(lambda: [self._waited(ticket) for _, ticket in awaited])
        try:
            results = [await _landed(future) if ticket else None for future, ticket in awaited]
        finally:
            # Whoever is cancelled here listens no more; their commits are whole all the same.
            for future, _ in awaited:
                future.cancel()
        made, again = self._concluded(items, results, began)
        return await self.commit_async(*again) or made if again else made

    def tell(self, kind: str, **particulars: Any) -> None:
        """Tell subscribers; one that fails is no reason to stop."""
        for subscriber in self._subscribers:
            try:
                subscriber(kind, {"workflow_id": self.workflow_id, **particulars})
            except Exception:
                _LOG.exception("a subscriber of %s failed", self.workflow_id)

    def warn(self, text: str) -> None:
        """Note what is different from an undisturbed run."""
        self.warnings.append(text)
        self.tell("warning", text=text)

    def _submit(
        self, item: Fact | Save, on_done: OnDone | None = None, *, is_urgent: bool = True
    ) -> Ticket | None:
        if isinstance(item, Save):
            return self._save(item, on_done)
        return self._queue(item, on_done, is_urgent=is_urgent)

    def _queue(self, fact: Fact, on_done: OnDone | None, *, is_urgent: bool) -> Ticket | None:
        command = AppendEvent(
            self.workflow_id, fact.kind, fact.data, fact.agent, fact.step_id, fact.parent_id
        )
        with self._mutex:
            self._sort_out()
            before = self._fields
            ticket = self.recording.event(command, on_done, is_urgent=is_urgent)
            self._fold(ticket.result)
            self._said.append(Said(fact, ticket, before, is_noted=on_done == self._on_noted))
            if self.publish is not None and has_section(ticket.result):
                self._readable.append(ticket)
        return ticket

    def _save(self, save: Save, on_done: OnDone | None) -> Ticket | None:
        try:
            return self._checkpoint(save, on_done)
        except LOST:
            self.is_lost = True
            raise
        except CheckpointError as problem:
            self._failed(problem)
            return None

    def _checkpoint(self, save: Save, on_done: OnDone | None) -> Ticket:
        options: CheckpointOptions = {"force": True, "append_only": _APPEND_ONLY, **save.options}
        if self._session_id is not None:
            options["session_id"] = self._session_id
        with self._mutex:
            self._sort_out()
            state = WorkflowState.from_fields(self._fields)
            return self.recording.checkpoint(self.workflow_id, state, options, on_done)

    def _fold(self, event: Event) -> None:
        reducer = self.recording.reducers.get(event.type)
        if reducer is not None:
            self._fields = reducer(self._fields, event)

    def _sort_out(self) -> None:
        """Take back what the store refused, and say again what was only above it and nobody waits for."""
        while self._said and self._said[0].ticket.done:
            one = self._said.popleft()
            if not _is_unsaid(one.ticket):
                continue
            self._fields = one.before
            for later in self._said:
                later.before = self._fields
                if not _is_unsaid(later.ticket):
                    self._fold(later.ticket.result)
            if one.is_noted and is_above_refused(one.ticket.error):
                self._again.append(one.fact)
        again, self._again = self._again, []
        for fact in again:
            self.note(fact)

    def _waited(self, ticket: Ticket | None) -> Any:
        if ticket is None:
            return None
        try:
            return self.recording.wait(ticket)
        except CheckpointError as problem:
            return problem

    def _concluded(
        self, items: tuple[Fact | Save, ...], results: list[Any], began: float
    ) -> tuple[CheckpointID | None, tuple[Fact | Save, ...]]:
        """Answer the last checkpoint that was made, and what has to be recorded again; raise what must be."""
        with self._mutex:
            self._sort_out()
        if self._readable and self.publish is not None:
            self._published(self.publish)
        made, again, faults = None, list[Fact | Save](), list[CheckpointError]()
        for item, result in zip(items, results, strict=True):
            if isinstance(result, LOST):
                self.is_lost = True
                raise result
            if is_above_refused(result):
                again.append(item)
            elif isinstance(item, Fact):
                faults += self._unrecorded(item, result)
            elif isinstance(result, CheckpointError):
                self._failed(result)
            elif result is not None:
                made = result
                self._saved(result, item.reason, time.perf_counter() - began)
        if faults:
            raise faults[0]
        return made, tuple(again)

    def _unrecorded(self, fact: Fact, result: Any) -> list[CheckpointError]:
        """Tell that a fact is not recorded as it should be, if so; answer what its caller must hear of."""
        if isinstance(result, CheckpointError):
            self._not_recorded(result)
            return [result] if is_refusal(result) or fact.care is Care.DURABLE else []
        if fact.care is Care.DURABLE and not result.durable:
            return [CheckpointWriteError("it waits in memory for a store that can be written")]
        return []

    def _published(self, publish: Callable[[Sequence[Event]], None]) -> None:
        """Hand out what is durable by now; others may have queued more since."""
        with self._mutex:
            over = [ticket for ticket in self._readable if ticket.done]
            self._readable = [ticket for ticket in self._readable if not ticket.done]
        events = [ticket.result for ticket in over if ticket.error is None]
        if events:
            publish(events)

    def _saved(self, made: CheckpointID, reason: str, seconds: float) -> None:
        self.checkpoints += 1
        self.lost = None
        self.cost_seconds = seconds
        self.tell(
            "checkpoint_saved",
            checkpoint_id=str(made),
            timestamp=made.timestamp.isoformat(),
            reason=reason,
            seconds=seconds,
            durable=made.durable,
        )

    def _failed(self, problem: BaseException) -> None:
        _LOG.warning("a checkpoint of %s failed: %s", self.workflow_id, problem)
        self.warnings.append(f"a checkpoint failed: {problem}")
        self.tell("checkpoint_failed", error=str(problem))

    def _not_recorded(self, problem: BaseException) -> None:
        if not is_refusal(problem):
            before = self.lost.commits if self.lost else 0
            self.lost = Unwritten(before + 1, reason_of(problem), is_lost=True)
        _LOG.warning("something of %s is not durable: %s", self.workflow_id, problem)
        self.warnings.append(f"not durable: {problem}")
        self.tell("commit_failed", error=str(problem))

    def _on_noted(self, ticket: Ticket) -> None:
        problem = ticket.error
        if problem is not None and not isinstance(problem, LOST) and not is_above_refused(problem):
            self._not_recorded(problem)


def _is_unsaid(ticket: Ticket) -> bool:
    """Tell whether a fact is none: refused for good, or made on top of one that was."""
    return ticket.done and (is_refusal(ticket.error) or is_above_refused(ticket.error))


async def _landed(future: asyncio.Future[Any]) -> Any:
    """Answer what came of a commit, be it a problem: one that nobody looks at would be complained about."""
    try:
        return await future
    except CheckpointError as problem:
        return problem
