"""From a caller's state to a queued commit, one workflow at a time.

Under the workflow's lock: the base, one reading of the state, the change since the base, the record.
Waiting for durability happens outside of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.application.base import Base, Bases, Slot
from holdfast.application.commands import AppendEvent, CreateCheckpoint, check_mapping
from holdfast.application.commit_queue import CommitQueue, Lineage, OnDone, Ticket
from holdfast.application.deriving import derive
from holdfast.application.draft import Subject
from holdfast.application.housekeeping import Housekeeper, KeyframeJob
from holdfast.application.intent import EventIntent, StateIntent, event_after, make, plain_of_event
from holdfast.application.kit import Kit
from holdfast.application.loading import load_base
from holdfast.application.resolve import name_taken, newest_kept
from holdfast.application.secrecy.sealing import sealer_for
from holdfast.application.snapshot import Snapshot, promise_broken, take
from holdfast.application.telling import Teller
from holdfast.application.trailing import Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointReadError,
    InvalidIdError,
    LeaseLostError,
    PromiseBrokenWarning,
    StateSizeWarning,
    StateTooLargeError,
)
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.plain import Plain
from holdfast.domain.record import Commit, Lease, Transition

if TYPE_CHECKING:
    from holdfast.application.retain import Plan, PruneResult

PRUNED_EVENT = "CHECKPOINTS_PRUNED"
#: So many are remembered.
_CHECKED_MAX = 4096

_NAMES_OF_CHECKPOINTS = (
    *("workflow_id", "stage_id", "agent_id", "session_id", "agent_version", "resume_handler"),
)
_names_of_checkpoint = attrgetter(*_NAMES_OF_CHECKPOINTS)
_NAMES_OF_EVENTS = ("workflow_id", "type", "agent_id", "step_id", "parent_id")
_names_of_event = attrgetter(*_NAMES_OF_EVENTS)


class Writer:
    """Prepares commits and queues them in the order in which they build on each other."""

    def __init__(self, kit: Kit, queue: CommitQueue, housekeeper: Housekeeper, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail
        self._teller = Teller(trail)
        self._queue = queue
        self._housekeeper = housekeeper
        self.bases = Bases(kit.cache_bytes, kit.observer.waited if kit.observer else None)
        #: Tells what a workflow's next commit builds on while those before it wait in memory.
        self.held_base: Callable[[str], Base | None] = lambda workflow_id: None
        #: Answers what to build on where the store cannot be read, or raises what it is given.
        self.blind_base: Callable[[CheckpointReadError], Base] = _raised
        #: Names that hold no secret, as they were given together.
        self._checked: set[tuple[str | None, ...]] = set()
        #: States above this are warned of or refused.
        self._careful_bytes = min(kit.warn_bytes, kit.limit_bytes)
        #: Workflows that were acquired here, and the tokens that their commits show, lost or not.
        self._tokens: dict[str, int] = {}
        #: Those that were acquired in the process which this one was forked from.
        self._inherited: frozenset[tuple[str, int]] = frozenset()

    def create(self, command: CreateCheckpoint, on_done: OnDone | None = None) -> Ticket:
        """Queue a checkpoint of a state, or find that it is the last one again; the result is its id."""
        if command.note is not None:
            command = replace(command, note=plain_of_event("note", command.note, self._kit))
        try:
            with self.bases.slot(command.workflow_id) as slot:
                return self._create(slot, command, on_done)
        except CheckpointError as refusal:
            self._trail.refused(command.workflow_id, refusal)
            raise

    def append(
        self,
        command: AppendEvent,
        on_done: OnDone | None = None,
        transitions: tuple[Transition, ...] = (),
        *,
        is_urgent: bool = True,
    ) -> Ticket:
        """Queue an event, and changes of status that it stands for; the result is the event.

        What is not urgent goes with the next commit that is.
        """
        with self._trail.refusals(command.workflow_id), self.bases.slot(command.workflow_id) as slot:
            return self._append(slot, command, on_done, transitions, is_urgent=is_urgent)

    def append_planned(
        self, workflow_id: str, plan: Callable[[], tuple[AppendEvent, tuple[Transition, ...]]]
    ) -> Ticket:
        """Queue an event made from what the store holds, while nobody here prepares another commit."""
        with self._trail.refusals(workflow_id), self.bases.slot(workflow_id) as slot:
            self._settle(slot)
            # First what it builds on: a commit of somebody else after that is a conflict, and not overlooked.
            self._base(slot, is_head_enough=True)
            command, transitions = plan()
            return self._append(slot, command, None, transitions)

    def remove(
        self, workflow_id: str, plan: Callable[[], Plan], told: tuple[AuditEntry, ...] | None = None
    ) -> PruneResult:
        """Plan and carry out a removal while nobody here prepares a commit of the workflow.

        Args:
            told: what the trail is told instead of the usual.
        """
        with self.bases.slot(workflow_id) as slot:
            self._settle(slot)
            self._base(slot, is_head_enough=True)  # First, as in append_planned.
            planned = plan()
            removal = planned.removal
            if not removal.sequences and not removal.groups and not removal.erases:
                return planned.done(0)
            if removal.sequences or removal.erases:
                # The tombstones' own record: a listing that was lost is made anew from it.
                event = AppendEvent(workflow_id, PRUNED_EVENT, {"sequences": list(removal.sequences)})
                self._queue.wait(self._append(slot, event, is_told=False))
            audit = self._teller.removal(workflow_id, removal) if told is None else told
            removal = replace(removal, audit=audit)
            freed_bytes = self._kit.store.remove(workflow_id, removal)
            if slot.base is not None and slot.base.head.sequence in removal.sequences:
                slot.base = None
        return planned.done(freed_bytes)

    def forget(self, workflow_id: str) -> None:
        """Drop what is remembered of a workflow: the next commit builds on what the store holds."""
        with self.bases.slot(workflow_id) as slot:
            self._settle(slot)
            slot.base = None

    def acquire(self, workflow_id: str, owner: str, ttl_seconds: float) -> Lease:
        """Take a workflow for an owner; commits that are prepared from now on show the lease's token."""
        check_workflow_id(workflow_id)
        check_id("owner", owner)
        told = self._trail.told(AuditType.LEASE_ACQUIRED, workflow_id=workflow_id, facts={"owner": owner})
        with self._trail.refusals(workflow_id), self.bases.slot(workflow_id) as slot:
            self._check_names(("workflow_id", "owner"), (workflow_id, owner))
            self._settle(slot)
            lease = self._kit.store.acquire(workflow_id, owner, ttl_seconds, told)
            self._tokens[workflow_id] = lease.token
            # Whoever had it before may have written: the next commit builds on what the store holds.
            slot.base = None
        return lease

    def lease_held(self, workflow_id: str) -> Lease | None:
        """Answer the lease of a workflow that was acquired here and not given up since.

        Raises:
            LeaseLostError: it was lost: nothing can be recorded here before it is acquired again.
        """
        token = self._tokens.get(workflow_id)
        if token is None:
            return None
        lease = self._kit.store.lease(workflow_id)
        if lease is None or lease.token != token:
            raise LeaseLostError(
                "the lease that was acquired here is lost", place=workflow_id, hint="Acquire it again."
            )
        return lease

    def follow(self, parent: Writer) -> None:
        """Leave the leases alone that are those of the process which this one was forked from."""
        self._inherited = parent._inherited.union(parent._tokens.items())

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        """Give a lease new time; LeaseLostError says that it is not, or not any more, of this process."""
        if (lease.workflow_id, lease.token) in self._inherited:
            raise LeaseLostError(
                "the lease belongs to the process that this one was forked from",
                place=lease.workflow_id,
                hint="Acquire one here, under a name of its own.",
            )
        return self._kit.store.renew(lease, ttl_seconds)

    def release(self, lease: Lease) -> None:
        """Give a workflow up, once everything prepared under its lease is decided."""
        if (lease.workflow_id, lease.token) in self._inherited:
            # What a child leaves behind on its way out is still its parent's.
            return
        facts: dict[str, int | str] = {"owner": lease.owner, "token": lease.token}
        told = self._trail.told(AuditType.LEASE_RELEASED, workflow_id=lease.workflow_id, facts=facts)
        with self.bases.slot(lease.workflow_id) as slot:
            self._settle(slot)
            self._kit.store.release(lease, told)
            if self._tokens.get(lease.workflow_id) == lease.token:
                del self._tokens[lease.workflow_id]

    def warm(self, workflow_id: str, *, is_head_enough: bool = False) -> None:
        """Read what the next checkpoint, or just the next event, builds on if it is not remembered."""
        if self._kit.redactor is not None:
            self._kit.redactor.prepare()
        sealer_for(self._kit.vault, workflow_id)
        with self.bases.slot(workflow_id) as slot:
            self._base(slot, is_head_enough=is_head_enough)

    def _create(self, slot: Slot, command: CreateCheckpoint, on_done: OnDone | None) -> Ticket:
        kit, fields = self._kit, command.fields
        self._check_names(_NAMES_OF_CHECKPOINTS, _names_of_checkpoint(command))
        stage_state = agent_state = None
        if command.stage_state is not None:
            stage_state = self._pack("stage_state", command.stage_state)
        if command.agent_state is not None:
            agent_state = self._pack("agent_state", command.agent_state)
        as_of = command.migrated.event_seq if command.migrated else None
        schema = command.schema_version or kit.app.schema_version
        subject = Subject(command, stage_state, agent_state, schema, "", None, as_of)
        base = self._expected_base(command, slot)
        snapshot = take(fields, kit.packer, base.snapshot, self._promised(command, base))
        size_bytes = snapshot.size
        if size_bytes + subject.size > self._careful_bytes:
            base = self._check_size(command.workflow_id, base, size_bytes + subject.size)
        draft = derive(kit, subject, base, snapshot, size_bytes)
        if draft is None:
            return self._repeat(slot, replace(base, snapshot=snapshot, is_read_back=False), on_done)
        if draft.due and command.append_only and self._is_broken(command, fields, snapshot):
            snapshot = take(fields, kit.packer, base.snapshot)
            draft = derive(kit, subject, base, snapshot, snapshot.size) or draft
        audit = self._teller.checkpoint(command, draft.id, is_new=True)
        ticket = Ticket(draft.commit(audit, self._token(slot)), base.lineage, draft.id, on_done)
        ticket.intent = StateIntent(subject, snapshot, draft.base.size_bytes)
        self._submit(slot, ticket, draft.base)
        if draft.due:
            bare = draft.base.is_bare
            self._housekeeper.owe(KeyframeJob(draft.due, snapshot, ticket, is_as_stored=bare))
        return ticket

    def _append(
        self,
        slot: Slot,
        command: AppendEvent,
        on_done: OnDone | None = None,
        transitions: tuple[Transition, ...] = (),
        *,
        is_told: bool = True,
        is_urgent: bool = True,
    ) -> Ticket:
        kit = self._kit
        self._check_names(_NAMES_OF_EVENTS, _names_of_event(command))
        base = self._base(slot, is_head_enough=True)
        event = event_after(command, base.head, kit)
        intent = EventIntent(event, transitions, is_told)
        made = make(kit, intent, base, self._teller, self._token(slot))
        ticket = Ticket(made.commit, base.lineage, made.result, on_done)
        ticket.intent = intent
        return self._submit(slot, ticket, made.base, is_urgent=is_urgent)

    def _pack(self, name: str, state: Mapping[str, Any] | Plain) -> bytes:
        whole = state if isinstance(state, Plain) else dict(check_mapping(name, state))
        data = self._kit.packer.pack(whole)
        return data if self._kit.redactor is None else self._kit.redactor.packed(data, self._kit.packer)

    def _promised(self, command: CreateCheckpoint, base: Base) -> frozenset[str]:
        """Take no list on trust whose items were read back: secrets are hidden in those."""
        return frozenset() if base.is_read_back and self._kit.redactor is not None else command.append_only

    def _check_names(self, kinds: tuple[str, ...], names: tuple[str | None, ...]) -> None:
        """Refuse what is no text, or looks like a credential; names that go together are remembered so."""
        try:
            if names in self._checked:
                return
        except TypeError:
            # One of them is a list, or the like.
            pass
        given = dict(zip(kinds, names, strict=True))
        for kind, name in given.items():
            if name is not None and not isinstance(name, str):
                raise InvalidIdError(f"{kind} is a {type(name).__name__}, not a string")
        if self._kit.redactor is not None:
            self._kit.redactor.check_names(**given)
        if len(self._checked) >= _CHECKED_MAX:
            self._checked.clear()
        self._checked.add(names)

    def _base(self, slot: Slot, *, is_head_enough: bool = False) -> Base:
        """Answer what to build on, read from the store where it is not remembered or has failed."""
        base = slot.base
        if base is not None and base.sound and (is_head_enough or not base.is_stub):
            return base
        self._settle(slot)
        held = self.held_base(slot.workflow_id)
        if held is not None and (is_head_enough or not held.is_stub):
            slot.base = held
            return held
        if base is not None and not base.sound and self._kit.vault is not None:
            self._kit.vault.look_again(slot.workflow_id)
        try:
            if is_head_enough:
                slot.base = Base(self._kit.store.head(slot.workflow_id), Lineage(), is_stub=True)
                return slot.base
            loaded = load_base(self._kit, slot.workflow_id)
        except CheckpointReadError as problem:
            slot.base = self.blind_base(problem)
            return slot.base
        if held is not None:
            # Only events wait: the state is the one that is stored.
            slot.base = replace(loaded.base, head=held.head, lineage=held.lineage)
            return slot.base
        slot.base = loaded.base
        if loaded.owed is not None:
            self._housekeeper.owe(loaded.owed)
        return loaded.base

    def _expected_base(self, command: CreateCheckpoint, slot: Slot) -> Base:
        """Answer what to build on, if that is what the caller believes is the last checkpoint."""
        base, expected = slot.base, command.expected_sequence
        if base is None or base.is_stub or not base.sound:
            base = self._base(slot)
        if expected is None or expected == base.head.sequence:
            if command.forked_from is not None and base.head.event_seq:
                raise name_taken(command.workflow_id)
            return base
        # The caller may know better than what is remembered here: others write, too.
        slot.base = None
        base = self._base(slot)
        if expected in (base.head.sequence, newest_kept(self._kit.store, command.workflow_id, base.head)):
            return base
        raise CheckpointConflictError(
            f"the last checkpoint is {base.head.sequence}, not {expected}",
            place=command.workflow_id,
            hint="Load the latest state, apply your change to it and try again.",
        )

    def _check_size(self, workflow_id: str, base: Base, size_bytes: int) -> Base:
        """Refuse a state above the limit; warn above the mark, again each time it has doubled."""
        if size_bytes > self._kit.limit_bytes:
            raise StateTooLargeError(
                f"the state has {size_bytes} bytes, the limit is {self._kit.limit_bytes}",
                place=workflow_id,
                hint="Keep large data outside and store references, or raise limit_bytes.",
            )
        if size_bytes <= self._kit.warn_bytes or size_bytes < 2 * base.warned_bytes:
            return base
        warnings.warn(
            f"the state of {workflow_id} has {size_bytes} bytes (warning above {self._kit.warn_bytes}, "
            f"limit {self._kit.limit_bytes})",
            StateSizeWarning,
            stacklevel=5,
        )
        return replace(base, warned_bytes=size_bytes)

    def _repeat(self, slot: Slot, base: Base, on_done: OnDone | None) -> Ticket:
        """Answer the checkpoint before, if it still is the last one when the store is asked."""
        # An empty commit costs no sync, and learns what others did, of the lease, and of those before it.
        commit = Commit(slot.workflow_id, base.head, token=self._token(slot))
        return self._submit(slot, Ticket(commit, base.lineage, base.id, on_done), base)

    def _is_broken(self, command: CreateCheckpoint, fields: Mapping[str, Any], snapshot: Snapshot) -> bool:
        broken = promise_broken(command.append_only, fields, snapshot, self._kit.packer)
        if broken:
            warnings.warn(
                f"declared append-only but changed otherwise: {', '.join(broken)} of {command.workflow_id}. "
                "Checkpoints since the last keyframe may lack such changes; this one has them.",
                PromiseBrokenWarning,
                stacklevel=5,
            )
        return bool(broken)

    def _settle(self, slot: Slot) -> None:
        """Wait until the outcome of what was queued last is known."""
        if slot.pending is not None:
            self._queue.settle(slot.pending)
            slot.pending = None

    def _token(self, slot: Slot) -> int:
        """Answer what the next commit of a workflow shows; 0 where no lease was acquired here."""
        return self._tokens.get(slot.workflow_id, 0)

    def _submit(self, slot: Slot, ticket: Ticket, following: Base, *, is_urgent: bool = True) -> Ticket:
        if self._trail.has_noted:
            self._trail.join()
        ticket.following = following
        self._queue.submit(ticket, is_urgent=is_urgent)
        slot.pending = ticket
        slot.base = following
        return ticket


def _raised(problem: CheckpointReadError) -> Base:
    raise problem
