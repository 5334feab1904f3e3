"""Recording several facts of one workflow in one commit, and waiting for that in one's own way."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.application.commands import AppendEvent, CheckpointName, CheckpointOptions, State
from holdfast.application.commit_queue import OnDone, Ticket
from holdfast.application.marking import mark
from holdfast.application.recovery.owners import is_dead, own_name
from holdfast.application.recovery.statuses import hidden
from holdfast.application.requests import Requests
from holdfast.application.resolve import known_head, living, resolve
from holdfast.application.retain import PruneResult
from holdfast.application.stored_state import StoredState
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import CheckpointType, has_ended
from holdfast.domain.errors import (
    CheckpointWriteError,
    KeyDestroyedError,
    UnstorableValueError,
    UnsupportedTypeError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.keyring_file import workflow_scope
from holdfast.domain.plain import Plain, TypeRegistry
from holdfast.domain.record import Lease
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.run_events import AGENT_SKIPPED, RUN_UPDATED
from holdfast.domain.skipping import GOING_ON, agent_of, with_skipped
from holdfast.domain.state import WorkflowState
from holdfast.domain.telemetry import Tracing
from holdfast.domain.unwritten import Unwritten

#: The step that a run tells of itself under.
_RUN = "run"
#: Changes the fields of a state that a fork begins with.
Edit = Callable[[dict[str, Any]], dict[str, Any]]

if TYPE_CHECKING:
    from holdfast.application.engine import Engine
    from holdfast.application.planned import Check
    from holdfast.application.recovery.statuses import Standing
    from holdfast.domain.annotation import Annotation
    from holdfast.domain.retention import RetentionPolicy


class Recording:
    """Facts that ride on each other's commits. Safe to use from several threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.reducers = engine.kit.app.reducers

    @property
    def url(self) -> str:
        """Where the store is, without secrets."""
        return self._engine.kit.store.url

    @property
    def types(self) -> TypeRegistry:
        """The types that can be stored."""
        return self._engine.kit.registry

    @property
    def tracing(self) -> Tracing | None:
        """What makes spans; None where nobody traces."""
        return self._engine.kit.tracing

    @property
    def requests(self) -> Requests:
        """What is asked of workflows."""
        return Requests(self._engine.kit, self._engine.trail)

    def lease(self, workflow_id: str) -> Lease | None:
        """Answer the last lease of a workflow that was not released."""
        return self._engine.kit.store.lease(workflow_id)

    def check_lease(self, workflow_id: str) -> None:
        """Make sure that a workflow that was taken here was not lost since.

        Raises:
            LeaseLostError: it was.
        """
        self._engine.writer.lease_held(workflow_id)

    def event_seq(self, workflow_id: str) -> int:
        """Tell how far the journal of a workflow is."""
        return self._engine.kit.store.head(workflow_id).event_seq

    def head(self, workflow_id: str) -> tuple[int, int]:
        """Tell the last checkpoint that a workflow ever had, 0 for none, and how far its journal is.

        What was acknowledged and waits for a store that can be written counts.
        """
        held = self._engine.writer.held_base(workflow_id)
        head = self._engine.kit.store.head(workflow_id) if held is None else held.head
        return head.sequence, head.event_seq

    def waits(self, workflow_id: str) -> bool:
        """Tell whether something of a workflow waits for a store that can be written."""
        return self._engine.writer.held_base(workflow_id) is not None

    def unwritten(self, workflow_id: str) -> Unwritten:
        """Tell what of a workflow the store does not have; once it is closed, what became of that."""
        return self._engine.safety.unwritten(workflow_id)

    def forget_refused(self, workflow_id: str) -> None:
        """Tell no more of what the store refused of a workflow: somebody begins with what it has."""
        self._engine.safety.forget_refused(workflow_id)

    def key_of(self, workflow_id: str) -> str:
        """Name the key that a workflow is sealed with, empty for none; one that is gone shows in a second."""
        vault = self._engine.kit.vault
        try:
            key = None if vault is None else vault.keyring.find(workflow_scope(workflow_id))
        except KeyDestroyedError:
            key = None
        return "" if key is None else key.id

    def events(self, workflow_id: str, after: int) -> list[Event]:
        """Answer what was recorded in a workflow after an event; whoever runs it reads untold."""
        reader = self._engine.reader
        found = (event for event in reader.opened_events(workflow_id, after) if event.seq > after)
        return [reader.with_values(event) for event in found]

    def event(self, command: AppendEvent, on_done: OnDone | None = None, *, is_urgent: bool = True) -> Ticket:
        """Queue an event; what is not urgent goes with the next commit that is."""
        return self._engine.writer.append(command, on_done, is_urgent=is_urgent)

    def checkpoint(
        self,
        workflow_id: str,
        state: State,
        options: CheckpointOptions,
        on_done: OnDone | None = None,
        *,
        origin: str | None = None,
    ) -> Ticket:
        """Queue a checkpoint; the state is read before this returns.

        Args:
            workflow_id: the workflow.
            state: its state.
            options: what is said beside it.
            on_done: called once it is decided.
            origin: the checkpoint of another workflow that this one, which is new, begins as.
        """
        command = self._engine.checkpoint_command(workflow_id, state, options)
        if origin is not None:
            found = resolve(self._engine.kit.store, origin)
            told = {"wf": found.workflow_id, "seq": found.entry.sequence, "checksum": found.entry.checksum}
            command = replace(command, forked_from=told)
        return self._engine.writer.create(command, on_done)

    def state(self, workflow_id: str, sequence: int) -> StoredState:
        """Answer the state of a checkpoint: as it is remembered, else read back and verified.

        What is remembered is what was given, secrets included, which never reach the store.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
        """
        engine = self._engine
        with engine.writer.bases.slot(workflow_id) as slot:
            base, pending = slot.base, slot.pending
        if pending is not None:
            # Until that is decided, what is remembered may be a state that never comes to be.
            engine.queue.settle(pending)
        if base is not None and base.sound and base.snapshot and base.id and base.id.sequence == sequence:
            facts: dict[str, int | str] = {"cp_seq": sequence, "checksum": base.id.checksum}
            told = engine.trail.told(AuditType.STATE_RESTORED, workflow_id=workflow_id, facts=facts)
            engine.trail.note(*told)
            return StoredState(engine.kit, base.snapshot)
        restored = engine.reader.restore(f"{workflow_id}@{sequence}", stacklevel=4)
        return StoredState(engine.kit, restored.to_fields())

    def newest_state(self, workflow_id: str) -> StoredState | None:
        """Answer the newest state of a workflow; None if it has none."""
        newest = next(living(self._engine.kit.store, workflow_id), None)
        return None if newest is None else self.state(workflow_id, newest.sequence)

    def keep_only(
        self, workflow_id: str, keep: Collection[int], *, through: int | None = None
    ) -> PruneResult:
        """Remove every checkpoint of a workflow but these, and what is needed for none of them.

        Args:
            through: what comes after this checkpoint stays: whoever chose did not know it.

        Raises:
            LegalHoldError: the workflow has to stay as it is.
        """
        return self._engine.removing.keep_only(workflow_id, keep, through=through)

    def prune_shown(self, workflow_id: str, policy: RetentionPolicy, shown: Collection[int]) -> PruneResult:
        """Remove just those checkpoints that somebody was shown, if a policy still lets all of them go.

        Raises:
            CheckpointConflictError: it does not any more; nothing was removed.
            LegalHoldError: the workflow has to stay as it is.
        """
        return self._engine.removing.prune_shown(workflow_id, policy, shown)

    def annotate(
        self, name: CheckpointName, labels: Collection[str] | None, note: str | None, check: Check
    ) -> Annotation:
        """Say something about a checkpoint, unless it stands in a way that a check refuses."""
        return self._engine.annotations.annotate(name, labels, note, check=check)

    def pin(self, name: CheckpointName, check: Check, *, is_kept: bool) -> Standing:
        """Pin a checkpoint or unpin it, unless it stands in a way that a check refuses."""
        statuses = self._engine.statuses
        return (statuses.pin if is_kept else statuses.unpin)(name, check=check)

    def packs(self, value: Any) -> bool:
        """Tell whether a value can be stored as it is."""
        try:
            self._engine.kit.packer.pack(value)
        except (UnsupportedTypeError, UnstorableValueError):
            return False
        return True

    def hides(self, name: str) -> bool:
        """Tell whether redaction hides a name that is a key, or what stands behind it."""
        redactor, probe = self._engine.kit.redactor, {name: "said"}
        return redactor is not None and redactor.tree(probe) != probe

    def hidden(self, text: str, chars_max: int) -> str:
        """Hide the secrets of a text, then cut it: half a secret would not be known as one."""
        return hidden(self._engine.kit, text, chars_max)

    def as_stored(self, value: Any) -> Any:
        """Answer a value as a store would give it back: nobody else holds a part of it.

        Raises:
            UnsupportedTypeError: nobody registered a type.
        """
        kit = self._engine.kit
        return kit.registry.revive(kit.packer.unpack(kit.packer.pack(value)), owned=True)

    def workflows(self) -> Iterator[str]:
        """Answer the ids of all workflows, in no particular order."""
        return self._engine.kit.store.workflows()

    def is_kept(self, ticket: Ticket) -> bool:
        """Tell whether a ticket's commit was made, once that is decided."""
        self._engine.queue.settle(ticket)
        return ticket.error is None

    def wait(self, ticket: Ticket) -> Any:
        """Answer a ticket's result once it is durable."""
        return self._engine.wait(ticket)

    def exists(self, workflow_id: str) -> bool:
        """Tell whether anything of a workflow was recorded."""
        head = self._engine.kit.store.head(workflow_id)
        return bool(head.sequence or head.event_seq)

    def ended(self, workflow_id: str) -> WorkflowState | None:
        """Answer the last state of a workflow that has ended; None if it has not."""
        newest = next(living(self._engine.kit.store, workflow_id), None)
        if newest is None or not has_ended(newest):
            return None
        return self._engine.reader.latest(workflow_id)

    def take(self, workflow_id: str, task: str, ttl_seconds: float) -> Lease:
        """Take a workflow for this process; the lease of a process of this machine that died is ended.

        Raises:
            LeaseHeldError: somebody else has it, and may be alive.
        """
        store = self._engine.kit.store
        lease = store.lease(workflow_id)
        if lease is not None and lease.is_live and is_dead(lease.owner):
            facts: dict[str, int | str] = {"owner": lease.owner, "token": lease.token}
            told = self._engine.trail.told(AuditType.LEASE_RELEASED, workflow_id=workflow_id, facts=facts)
            store.release(lease, told)
        owner = own_name(f"{task}-{secrets.token_hex(4)}")
        lease = self._engine.writer.acquire(workflow_id, owner, ttl_seconds)
        self.forget_refused(workflow_id)
        return lease

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        """Give a lease new time."""
        return self._engine.writer.renew(lease, ttl_seconds)

    def give_up(self, lease: Lease) -> None:
        """Give a workflow up, unless something of it still waits for a store that cannot be written.

        That is written under this lease when the service is closed, or sooner; the lease then ends by itself.
        """
        try:
            self._engine.safety.flush()
        except CheckpointWriteError:
            return
        self._engine.writer.release(lease)

    def recover(self, workflow_id: str) -> RecoveryResult:
        """Bring back the newest state of a workflow that is taken."""
        return self._engine.recovery.recover_workflow(workflow_id, RecoveryMode.LATEST, None)

    def locate(self, name: CheckpointName) -> tuple[str, bool]:
        """Answer the workflow of a checkpoint, and whether it is the last one of it.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
        """
        found = resolve(self._engine.kit.store, name)
        newest = next(living(self._engine.kit.store, found.workflow_id))
        return found.workflow_id, newest.sequence == found.entry.sequence

    def newest(self, workflow_id: str) -> str:
        """Name the point up to which everything of a workflow was recorded.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
        """
        return f"{workflow_id}@event:{known_head(self._engine.kit.store, workflow_id).event_seq}"

    def fork(self, name: CheckpointName, new_workflow_id: str, edit: Edit) -> CheckpointID:
        """Begin a new workflow from a checkpoint, with an edited state; answer its newest checkpoint.

        Raises:
            CheckpointConflictError: there is a workflow of that name.
        """
        engine = self._engine
        engine.wait(engine.writer.create(engine.fork_command(name, new_workflow_id)))
        state = engine.reader.latest(new_workflow_id)
        fields = edit(state.to_fields() if state is not None else {})
        edited = WorkflowState.from_fields(fields)
        options: CheckpointOptions = {"type": CheckpointType.WORKFLOW_START, "force": True}
        made: CheckpointID = self.wait(self.checkpoint(new_workflow_id, edited, options))
        return made

    def fork_skipping(
        self, name: CheckpointName, new_workflow_id: str, steps: Sequence[str], told: Mapping[str, Any]
    ) -> CheckpointID:
        """Begin a new workflow from any point, with steps skipped: they are so from its first commit on.

        Its journal tells of that afterwards, for whoever reads it.

        Args:
            told: why they are.

        Raises:
            CheckpointConflictError: there is a workflow of that name.
        """
        engine = self._engine
        command = engine.fork_command(name, new_workflow_id)
        tree = {key: one.tree for key, one in command.fields.items() if isinstance(one, Plain)}
        changed = {key: Plain(value) for key, value in with_skipped(tree, steps, told).items()}
        command = replace(command, fields={**command.fields, **changed})
        made: CheckpointID = self.wait(engine.writer.create(command))
        self.skip(new_workflow_id, steps, told)
        return made

    def skip(
        self, workflow_id: str, steps: Sequence[str], told: Mapping[str, Any], *, is_freed: bool = False
    ) -> None:
        """Record that steps are not needed, all of them in one group, which a store takes as one.

        Args:
            told: why they are not.
            is_freed: with them goes the last question that the run waited for.
        """
        facts = [AppendEvent(workflow_id, AGENT_SKIPPED, told, agent_of(step), step) for step in steps]
        if is_freed:
            data = {"fields": {"status": GOING_ON}}
            facts.append(AppendEvent(workflow_id, RUN_UPDATED, data, step_id=_RUN))
        for ticket in [self.event(fact, is_urgent=False) for fact in facts]:
            self.wait(ticket)

    def mark(self, checkpoint_id: CheckpointID, error: str | None = None) -> None:
        """Record how the work that a checkpoint stands for ended; a fault of the store is logged.

        Of one that waits that is recorded once the store has it, before the service is closed.
        """
        mark(self._engine, checkpoint_id, error)

    def report(self, events: Sequence[Event]) -> None:
        """Bring the progress report of a workflow up to date with events that were committed."""
        self._engine.progress.append(*events)

    def now(self) -> datetime:
        """Tell the time by the service's clock."""
        return self._engine.kit.clock.now()
