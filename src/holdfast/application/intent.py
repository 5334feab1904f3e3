"""What a commit was made from, kept so that it can be made again on top of something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.application.base import Base
from holdfast.application.commands import AppendEvent, check_mapping
from holdfast.application.deriving import derive
from holdfast.application.draft import Subject
from holdfast.application.kit import Kit
from holdfast.application.nodes import ListNode, Node, ObjectNode, may_be_tagged
from holdfast.application.secrecy.sealing import sealer_for, write_event
from holdfast.application.snapshot import Snapshot
from holdfast.application.telling import Teller
from holdfast.domain.errors import InvalidStateError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Commit, Head, Transition
from holdfast.domain.tree import has_tags
from holdfast.domain.value import value


@value
class StateIntent:
    """A checkpoint: what was asked for, and the one snapshot of the state."""

    subject: Subject
    snapshot: Snapshot
    size_bytes: int


@value
class EventIntent:
    """An event, its data plain and without secrets, and what it does to checkpoints."""

    event: Event
    transitions: tuple[Transition, ...] = ()
    is_told: bool = True


Intent = StateIntent | EventIntent


@value
class Made:
    """A commit, what its caller gets, and what the next one builds on."""

    commit: Commit
    result: CheckpointID | Event
    base: Base


def make(kit: Kit, intent: Intent, base: Base, teller: Teller | None, token: int = 0) -> Made:
    """Make the commit of an intent on top of a base.

    Args:
        teller: tells the trail; None: nothing is told.
        token: of the lease that the workflow is held with.
    """
    if isinstance(intent, StateIntent):
        return _checkpoint(kit, intent, base, teller, token)
    return _event(kit, intent, base, teller, token)


def _checkpoint(kit: Kit, intent: StateIntent, base: Base, teller: Teller | None, token: int) -> Made:
    # It was promised a sequence: it is written also where it says nothing new.
    command = replace(intent.subject.command, force=True)
    draft = derive(kit, replace(intent.subject, command=command), base, intent.snapshot, intent.size_bytes)
    assert draft is not None
    audit = teller.checkpoint(command, draft.id) if teller is not None else ()
    return Made(draft.commit(audit, token), draft.id, draft.base)


def _event(kit: Kit, intent: EventIntent, base: Base, teller: Teller | None, token: int) -> Made:
    event, seq = intent.event, base.head.event_seq + 1
    if event.seq != seq:
        event = replace(event, seq=seq)
    sealer = sealer_for(kit.vault, event.workflow_id)
    record = write_event(sealer, event, base.head.event_hash)
    audit = teller.event(event, record.hash) if teller is not None and intent.is_told else ()
    commit = Commit(
        event.workflow_id,
        base.head,
        events=(record,),
        transitions=intent.transitions,
        audit=audit,
        expected_files=sealer.guard if sealer else {},
        token=token,
    )
    told = _told(event, _given(event.data, kit), record.hash)
    return Made(commit, told, _moved(base, commit.head))


def _given(plain: Any, kit: Kit) -> Any:
    """Make the caller's own values of a plain tree, which is kept in case the commit has to be made anew."""
    packed = kit.packer.pack_plain(plain)
    own = kit.packer.unpack(packed)
    # Most trees hold no tag anywhere, and nothing is to be revived.
    return kit.registry.revive(own, owned=True) if may_be_tagged(packed) else own


def _told(event: Event, data: Mapping[str, Any], digest: str) -> Event:
    """Make the event that its caller gets; `replace` takes twice as long, on the way of every event."""
    return Event(
        event.seq,
        event.timestamp,
        event.type,
        event.workflow_id,
        event.agent,
        event.step_id,
        event.parent_id,
        event.cp_seq,
        event.cost,
        data,
        digest,
        event.sealed,
        event.erased,
        event.durable,
        event.mode,
    )


def _moved(base: Base, head: Head) -> Base:
    """Make the same base at another head; `replace` takes eight times as long."""
    return Base(
        head,
        base.lineage,
        base.snapshot,
        base.is_read_back,
        base.size_bytes,
        base.id,
        base.fingerprint,
        base.group,
        base.keyframe_bytes,
        base.weight,
        base.checkpoint_event_seq,
        base.warned_bytes,
        base.key_id,
        base.is_stub,
        base.is_bare,
    )


def kept_bytes(commit: Commit, snapshot: Snapshot | None, before: Snapshot | None) -> int:
    """Count what keeping a commit and its snapshot costs beside the one before, which shares its parts."""
    held = sum(len(event.data) for event in commit.events) + sum(map(len, commit.blobs.values()))
    held += sum(len(entry.stored or b"") for entry in commit.audit)
    held += len(commit.record.data) if commit.record else 0
    held += len(commit.keyframe.data) if commit.keyframe else 0
    if snapshot is not None:
        held += _unshared_bytes(snapshot.root, before.root if before is not None else None)
    return held


def _unshared_bytes(node: Node, before: Node | None) -> int:
    if node is before:
        return 0
    if isinstance(node, bytes):
        return len(node)
    if isinstance(node, ObjectNode):
        known = before.children if isinstance(before, ObjectNode) else {}
        return sum(_unshared_bytes(child, known.get(key)) for key, child in node.children.items())
    shared = {id(chunk) for chunk in before.chunks} if isinstance(before, ListNode) else set()
    return sum(len(chunk) for chunk in node.chunks if id(chunk) not in shared)


def event_after(command: AppendEvent, head: Head, kit: Kit) -> Event:
    """Make the event that follows a head, its data plain.

    Raises:
        InvalidStateError: what it says cannot stand in an event.
    """
    if command.cp_seq is not None and type(command.cp_seq) is not int:
        raise InvalidStateError(f"cp_seq is {command.cp_seq!r}", hint="Give the sequence of a checkpoint.")
    return Event(
        seq=head.event_seq + 1,
        timestamp=kit.clock.now(),
        type=command.type,
        workflow_id=command.workflow_id,
        agent=command.agent_id,
        step_id=command.step_id,
        parent_id=command.parent_id,
        cp_seq=command.cp_seq,
        cost=None if command.cost is None else _cost(command.cost, kit),
        data=plain_of_event("data", command.data, kit),
    )


def plain_of_event(name: str, data: Mapping[str, Any], kit: Kit) -> Any:
    """Turn what an event says into a plain tree without secrets."""
    return _hidden(_plain(name, data, kit), kit)


def _cost(cost: Mapping[str, Any], kit: Kit) -> Any:
    """Turn what an event cost into a plain tree without secrets.

    Raises:
        InvalidStateError: it holds what is read back as something else, as nobody looks for values in it.
    """
    plain = _plain("cost", cost, kit)
    if has_tags(plain):
        raise InvalidStateError(
            "the cost of an event holds more than numbers and texts",
            hint='Write it like {"tokens": 100, "usd": 0.002}.',
        )
    return _hidden(plain, kit)


def _plain(name: str, data: Mapping[str, Any], kit: Kit) -> Any:
    return kit.packer.unpack(kit.packer.pack(dict(check_mapping(name, data))))


def _hidden(plain: Any, kit: Kit) -> Any:
    return plain if kit.redactor is None else kit.redactor.tree(plain)
