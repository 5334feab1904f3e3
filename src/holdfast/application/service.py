"""`CheckpointService`: everything a workflow asks of Holdfast, for callers that wait."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

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
from holdfast.application.recovery_calls import RecoveryCalls
from holdfast.application.rooms import Rooms
from holdfast.domain.checkpoint import Checkpoint, CheckpointMeta
from holdfast.domain.delta import Operation
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.record import Lease
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT, check_confidence
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.state import WorkflowState

if TYPE_CHECKING:
    from holdfast.application.retain import PruneResult
    from holdfast.application.validate import ValidationResult


class CheckpointService(RecoveryCalls, Rooms):
    """Checkpoints, events and their upkeep over one store. Safe to use from several threads.

    Checkpoints are named by a CheckpointID or as text: `WF@42`, `WF@latest~1`, `WF@phase:2`,
    `WF@stage:NAME`, a UUID or the beginning of one, or the path of a checkpoint file. To restore, compare
    and fork, also as a point between two: `WF@event:123` or `WF@time:2026-01-11T14:30:00Z`, that is the
    newest checkpoint at or before it and the events since.
    """

    def __init__(self, kit: Kit) -> None:
        self._engine = Engine(kit)
        self._engine.open_face = lambda: HandlerService(self._engine)
        self._engine.start_up()

    @overload
    def create_checkpoint(
        self,
        workflow_id: str,
        state: State,
        *,
        wait: Literal[True] = ...,
        **options: Unpack[CheckpointOptions],
    ) -> CheckpointID: ...

    @overload
    def create_checkpoint(
        self, workflow_id: str, state: State, *, wait: Literal[False], **options: Unpack[CheckpointOptions]
    ) -> Future[CheckpointID]: ...

    def create_checkpoint(
        self, workflow_id: str, state: State, *, wait: bool = True, **options: Unpack[CheckpointOptions]
    ) -> CheckpointID | Future[CheckpointID]:
        """Record the state of a workflow durably.

        The state is read once, before the call returns: change it freely afterwards.

        Args:
            workflow_id: the run; created by its first checkpoint.
            state: a WorkflowState, or a mapping that is taken as its `context`.
            wait: False returns a future at once; the commit follows in the background.
            options: type, stage_id, agent_id, stage_state, agent_state, session_id, agent_version,
                resume_handler, max_retries, parent_checkpoint_id, dependent_checkpoint_ids, force,
                expected_sequence, append_only; see CheckpointOptions.

        Returns:
            The id of the new checkpoint, or of the last one if this would only repeat it.

        Raises:
            CheckpointConflictError: somebody else committed to the workflow first.
            LeaseHeldError: another owner has the workflow for itself.
            LeaseLostError: the lease that was acquired here was released, or another took over.
            CheckpointWriteError: it could not be made durable, or that is unknown.
            UnsupportedTypeError: the state holds a value of a type nobody registered.
            StateTooLargeError: the state exceeds the limit; nothing was written.
        """
        engine = self._engine
        if options:
            check_options(options)
        command = engine.checkpoint_command(workflow_id, state, options)
        if wait:
            checkpoint_id: CheckpointID = engine.wait(engine.writer.create(command))
            return checkpoint_id
        future: Future[CheckpointID] = Future()
        engine.writer.create(command, self._deliver_to(future))
        return future

    def restore_checkpoint(self, checkpoint_id: CheckpointName) -> WorkflowState:
        """Give back the state of a checkpoint, or at a point between two, every byte of it verified.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            CheckpointCorruptError: stored bytes are not what was committed.
        """
        return self._engine.state_at(checkpoint_id)

    def load_latest(self, workflow_id: str) -> WorkflowState | None:
        """Give back the newest state of a workflow, or None if it has no checkpoint."""
        return self._engine.reader.latest(workflow_id)

    def list_checkpoints(
        self, workflow_id: str, limit: int = 100, after: datetime | CheckpointName | int | None = None
    ) -> list[CheckpointMeta]:
        """List the newest checkpoints of a workflow, newest first.

        Args:
            workflow_id: the run.
            limit: at most so many.
            after: only those later than this moment, checkpoint or sequence.
        """
        return self._engine.reader.listing(workflow_id, limit, after)

    def get_by_id(self, checkpoint_id: CheckpointName) -> Checkpoint | None:
        """Tell everything about a checkpoint but its workflow's state; None if there is none."""
        return self._engine.reader.checkpoint(checkpoint_id)

    def prune_checkpoints(
        self,
        workflow_id: str,
        retain_count: int = 10,
        retain_days: int = 30,
        *,
        max_per_phase: int | None = None,
        policy: RetentionPolicy | None = None,
        dry_run: bool = False,
    ) -> PruneResult:
        """Remove checkpoints that are neither among the last few, nor young, nor pinned.

        At least two stay, and whatever those that stay are restored from.

        Args:
            workflow_id: the run.
            retain_count: how many of the newest stay.
            retain_days: those younger than this stay.
            max_per_phase: at most so many of each phase stay.
            policy: all the rules at once, instead of these three.
            dry_run: only tell what would be removed.
        """
        rules = policy or RetentionPolicy(retain_count, retain_days, max_per_phase)
        return self._engine.prune(workflow_id, rules, dry_run=dry_run)

    def delete(self, checkpoint_id: CheckpointName) -> bool:
        """Remove one checkpoint, leaving a tombstone; False if there is none."""
        return self._engine.delete(checkpoint_id)

    def validate_checkpoint(self, checkpoint_id: CheckpointName) -> ValidationResult:
        """Check a checkpoint's record, its place in the chain, its state and its blobs.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
        """
        return self._engine.validate(checkpoint_id)

    def diff_checkpoints(self, a: CheckpointName, b: CheckpointName) -> list[Operation]:
        """Tell what turns the state at `a`, a checkpoint or a point, into that at `b`, as operations."""
        return self._engine.travel.difference(a, b)

    def fork_workflow(self, checkpoint_id: CheckpointName, new_workflow_id: str) -> CheckpointID:
        """Start a new workflow from the state at a checkpoint or a point; answer its first checkpoint.

        Raises:
            CheckpointConflictError: there is a workflow of that name.
        """
        command = self._engine.fork_command(checkpoint_id, new_workflow_id)
        forked: CheckpointID = self._engine.wait(self._engine.writer.create(command))
        return forked

    @overload
    def append_event(
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
    def append_event(
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
    ) -> Future[Event]: ...

    def append_event(
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
    ) -> Event | Future[Event]:
        """Record one fact in a workflow's journal durably.

        Args:
            workflow_id: the run.
            type: what happened, in capitals: `TASK_ASSIGNED`.
            data: the particulars.
            agent_id: who it happened to.
            step_id: the step of the run, for tracing.
            parent_id: the step that led to it.
            cp_seq: sequence of the checkpoint it is about.
            cost: what it cost: `{"tokens": 100, "usd": 0.002}`.
            wait: False returns a future at once.
        """
        check_workflow_id(workflow_id)
        command = AppendEvent(
            workflow_id, type, {} if data is None else data, agent_id, step_id, parent_id, cp_seq, cost
        )
        if wait:
            event: Event = self._engine.wait(self._engine.writer.append(command))
            return event
        future: Future[Event] = Future()
        self._engine.writer.append(command, self._deliver_to(future))
        return future

    def record_decision(
        self,
        workflow_id: str,
        description: str,
        *,
        rationale: str | None = None,
        confidence: float | None = None,
        agent_id: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> Event:
        """Record a decision; recovery appends it to the state's `decisions`.

        With the setting `batch_decisions` it goes with the next commit, and this does not wait: the event
        says so by `durable`.
        """
        told = decision_data(description, rationale, confidence, data)
        if self._engine.kit.batch_decisions:
            check_workflow_id(workflow_id)
            return self._engine.batch.append(AppendEvent(workflow_id, DECISION_EVENT, told, agent_id))
        return self.append_event(workflow_id, DECISION_EVENT, told, agent_id=agent_id)

    def update_agent_state(self, workflow_id: str, agent_id: str, state: Mapping[str, Any]) -> Event:
        """Record what an agent reports; recovery merges it into the agent's state."""
        told = {"state": dict(check_mapping("state", state))}
        return self.append_event(workflow_id, AGENT_STATE_EVENT, told, agent_id=agent_id)

    def events(
        self, workflow_id: str, *, after: int = 0, type: str | None = None, limit: int | None = None
    ) -> list[Event]:
        """Read a workflow's events in order, each verified on top of the one before.

        Args:
            workflow_id: the run.
            after: only those with a higher sequence.
            type: only those of this type.
            limit: at most so many.
        """
        return self._engine.reader.events(workflow_id, after, type, limit)

    def acquire_lease(self, workflow_id: str, owner: str, *, ttl_seconds: float = 30.0) -> Lease:
        """Take a workflow for one owner; what is recorded here from now on is recorded under this lease.

        While the lease lives, others can neither acquire the workflow nor write it. Renew it in time.
        Once it has expired anybody may take it over, and from that moment nothing more is recorded here:
        the call fails with LeaseLostError, however long this process was asleep, until it acquires again.

        Args:
            workflow_id: the run; it need not exist yet.
            owner: who works on it. The same owner may acquire again, and so fences its earlier self off.
            ttl_seconds: how long the lease lives, by the clock of the store.

        Raises:
            LeaseHeldError: another owner has the workflow.
        """
        return self._engine.writer.acquire(workflow_id, owner, ttl_seconds)

    def renew_lease(self, lease: Lease, *, ttl_seconds: float = 30.0) -> Lease:
        """Give a lease new time from now on; also if it has expired, while nobody took the workflow over.

        Raises:
            LeaseLostError: it was released, another was granted, or it is a parent process's.
        """
        return self._engine.writer.renew(lease, ttl_seconds)

    def release_lease(self, lease: Lease) -> None:
        """Give a workflow up, so that others need not wait. A lease that is lost already stays lost."""
        self._engine.writer.release(lease)

    def lease_of(self, workflow_id: str) -> Lease | None:
        """Tell the last lease of a workflow that was not released; `is_live` says whether it has expired."""
        return self._engine.kit.store.lease(check_workflow_id(workflow_id))

    def workflows(self) -> list[str]:
        """Name every workflow that has a checkpoint or an event."""
        return sorted(self._engine.kit.store.workflows())

    def stats(self) -> dict[str, Any]:
        """Count what the store holds, in numbers and bytes; what is told beyond that differs by store."""
        return self._engine.kit.store.stats()

    def flush(self) -> None:
        """Wait until everything recorded with `wait=False` is durable, and keyframes that are due too.

        Raises:
            CheckpointError: one of them failed since the last flush.
        """
        self._engine.flush()

    def close(self) -> None:
        """Finish everything and close the store. Idempotent."""
        self._engine.close()

    def __enter__(self) -> CheckpointService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _deliver_to(self, future: Future[Any]) -> OnDone:
        """Make what tells a future the outcome of a commit."""

        def deliver(ticket: Ticket) -> None:
            if ticket.error is None:
                future.set_result(ticket.result)
            else:
                self._engine.failure = self._engine.failure or ticket.error
                future.set_exception(ticket.error)

        future.set_running_or_notify_cancel()
        return deliver


class HandlerService(CheckpointService):
    """The service as a handler has it: over the engine that recovers, and so under its lease.

    A handler that opened the store anew would be refused: the workflow is taken, by whoever recovers it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def close(self) -> None:
        """Leave everything to whoever opened it."""


def decision_data(
    description: str, rationale: str | None, confidence: float | None, data: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Put a decision into an event's data."""
    check_confidence(confidence)
    told = {"description": description, "rationale": rationale, "confidence": confidence}
    more = {} if data is None else check_mapping("data", data)
    return {**{name: value for name, value in told.items() if value is not None}, **more}
