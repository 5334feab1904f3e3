"""A checkpoint worked out up to its last byte, before anybody writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from holdfast.application.base import Base
from holdfast.application.commands import CreateCheckpoint, Migrated
from holdfast.application.keyframes import Caption, build_keyframe
from holdfast.application.kit import Kit
from holdfast.application.records import Body, build, change_body, full_body
from holdfast.application.secrecy.sealing import sealer_for, write_event
from holdfast.application.snapshot import Snapshot
from holdfast.domain.checkpoint import (
    DEFAULT_MAX_RETRIES,
    SCHEMA_VERSION,
    STATUS_EVENT,
    CheckpointStatus,
    usual_type,
)
from holdfast.domain.delta import Operation
from holdfast.domain.errors import CheckpointConflictError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.keyframe import delta_weight, needs_keyframe
from holdfast.domain.lift import lift, lift_ops
from holdfast.domain.record import Commit, Entry, EventRecord, Keyframe, Record, Transition
from holdfast.domain.value import value

CREATED_EVENT = "CHECKPOINT_CREATED"


@value
class Subject:
    """What is asked for beside the state, the states of stage and agent packed."""

    command: CreateCheckpoint
    stage_state: bytes | None
    agent_state: bytes | None
    #: Version of the state's shape.
    schema: str = SCHEMA_VERSION
    #: What a checkpoint that waited was promised: its UUID and its time.
    uuid: str = ""
    taken_at: datetime | None = None
    #: Last event that the state knows of; None: all before the checkpoint's own.
    as_of: int | None = None

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Tell whether a checkpoint of an unchanged state would say anything new."""
        asked = self.command
        scope = (asked.type.value, asked.stage_id, asked.agent_id)
        return (*scope, self.stage_state, self.agent_state, asked.resume_handler, self.schema)

    @property
    def size(self) -> int:
        """Bytes of the states of stage and agent."""
        return len(self.stage_state or b"") + len(self.agent_state or b"")


@value
class Draft:
    """A commit, the base of the next one, and the keyframe that became due."""

    id: CheckpointID
    commit: Commit
    base: Base
    due: Caption | None


class Drafting:
    """Works out the checkpoint that follows a base."""

    def __init__(self, kit: Kit, subject: Subject, base: Base, snapshot: Snapshot, size_bytes: int) -> None:
        self._kit = kit
        self._subject = subject
        self._asked = subject.command
        self._base = base
        self._snapshot = snapshot
        self._size = size_bytes
        self._now = subject.taken_at or kit.clock.now()
        self._uuid = subject.uuid or kit.ids.new()
        self._sequence = base.head.sequence + 1
        self._sealer = sealer_for(kit.vault, subject.command.workflow_id)
        self._seal = self._sealer.blob if self._sealer else None
        self._event = self._created_event()
        self._as_of = self._event.seq if subject.as_of is None else subject.as_of
        self._timestamp = self._event.timestamp

    def change(self, ops: Sequence[Operation], *, is_bare: bool) -> Draft:
        """Record what changed since the base; `is_bare` if nothing was ever hidden in the state.

        Raises:
            CheckpointConflictError: the key of the base was destroyed just now.
        """
        if self._sealer is not None and self._sealer.key_id != self._base.key_id:
            raise CheckpointConflictError(
                "the key of the last checkpoint was destroyed",
                place=self._asked.workflow_id,
                hint="Call again: the next checkpoint is a complete one.",
            )
        body, blobs = self._body(ops)
        data, checksum = self._record(body, self._base.head.sequence, blobs)
        weight = self._base.weight + delta_weight(len(data))
        is_due = needs_keyframe(self._base.keyframe_bytes, weight, self._size)
        record = Record(self._entry(data, checksum, self._base.group, tuple(blobs)), data)
        commit = self._commit(record, None, blobs)
        if not is_due:
            return self._draft(commit, self._base.group, self._base.keyframe_bytes, weight, is_bare=is_bare)
        due = self._caption(checksum)
        return self._draft(commit, self._sequence, self._size, 0, due, is_bare=is_bare)

    def whole(self) -> Draft:
        """Record the complete state: there is nothing to build on."""
        plain = tree = self._snapshot.plain(self._kit.packer)
        if self._kit.redactor is not None:
            tree = self._kit.redactor.tree(plain)
        is_bare = tree is plain
        tree, blobs = lift(tree, self._kit.blob_threshold_bytes, self._seal)
        keyframe = build_keyframe(self._caption(""), tree, blobs, self._kit.formats, self._sealer)
        data, checksum = self._record(full_body(keyframe.entry.sha256), 0, ())
        record = Record(self._entry(data, checksum, self._sequence, ()), data)
        commit = self._commit(record, keyframe, blobs)
        return self._draft(commit, self._sequence, self._size, 0, is_bare=is_bare)

    def _body(self, ops: Sequence[Operation]) -> tuple[Body, dict[str, bytes]]:
        """Encode operations, large values lifted."""
        lifted, blobs = lift_ops(ops, self._kit.blob_threshold_bytes, self._seal)
        body = change_body(lifted, self._kit.formats, self._seal)
        return body, {**blobs, **body.blobs}

    def _record(self, body: Body, base_sequence: int, blobs: Iterable[str]) -> tuple[bytes, str]:
        """Write the record; what a reader takes for granted is left out."""
        asked, base, sequence = self._asked, self._base, self._sequence
        fields: dict[str, Any] = {"seq": sequence, "id": self._uuid, "wf": asked.workflow_id}
        fields["ts"] = self._timestamp
        if asked.type is not usual_type(asked.agent_id):
            fields["type"] = asked.type.value
        _add(fields, _NAMED, _named(asked))
        parent = self._named_parent()
        if parent is not None:
            fields["parent"] = parent
        _add(fields, _FORKED, _forked(asked))
        if base_sequence != sequence - 1:
            fields["base"] = base_sequence
        if self._subject.schema != SCHEMA_VERSION:
            fields["schema"] = self._subject.schema
        if asked.phase is not None:
            fields["phase"] = asked.phase
        fields["size"] = self._size
        if self._event.seq != base.checkpoint_event_seq + 1:
            fields["events"] = self._event.seq - base.checkpoint_event_seq
        fields["event_seq"] = self._as_of
        self._add_rest(fields, blobs)
        return build(fields, body, base.head.checksum, self._sealer)

    def _add_rest(self, fields: dict[str, Any], blobs: Iterable[str]) -> None:
        """Add what few records say."""
        asked, unpack = self._asked, self._kit.packer.unpack
        stage_state, agent_state = self._subject.stage_state, self._subject.agent_state
        if asked.resume_handler is not None:
            fields["handler"] = asked.resume_handler
        if asked.max_retries != DEFAULT_MAX_RETRIES:
            fields["max_retries"] = asked.max_retries
        if asked.dependent_uuids:
            fields["deps"] = list(asked.dependent_uuids)
        if blobs:
            fields["blobs"] = list(blobs)
        if stage_state is not None:
            fields["stage_state"] = unpack(stage_state)
        if agent_state is not None:
            fields["agent_state"] = unpack(agent_state)

    def _named_parent(self) -> str | None:
        """Answer what the record says of its parent: nothing, where the record before has that checksum.

        A sealed record says it always: what it was sealed on top of is part of the seal.
        """
        is_told = self._sequence > 1 and self._sealer is None
        return None if is_told else self._base.head.checksum

    def _entry(self, data: bytes, checksum: str, group: int, blobs: tuple[str, ...]) -> Entry:
        return Entry(
            sequence=self._sequence,
            uuid=self._uuid,
            timestamp=self._timestamp,
            type=self._asked.type.value,
            checksum=checksum,
            parent=self._base.head.sequence,
            group=group,
            length=len(data),
            state_bytes=self._size,
            stage=self._asked.stage_id,
            agent=self._asked.agent_id,
            session=self._asked.session_id,
            phase=self._asked.phase,
            blobs=blobs,
            event_seq=self._as_of,
            schema=self._subject.schema,
        )

    def _created_event(self) -> EventRecord:
        event = Event(
            seq=self._base.head.event_seq + 1,
            timestamp=self._now,
            type=CREATED_EVENT,
            workflow_id=self._asked.workflow_id,
            agent=self._asked.agent_id,
            cp_seq=self._sequence,
            data=self._asked.note or {},
        )
        return write_event(self._sealer, event, self._base.head.event_hash)

    def _caption(self, checksum: str) -> Caption:
        return Caption(
            workflow_id=self._asked.workflow_id,
            sequence=self._sequence,
            timestamp=self._timestamp,
            checksum=checksum,
            agent_id=self._asked.agent_id,
            agent_version=None if self._sealer else self._asked.agent_version,
            session_id=self._asked.session_id,
            parent_sequence=self._base.head.sequence,
            parent_checksum=self._base.head.checksum,
            events_since_prev=self._event.seq - self._base.checkpoint_event_seq,
            size_bytes=self._size,
            key_id=self._sealer.key_id if self._sealer else "",
            schema=self._subject.schema,
        )

    def _commit(self, record: Record, keyframe: Keyframe | None, blobs: dict[str, bytes]) -> Commit:
        workflow_id, head = self._asked.workflow_id, self._base.head
        guard = self._sealer.guard if self._sealer else {}
        events = (self._event,)
        commit = Commit(workflow_id, head, record, keyframe, events, blobs=blobs, expected_files=guard)
        return commit if self._asked.migrated is None else self._standing(commit, self._asked.migrated)

    def _standing(self, commit: Commit, before: Migrated) -> Commit:
        """Let a migrated checkpoint stand as the one that it replaces did."""
        if before.status == CheckpointStatus.ACTIVE and not before.retry_count:
            return commit
        event = Event(
            seq=self._event.seq + 1,
            timestamp=self._now,
            type=STATUS_EVENT,
            workflow_id=self._asked.workflow_id,
            cp_seq=self._sequence,
            data={**before.data, "status": before.status, "retry_count": before.retry_count, "pinned": False},
        )
        told = write_event(self._sealer, event, self._event.hash)
        moved = Transition(self._sequence, before.status, before.retry_count)
        return replace(commit, events=(self._event, told), transitions=(moved,))

    def _draft(
        self,
        commit: Commit,
        group: int,
        keyframe_bytes: int,
        weight: int,
        due: Caption | None = None,
        *,
        is_bare: bool,
    ) -> Draft:
        asked = self._asked
        assert commit.record is not None
        checksum = commit.record.entry.checksum
        checkpoint_id = CheckpointID(
            workflow_id=asked.workflow_id,
            sequence=self._sequence,
            timestamp=self._now,
            checksum=checksum,
            uuid=self._uuid,
            stage_id=asked.stage_id,
            agent_id=asked.agent_id,
        )
        base = Base(
            head=commit.head,
            lineage=self._base.lineage,
            snapshot=self._snapshot,
            size_bytes=self._size,
            id=checkpoint_id,
            fingerprint=self._subject.fingerprint,
            group=group,
            keyframe_bytes=keyframe_bytes,
            weight=weight,
            checkpoint_event_seq=self._as_of,
            warned_bytes=self._base.warned_bytes,
            key_id=self._sealer.key_id if self._sealer else "",
            is_bare=is_bare,
        )
        return Draft(checkpoint_id, commit, base, due)


#: Fields of a record, in their order, and where a command has them.
_NAMED = ("stage", "agent", "agent_version", "session")
_named = attrgetter("stage_id", "agent_id", "agent_version", "session_id")
_FORKED = ("forked_from", "parent_id")
_forked = attrgetter("forked_from", "parent_uuid")


def _add(fields: dict[str, Any], names: Sequence[str], values: Sequence[Any]) -> None:
    """Add the fields that have a value."""
    for name, given in zip(names, values, strict=True):
        if given is not None:
            fields[name] = given
