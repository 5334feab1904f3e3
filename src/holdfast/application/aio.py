"""`AsyncCheckpointService`: the same face for coroutines, over the same machinery.

Commits are prepared on the loop's own thread and led by the background thread, which tells the loop
once for everything that became durable together. Reads run in a small executor of the service's own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack, overload

from holdfast.application.async_recovery_calls import AsyncRecoveryCalls
from holdfast.application.commands import (
    AppendEvent,
    CheckpointName,
    CheckpointOptions,
    State,
    check_mapping,
    check_options,
)
from holdfast.application.commit_queue import OnDone, Ticket
from holdfast.application.engine import Engine
from holdfast.application.kit import Kit
from holdfast.application.rooms import Rooms
from holdfast.application.service import HandlerService, decision_data
from holdfast.domain.checkpoint import Checkpoint, CheckpointMeta
from holdfast.domain.delta import Operation
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.record import Lease
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.state import WorkflowState

if TYPE_CHECKING:
    from holdfast.application.retain import PruneResult
    from holdfast.application.validate import ValidationResult

_READERS_MAX = 4

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class Landing:
    """Brings outcomes to an event loop, with one wake-up for all that arrive together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._mutex = threading.Lock()
        self._landed: list[tuple[Ticket, asyncio.Future[Any]]] = []

    def bring(self, ticket: Ticket, future: asyncio.Future[Any]) -> None:
        """Take an outcome over from the thread that led the commit."""
        with self._mutex:
            self._landed.append((ticket, future))
            is_first = len(self._landed) == 1
        if is_first:
            # A loop that was closed meanwhile has nobody left who waits.
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._mutex:
            landed, self._landed = self._landed, []
        for ticket, future in landed:
            # A caller that was cancelled no longer listens; its commit is whole all the same.
            if future.done():
                continue
            if ticket.error is None:
                future.set_result(ticket.result)
            else:
                future.set_exception(ticket.error)


class AsyncCheckpointService(AsyncRecoveryCalls, Rooms):
    """Checkpoints, events and their upkeep over one store, for one event loop at a time.

    Names of checkpoints, arguments, answers and errors are those of CheckpointService. A call that is
    cancelled leaves its commit whole: it becomes durable, or fails as a whole.
    """

    def __init__(self, kit: Kit) -> None:
        self._engine = Engine(kit)
        self._engine.open_face = lambda: HandlerService(self._engine)
        self._engine.start_up()
        self._executor = ThreadPoolExecutor(_READERS_MAX, thread_name_prefix="holdfast-read")
        self._landing: Landing | None = None

    @overload
    async def create_checkpoint(
        self,
        workflow_id: str,
        state: State,
        *,
        wait: Literal[True] = ...,
        **options: Unpack[CheckpointOptions],
    ) -> CheckpointID: ...

    @overload
    async def create_checkpoint(
        self, workflow_id: str, state: State, *, wait: Literal[False], **options: Unpack[CheckpointOptions]
    ) -> asyncio.Future[CheckpointID]: ...

    async def create_checkpoint(
        self, workflow_id: str, state: State, *, wait: bool = True, **options: Unpack[CheckpointOptions]
    ) -> CheckpointID | asyncio.Future[CheckpointID]:
        """Record the state of a workflow durably; see CheckpointService.

        The state is read on the loop's thread, so no other task changes it meanwhile. With `wait=False`
        a future is returned as soon as the state was read.
        """
        engine = self._engine
        check_workflow_id(workflow_id)
        check_options(options)
        if "parent_checkpoint_id" in options or "dependent_checkpoint_ids" in options:
            options = await self._run(engine.name_by_uuid, options)
        await self._warm(workflow_id)
        command = engine.checkpoint_command(workflow_id, state, options)
        future: asyncio.Future[CheckpointID] = self._start(
            lambda on_done: engine.writer.create(command, on_done), wait=wait
        )
        if not wait:
            return future
        checkpoint_id = await self._landed(future)
        return checkpoint_id

    async def restore_checkpoint(self, checkpoint_id: CheckpointName) -> WorkflowState:
        """Give back the state of a checkpoint, every byte of it verified."""
        return await self._run(self._engine.state_at, checkpoint_id)

    async def load_latest(self, workflow_id: str) -> WorkflowState | None:
        """Give back the newest state of a workflow, or None if it has no checkpoint."""
        return await self._run(self._engine.reader.latest, workflow_id)

    async def list_checkpoints(
        self, workflow_id: str, limit: int = 100, after: datetime | CheckpointName | int | None = None
    ) -> list[CheckpointMeta]:
        """List the newest checkpoints of a workflow, newest first."""
        return await self._run(self._engine.reader.listing, workflow_id, limit, after)

    async def get_by_id(self, checkpoint_id: CheckpointName) -> Checkpoint | None:
        """Tell everything about a checkpoint but its workflow's state; None if there is none."""
        return await self._run(self._engine.reader.checkpoint, checkpoint_id)

    async def prune_checkpoints(
        self,
        workflow_id: str,
        retain_count: int = 10,
        retain_days: int = 30,
        *,
        max_per_phase: int | None = None,
        policy: RetentionPolicy | None = None,
        dry_run: bool = False,
    ) -> PruneResult:
        """Remove checkpoints that are neither among the last few, nor young, nor pinned."""
        rules = policy or RetentionPolicy(retain_count, retain_days, max_per_phase)
        return await self._run(self._engine.prune, workflow_id, rules, dry_run=dry_run)

    async def delete(self, checkpoint_id: CheckpointName) -> bool:
        """Remove one checkpoint, leaving a tombstone; False if there is none."""
        return await self._run(self._engine.delete, checkpoint_id)

    async def validate_checkpoint(self, checkpoint_id: CheckpointName) -> ValidationResult:
        """Check a checkpoint's record, its place in the chain, its state and its blobs."""
        return await self._run(self._engine.validate, checkpoint_id)

    async def diff_checkpoints(self, a: CheckpointName, b: CheckpointName) -> list[Operation]:
        """Tell what turns the state of checkpoint `a` into that of `b`, as operations."""
        return await self._run(lambda: self._engine.travel.difference(a, b))

    async def fork_workflow(self, checkpoint_id: CheckpointName, new_workflow_id: str) -> CheckpointID:
        """Start a new workflow from the state of a checkpoint; answer its first checkpoint."""
        command = await self._run(self._engine.fork_command, checkpoint_id, new_workflow_id)
        await self._warm(new_workflow_id)
        forked: CheckpointID = await self._landed(
            self._start(lambda on_done: self._engine.writer.create(command, on_done))
        )
        return forked

    @overload
    async def append_event(
        self,
        workflow_id: str,
        type: str,
        data: Mapping[str, Any] | None = ...,
        *,
        agent_id: str | None = ...,
        step_id: str | None = ...,
        parent_id: str | None = ...,
        cp_seq: int | None = ...,
        cost: Mapping[str, Any] | None = ...,
        wait: Literal[True] = ...,
    ) -> Event: ...

    @overload
    async def append_event(
        self,
        workflow_id: str,
        type: str,
        data: Mapping[str, Any] | None = ...,
        *,
        agent_id: str | None = ...,
        step_id: str | None = ...,
        parent_id: str | None = ...,
        cp_seq: int | None = ...,
        cost: Mapping[str, Any] | None = ...,
        wait: Literal[False],
    ) -> asyncio.Future[Event]: ...

    async def append_event(
        self,
        workflow_id: str,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        agent_id: str | None = None,
        step_id: str | None = None,
        parent_id: str | None = None,
        cp_seq: int | None = None,
        cost: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> Event | asyncio.Future[Event]:
        """Record one fact in a workflow's journal durably."""
        check_workflow_id(workflow_id)
        await self._warm(workflow_id, is_head_enough=True)
        command = AppendEvent(
            workflow_id, type, {} if data is None else data, agent_id, step_id, parent_id, cp_seq, cost
        )
        future: asyncio.Future[Event] = self._start(
            lambda on_done: self._engine.writer.append(command, on_done), wait=wait
        )
        if not wait:
            return future
        event = await self._landed(future)
        return event

    async def record_decision(
        self,
        workflow_id: str,
        description: str,
        *,
        rationale: str | None = None,
        confidence: float | None = None,
        agent_id: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record a decision; recovery appends it to the state's `decisions`."""
        told = decision_data(description, rationale, confidence, data)
        if self._engine.kit.batch_decisions:
            check_workflow_id(workflow_id)
            await self._warm(workflow_id, is_head_enough=True)
            return self._engine.batch.append(AppendEvent(workflow_id, DECISION_EVENT, told, agent_id))
        return await self.append_event(workflow_id, DECISION_EVENT, told, agent_id=agent_id)

    async def update_agent_state(self, workflow_id: str, agent_id: str, state: Mapping[str, Any]) -> Event:
        """Record what an agent reports; recovery merges it into the agent's state."""
        told = {"state": dict(check_mapping("state", state))}
        return await self.append_event(workflow_id, AGENT_STATE_EVENT, told, agent_id=agent_id)

    async def events(
        self, workflow_id: str, *, after: int = 0, type: str | None = None, limit: int | None = None
    ) -> list[Event]:
        """Read a workflow's events in order, each verified on top of the one before."""
        return await self._run(self._engine.reader.events, workflow_id, after, type, limit)

    async def acquire_lease(self, workflow_id: str, owner: str, *, ttl_seconds: float = 30.0) -> Lease:
        """Take a workflow for one owner; what is recorded here from now on is recorded under this lease."""
        return await self._run(self._engine.writer.acquire, workflow_id, owner, ttl_seconds)

    async def renew_lease(self, lease: Lease, *, ttl_seconds: float = 30.0) -> Lease:
        """Give a lease new time from now on; also if it has expired, while nobody took the workflow over."""
        return await self._run(self._engine.writer.renew, lease, ttl_seconds)

    async def release_lease(self, lease: Lease) -> None:
        """Give a workflow up, so that others need not wait. A lease that is lost already stays lost."""
        await self._run(self._engine.writer.release, lease)

    async def lease_of(self, workflow_id: str) -> Lease | None:
        """Tell the last lease of a workflow that was not released; `is_live` says whether it has expired."""
        return await self._run(self._engine.kit.store.lease, check_workflow_id(workflow_id))

    async def workflows(self) -> list[str]:
        """Name every workflow that has a checkpoint or an event."""
        return await self._run(lambda: sorted(self._engine.kit.store.workflows()))

    async def stats(self) -> dict[str, Any]:
        """Count what the store holds, in numbers and bytes; what is told beyond that differs by store."""
        return await self._run(self._engine.kit.store.stats)

    async def flush(self) -> None:
        """Wait until everything recorded with `wait=False` is durable, and keyframes that are due too."""
        await self._run(self._engine.flush)

    async def close(self) -> None:
        """Finish everything and close the store. Idempotent."""
        await asyncio.to_thread(self._engine.close)
        self._executor.shutdown(wait=False)

    async def __aenter__(self) -> AsyncCheckpointService:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _warm(self, workflow_id: str, *, is_head_enough: bool = False) -> None:
        """See to it that preparing a commit on the loop's thread need not read the store."""
        writer = self._engine.writer
        if not writer.bases.is_warm(workflow_id, is_head_enough=is_head_enough):
            await self._run(writer.warm, workflow_id, is_head_enough=is_head_enough)

    def _start(self, submit: Callable[[OnDone], Ticket], *, wait: bool = True) -> asyncio.Future[Any]:
        """Queue a commit and answer a future of this loop for its result."""
        loop = asyncio.get_running_loop()
        landing = self._landing
        if landing is None or landing.loop is not loop:
            landing = self._landing = Landing(loop)
        future: asyncio.Future[Any] = loop.create_future()
        engine = self._engine

        def on_done(ticket: Ticket) -> None:
            if ticket.error is not None and not wait:
                engine.failure = engine.failure or ticket.error
            landing.bring(ticket, future)

        submit(on_done)
        return future

    async def _landed(self, future: asyncio.Future[_Answer]) -> _Answer:
        answer = await future
        if not self._engine.kit.background and self._engine.housekeeper.has_work:
            await self._run(self._engine.housekeeper.run)
        return answer
