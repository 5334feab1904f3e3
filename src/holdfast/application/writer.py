"""From a caller's state to a queued commit, one workflow at a time.

Under the workflow's lock: the base, one reading of the state, the change since the base, the record.
Waiting for durability happens outside of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.application.base import Base, Bases, Slot
from holdfast.application.commands import AppendEvent, CreateCheckpoint
from holdfast.application.commit_queue import CommitQueue, Lineage, OnDone, Ticket
from holdfast.application.draft import Draft, Drafting, Subject
from holdfast.application.housekeeping import Housekeeper, KeyframeJob
from holdfast.application.kit import Kit
from holdfast.application.loading import load_base
from holdfast.application.retain import Plan, PruneResult
from holdfast.application.sealing import sealer_for, write_event
from holdfast.application.snapshot import Snapshot, changes, from_plain, promise_broken, take
from holdfast.application.trailing import Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.delta import Operation
from holdfast.domain.errors import (
    CheckpointConflictError,
    PromiseBrokenWarning,
    StateSizeWarning,
    StateTooLargeError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.record import Commit, Head, Lease, Removal, Transition
from holdfast.domain.reducers import DECISION_EVENT
from holdfast.domain.trail import FACT_CHARS_MAX

PRUNED_EVENT = "CHECKPOINTS_PRUNED"
#: Types of events that have a meaning in the trail, most under the same name.
_TOLD_TYPES = {**{kind.value: kind for kind in AuditType}, DECISION_EVENT: AuditType.AGENT_DECISION}
#: Those whose particulars an auditor will ask for.
_TOLD_WHOLE = frozenset(
    {
        AuditType.AGENT_DECISION,
        AuditType.APPROVAL_REQUESTED,
        AuditType.APPROVAL_GRANTED,
        AuditType.APPROVAL_DENIED,
    }
)


class Writer:
    """Prepares commits and queues them in the order in which they build on each other."""

    def __init__(self, kit: Kit, queue: CommitQueue, housekeeper: Housekeeper, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail
        self._queue = queue
        self._housekeeper = housekeeper
        self.bases = Bases(kit.cache_bytes)
        #: Workflows that were acquired here, and the tokens that their commits show, lost or not.
        self._tokens: dict[str, int] = {}

    def create(self, command: CreateCheckpoint, on_done: OnDone | None = None) -> Ticket:
        """Queue a checkpoint of a state, or find that it is the last one again; the result is its id."""
        fields = command.fields
        with self._trail.refusals(command.workflow_id), self.bases.slot(command.workflow_id) as slot:
            self._check_names(
                workflow_id=command.workflow_id,
                stage_id=command.stage_id,
                agent_id=command.agent_id,
                session_id=command.session_id,
                agent_version=command.agent_version,
                resume_handler=command.resume_handler,
            )
            subject = Subject(command, self._pack(command.stage_state), self._pack(command.agent_state))
            base = self._base(slot)
            self._check_expected(command, slot, base)
            snapshot = take(fields, self._kit.packer, base.snapshot, self._promised(command, base))
            size_bytes = snapshot.size
            base = self._check_size(command.workflow_id, base, size_bytes + subject.size)
            draft = self._draft(subject, base, snapshot, size_bytes)
            if draft is None:
                return self._repeat(slot, replace(base, snapshot=snapshot, is_read_back=False), on_done)
            if draft.due and command.append_only and self._is_broken(command, fields, snapshot):
                snapshot = take(fields, self._kit.packer, base.snapshot)
                draft = self._draft(subject, base, snapshot, snapshot.size) or draft
            commit = replace(draft.commit, audit=self._tell_checkpoint(command, draft))
            ticket = Ticket(commit, base.lineage, draft.id, on_done)
            self._submit(slot, ticket, draft.base)
            if draft.due:
                self._housekeeper.owe(KeyframeJob(draft.due, snapshot, ticket))
        return ticket

    def append(
        self, command: AppendEvent, on_done: OnDone | None = None, transitions: tuple[Transition, ...] = ()
    ) -> Ticket:
        """Queue an event, and changes of status that it stands for; the result is the event."""
        with self._trail.refusals(command.workflow_id), self.bases.slot(command.workflow_id) as slot:
            return self._append(slot, command, on_done, transitions)

    def remove(
        self, workflow_id: str, plan: Callable[[], Plan], told: tuple[AuditEntry, ...] | None = None
    ) -> PruneResult:
        """Plan and carry out a removal while nobody here prepares a commit of the workflow.

        Args:
            told: what the trail is told instead of the usual.
        """
        with self.bases.slot(workflow_id) as slot:
            self._settle(slot)
            removal = plan().removal
            if not removal.sequences and not removal.groups and not removal.erases:
                return PruneResult((), 0)
            if removal.sequences or removal.erases:
                # The tombstones' own record: a listing that was lost is made anew from it.
                event = AppendEvent(workflow_id, PRUNED_EVENT, {"sequences": list(removal.sequences)})
                self._queue.wait(self._append(slot, event, is_told=False))
            audit = self._tell_removal(workflow_id, removal) if told is None else told
            removal = replace(removal, audit=audit)
            freed_bytes = self._kit.store.remove(workflow_id, removal)
            if slot.base is not None and slot.base.head.sequence in removal.sequences:
                slot.base = None
        return PruneResult(removal.sequences, freed_bytes)

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
            self._check_names(workflow_id=workflow_id, owner=owner)
            self._settle(slot)
            lease = self._kit.store.acquire(workflow_id, owner, ttl_seconds, told)
            self._tokens[workflow_id] = lease.token
            # Whoever had it before may have written: the next commit builds on what the store holds.
            slot.base = None
        return lease

    def release(self, lease: Lease) -> None:
        """Give a workflow up, once everything prepared under its lease is decided."""
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

    def _append(
        self,
        slot: Slot,
        command: AppendEvent,
        on_done: OnDone | None = None,
        transitions: tuple[Transition, ...] = (),
        *,
        is_told: bool = True,
    ) -> Ticket:
        kit = self._kit
        self._check_names(
            workflow_id=command.workflow_id,
            type=command.type,
            agent_id=command.agent_id,
            step_id=command.step_id,
            parent_id=command.parent_id,
        )
        base = self._base(slot, is_head_enough=True)
        event = _event(command, base.head, kit)
        sealer = sealer_for(kit.vault, command.workflow_id)
        record = write_event(sealer, event, base.head.event_hash)
        head = replace(base.head, event_seq=record.seq, event_hash=record.hash)
        audit = self._tell_event(event, record.hash) if is_told else ()
        commit = Commit(
            slot.workflow_id,
            base.head,
            events=(record,),
            transitions=transitions,
            audit=audit,
            expected_files=sealer.guard if sealer else {},
        )
        told = replace(event, data=kit.registry.revive(event.data), hash=record.hash)
        return self._submit(slot, Ticket(commit, base.lineage, told, on_done), replace(base, head=head))

    def _pack(self, state: Mapping[str, Any] | None) -> bytes | None:
        if state is None:
            return None
        data = self._kit.packer.pack(dict(state))
        return data if self._kit.redactor is None else self._kit.redactor.packed(data, self._kit.packer)

    def _promised(self, command: CreateCheckpoint, base: Base) -> frozenset[str]:
        """Take no list on trust whose items were read back: secrets are hidden in those."""
        return frozenset() if base.is_read_back and self._kit.redactor is not None else command.append_only

    def _changes(self, base: Base, snapshot: Snapshot) -> list[Operation]:
        """Find what changed since the base, as it is stored: without secrets."""
        packer, redactor = self._kit.packer, self._kit.redactor
        if redactor is None or base.snapshot is None:
            return changes(base.snapshot, snapshot, packer)
        if base.is_read_back:
            # What is stored may have been hidden by other rules than today's, or not at all.
            hidden = from_plain(redactor.tree(snapshot.plain(packer)), packer)
            return changes(base.snapshot, hidden, packer)
        ops = changes(base.snapshot, snapshot, packer)
        return redactor.operations(ops, lambda path: snapshot.value_at(path, packer))[0] if ops else ops

    def _check_names(self, **names: str | None) -> None:
        if self._kit.redactor is not None:
            self._kit.redactor.check_names(**names)

    def _base(self, slot: Slot, *, is_head_enough: bool = False) -> Base:
        """Answer what to build on, read from the store where it is not remembered or has failed."""
        base = slot.base
        if base is not None and base.sound and (is_head_enough or not base.is_stub):
            return base
        self._settle(slot)
        if base is not None and not base.sound and self._kit.vault is not None:
            self._kit.vault.look_again(slot.workflow_id)
        if is_head_enough:
            slot.base = Base(self._kit.store.head(slot.workflow_id), Lineage(), is_stub=True)
            return slot.base
        loaded = load_base(self._kit, slot.workflow_id)
        slot.base = loaded.base
        if loaded.owed is not None:
            self._housekeeper.owe(loaded.owed)
        return loaded.base

    def _is_rekeyed(self, workflow_id: str, base: Base) -> bool:
        """Tell whether the key of the last checkpoint was destroyed: nothing can be built on that one."""
        vault = self._kit.vault
        return vault is not None and vault.sealer(workflow_id).key_id != base.key_id

    def _check_expected(self, command: CreateCheckpoint, slot: Slot, base: Base) -> None:
        expected = command.expected_sequence
        if expected is not None and expected != base.head.sequence:
            slot.base = None
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
            stacklevel=4,
        )
        return replace(base, warned_bytes=size_bytes)

    def _draft(self, subject: Subject, base: Base, snapshot: Snapshot, size_bytes: int) -> Draft | None:
        """Work out the next checkpoint; None if it would only repeat the last one."""
        if base.snapshot is None or self._is_rekeyed(subject.command.workflow_id, base):
            return Drafting(self._kit, subject, base, snapshot, size_bytes).whole()
        ops = self._changes(base, snapshot)
        is_repeated = not ops and base.id is not None and subject.fingerprint == base.fingerprint
        if is_repeated and not subject.command.force:
            return None
        return Drafting(self._kit, subject, base, snapshot, size_bytes).change(ops)

    def _repeat(self, slot: Slot, base: Base, on_done: OnDone | None) -> Ticket:
        """Answer the checkpoint before, if it still is the last one when the store is asked."""
        # An empty commit costs no sync, and learns what others did, of the lease, and of those before it.
        ticket = Ticket(Commit(slot.workflow_id, base.head), base.lineage, base.id, on_done)
        return self._submit(slot, ticket, base)

    def _is_broken(self, command: CreateCheckpoint, fields: Mapping[str, Any], snapshot: Snapshot) -> bool:
        broken = promise_broken(command.append_only, fields, snapshot, self._kit.packer)
        if broken:
            warnings.warn(
                f"declared append-only but changed otherwise: {', '.join(broken)} of {command.workflow_id}. "
                "Checkpoints since the last keyframe may lack such changes; this one has them.",
                PromiseBrokenWarning,
                stacklevel=4,
            )
        return bool(broken)

    def _settle(self, slot: Slot) -> None:
        """Wait until the outcome of what was queued last is known."""
        if slot.pending is not None:
            self._queue.settle(slot.pending)
            slot.pending = None

    def _tell_checkpoint(self, command: CreateCheckpoint, draft: Draft) -> tuple[AuditEntry, ...]:
        facts: dict[str, int | str] = {"cp_seq": draft.id.sequence, "checksum": draft.id.checksum}
        kind = AuditType.CHECKPOINT_CREATED
        if command.forked_from is not None:
            kind = AuditType.WORKFLOW_FORKED
            facts["from"] = f"{command.forked_from['wf']}@{command.forked_from['seq']}"
        return self._trail.told(
            kind,
            session_id=command.session_id,
            workflow_id=command.workflow_id,
            agent=command.agent_id,
            facts=facts,
        )

    def _tell_event(self, event: Event, digest: str) -> tuple[AuditEntry, ...]:
        """Tell of an event under its own type where the trail knows it; a decision is told whole."""
        facts: dict[str, int | str] = {"event_seq": event.seq, "event_hash": digest}
        kind = _TOLD_TYPES.get(event.type, AuditType.EVENT_RECORDED)
        if kind is AuditType.EVENT_RECORDED:
            facts["event"] = event.type[:FACT_CHARS_MAX]
        if event.cp_seq is not None:
            facts["cp_seq"] = event.cp_seq
        return self._trail.told(
            kind,
            workflow_id=event.workflow_id,
            agent=event.agent,
            correlation_id=event.step_id,
            facts=facts,
            payload=event.data if kind in _TOLD_WHOLE else None,
        )

    def _tell_removal(self, workflow_id: str, removal: Removal) -> tuple[AuditEntry, ...]:
        sequences = removal.sequences
        facts: dict[str, int | str] = {"checkpoints": len(sequences), "groups": len(removal.groups)}
        if sequences:
            facts |= {"first": sequences[0], "last": sequences[-1]}
        return self._trail.told(AuditType.CHECKPOINTS_PRUNED, workflow_id=workflow_id, facts=facts)

    def _submit(self, slot: Slot, ticket: Ticket, following: Base) -> Ticket:
        if token := self._tokens.get(slot.workflow_id):
            ticket.commit = replace(ticket.commit, token=token)
        if self._trail.has_noted:
            self._trail.join()
        self._queue.submit(ticket)
        slot.pending = ticket
        slot.base = following
        return ticket


def _event(command: AppendEvent, head: Head, kit: Kit) -> Event:
    """Make the event that follows a head, its data plain."""
    plain = kit.packer.unpack(kit.packer.pack(dict(command.data)))
    return Event(
        seq=head.event_seq + 1,
        timestamp=kit.clock.now(),
        type=command.type,
        workflow_id=command.workflow_id,
        agent=command.agent_id,
        step_id=command.step_id,
        parent_id=command.parent_id,
        cp_seq=command.cp_seq,
        cost=_hidden(command.cost, kit),
        data=plain if kit.redactor is None else kit.redactor.tree(plain),
    )


def _hidden(data: Any, kit: Kit) -> Any:
    """Hide the secrets of plain data; what is not plain is left for whoever refuses it."""
    if not data or kit.redactor is None:
        return data
    plain = kit.packer.unpack(kit.packer.pack(dict(data)))
    hidden = kit.redactor.tree(plain)
    return data if hidden is plain else hidden
