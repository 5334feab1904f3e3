"""`loop`: a `while` loop whose state survives the process, in three lines."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from holdfast.application.app import App
from holdfast.application.commands import AppendEvent, CheckpointOptions
from holdfast.application.commit_queue import Ticket
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointError, GraphChangedError, InvalidStateError, LeaseLostError
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.run_events import RUN_UPDATED
from holdfast.domain.state import WorkflowState
from holdfast.execution.claim import Claim
from holdfast.execution.declared import Service, StoreLike
from holdfast.execution.drift import owner_of
from holdfast.execution.faults import shown
from holdfast.execution.journal import LOST
from holdfast.execution.options import LEASE_SECONDS
from holdfast.execution.outcome import RunStatus
from holdfast.execution.running import RUN
from holdfast.execution.tenure import aside, brought_back, opened, taken

State = TypeVar("State", dict[str, Any], WorkflowState)
_Run = TypeVar("_Run", bound="Carried[Any]")
_ERROR_CHARS = 2_000
_LOG = logging.getLogger("holdfast")


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Where a loop is kept, and what it begins with."""

    store: StoreLike
    workflow_id: str
    start: dict[str, Any] | WorkflowState
    app: App | None
    lease_seconds: float


class Carried(Generic[State]):
    """A loop under way.

    Attributes:
        state: what it goes on from: change it as you like, and call `save`.
        service: the service it is kept by, for decisions, events and whatever else belongs to the workflow.
        is_resumed: whether it goes on with what an earlier process left.
        is_over: whether it ended before: `state` is what it ended with, and there is nothing left to do.
    """

    def __init__(self, settings: LoopSettings, service: Service, claim: Claim) -> None:
        self.service = service
        self.workflow_id = settings.workflow_id
        self.is_resumed = False
        self.is_over = False
        self._is_paused = False
        self._is_left = False
        #: Held while a save is queued: it comes before what is recorded of the end, or is refused.
        self._mutex = threading.Lock()
        self._claim = claim
        self._recording = service.recording
        #: What is kept beside a plain state.
        self._around = WorkflowState(workflow_id=settings.workflow_id)
        self._saved: CheckpointID | None = None
        self._hold(settings.start)

    def pause(self) -> None:
        """Let the end of the block not be the end of the loop: the next process goes on with it.

        Raises:
            InvalidStateError: the block has ended before, and the loop with it.
        """
        with self._mutex:
            self._check_inside()
            self._is_paused = True

    def _leave(self) -> None:
        """Let nothing more be saved: the loop is done, or of whoever enters it next."""
        with self._mutex:
            self._is_left = True

    def _queue(self) -> Ticket:
        """Queue a checkpoint for whoever saves, as long as the block goes on."""
        with self._mutex:
            self._check_inside()
            return self._submit()

    def _check_inside(self) -> None:
        if self._is_left:
            raise InvalidStateError(
                "the block of the loop has ended, and nothing more is recorded here",
                place=self.workflow_id,
                hint="Save before the block ends. To go on later, call `run.pause()` there, and enter the"
                " loop again.",
            )

    def _submit(self, status: str = "in_progress", kind: CheckpointType | None = None) -> Ticket:
        """Queue a checkpoint of the state as it is now."""
        if self.is_over:
            raise InvalidStateError(
                "the loop ended before, and nothing may be added to it",
                place=self.workflow_id,
                hint="Look at `run.is_over`, or give the new one an id of its own.",
            )
        if self._claim.is_lost:
            raise LeaseLostError(
                "somebody else carries the loop on, and nothing more is recorded here",
                place=self.workflow_id,
                hint="Leave the block, and enter it again to go on from the newest state.",
            )
        options: CheckpointOptions = {"force": True} if kind is None else {"force": True, "type": kind}
        return self._recording.checkpoint(self.workflow_id, self._told(status), options)

    def _wait(self, ticket: Ticket) -> CheckpointID:
        try:
            made: CheckpointID = self._recording.wait(ticket)
        except LOST:
            self._claim.lose()
            raise
        self._saved = made
        return made

    def _begin(self) -> None:
        """Go on from the newest state, or record the first one."""
        found = brought_back(self._recording, self.workflow_id)
        if found is None or found.checkpoint_id is None:
            self._around.started_at = self._recording.now()
            self._wait(self._submit(kind=CheckpointType.WORKFLOW_START))
        else:
            self.is_resumed = True
            self._resume(found)

    def _resume(self, found: WorkflowState) -> None:
        """Take over what is stored, if that is a loop's: one that begins as a run does may go on as one."""
        owner, own = owner_of(found), self.state
        if owner is not None and not (isinstance(own, WorkflowState) and owner_of(own) == owner):
            raise GraphChangedError(
                f"the id belongs to {owner!r}, and not to a loop",
                place=self.workflow_id,
                hint="Give the loop an id of its own.",
            )
        self._around = found
        self._hold(found if isinstance(self.state, WorkflowState) else found.context)

    def _end(self) -> None:
        """Record that the loop is done, or that it pauses."""
        if self._is_paused:
            self._wait(self._submit(str(RunStatus.PAUSED), CheckpointType.STAGE_START))
            return
        ended = self._submit(str(RunStatus.COMPLETED), CheckpointType.WORKFLOW_COMPLETE)
        self._recording.mark(self._wait(ended))

    def _fail(self, fault: BaseException) -> None:
        """Record why the loop stopped. The state stays the one last saved: what came after is half done."""
        if self._claim.is_lost:
            return
        status = RunStatus.FAILED if isinstance(fault, Exception) else RunStatus.STOPPED
        told = self._recording.hidden(shown(fault), _ERROR_CHARS)
        data = {"fields": {"status": str(status)}, "error": told}
        command = AppendEvent(self.workflow_id, RUN_UPDATED, data, None, RUN)
        try:
            self._recording.wait(self._recording.event(command))
        except CheckpointError as problem:
            # What ended the loop is what its caller has to hear of.
            _LOG.warning("that %s failed is not recorded: %s", self.workflow_id, problem)
            return
        if status is RunStatus.FAILED and self._saved is not None:
            self._recording.mark(self._saved, told)

    def _hold(self, state: Any) -> None:
        self.state: State = state

    def _told(self, status: str) -> WorkflowState:
        resumable = status != RunStatus.COMPLETED
        if isinstance(self.state, WorkflowState):
            return replace(self.state, status=status, resumable=resumable)
        return replace(self._around, status=status, resumable=resumable, context=self.state)


class LoopRun(Carried[State]):
    """A loop under way in a plain program."""

    def save(self) -> CheckpointID:
        """Make the state durable: whatever happens now, the loop goes on from here.

        Raises:
            LeaseLostError: somebody else carries the loop on, and nothing was written.
            InvalidStateError: the loop, or the block that has it, ended before, and nothing was written.
            CheckpointWriteError: it could not be made durable.
        """
        return self._wait(self._queue())


class AsyncLoopRun(Carried[State]):
    """A loop under way in a coroutine."""

    async def save(self) -> CheckpointID:
        """Make the state durable as `LoopRun.save` does; it is read before anything else runs."""
        return await asyncio.to_thread(self._wait, self._queue())


class Loop(Generic[State]):
    """What `loop` answers: use it with `with` or `async with`, once."""

    def __init__(self, settings: LoopSettings) -> None:
        self._settings = settings
        self._inside: AbstractContextManager[LoopRun[State]] | None = None
        self._beside: AbstractAsyncContextManager[AsyncLoopRun[State]] | None = None

    def __enter__(self) -> LoopRun[State]:
        self._inside = _carried(self._settings, LoopRun[State])
        return self._inside.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._inside is not None
        return self._inside.__exit__(kind, fault, trace)

    async def __aenter__(self) -> AsyncLoopRun[State]:
        self._beside = aside(_carried(self._settings, AsyncLoopRun[State]))
        return await self._beside.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._beside is not None
        return await self._beside.__aexit__(kind, fault, trace)


@contextmanager
def _carried(settings: LoopSettings, make: Callable[[LoopSettings, Service, Claim], _Run]) -> Iterator[_Run]:
    """Have a loop meanwhile, and record how it ends."""
    with opened(settings.store, settings.app) as service:
        recording, workflow_id = service.recording, settings.workflow_id
        over = recording.ended(workflow_id)
        if over is None:
            with taken(recording, workflow_id, settings.lease_seconds) as claim:
                # Whoever had it before may have brought it to its end meanwhile.
                over = recording.ended(workflow_id)
                if over is None:
                    yield from _watched(make(settings, service, claim))
                    return
        run = make(settings, service, Claim())
        run._resume(over)
        run.is_over = True
        yield run


def _watched(run: _Run) -> Iterator[_Run]:
    run._begin()
    try:
        yield run
    except BaseException as fault:
        run._leave()
        run._fail(fault)
        raise
    run._leave()
    run._end()


@overload
def loop(
    store: StoreLike,
    workflow_id: str,
    start: WorkflowState,
    *,
    app: App | None = ...,
    lease_seconds: float = ...,
) -> Loop[WorkflowState]: ...


@overload
def loop(
    store: StoreLike,
    workflow_id: str,
    start: Mapping[str, Any] | None = ...,
    *,
    app: App | None = ...,
    lease_seconds: float = ...,
) -> Loop[dict[str, Any]]: ...


def loop(
    store: StoreLike,
    workflow_id: str,
    start: Mapping[str, Any] | WorkflowState | None = None,
    *,
    app: App | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> Loop[Any]:
    """Keep the state of a loop: `with loop(store, id, {"i": 0}) as run`, then `run.state` and `run.save()`.

    On entry the state is the one last saved under this id, or `start`. When the block ends the loop is
    completed, and whoever enters it again finds `run.is_over` and the last state. An exception leaves it
    failed, at the state last saved: enter it again to go on from there.

    Args:
        store: a URL, or an open service.
        workflow_id: the loop; only one process at a time carries it on.
        start: what it begins with: a mapping, or a WorkflowState, whose messages and tasks are shown as such.
        app: types that the state holds, reducers and migrations, for a store that is opened here.
        lease_seconds: how long others wait at most once this machine is gone.

    Raises:
        LeaseHeldError: somebody else carries it on.
        GraphChangedError: the id belongs to a workflow or to a durable function.
    """
    check_workflow_id(workflow_id)
    given = start if isinstance(start, WorkflowState) else dict(start or {})
    return Loop(LoopSettings(store, workflow_id, given, app, lease_seconds))
