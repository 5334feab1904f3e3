"""A checkpoint worked out up to its last byte, before anybody writes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

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

_Given = TypeVar("_Given", int, str)


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

    def change(self, ops: Sequence[Operation]) -> Draft:
        """Record what changed since the base.

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
            return self._draft(commit, self._base.group, self._base.keyframe_bytes, weight)
        due = self._caption(checksum)
        return self._draft(commit, self._sequence, self._size, 0, due)

    def whole(self) -> Draft:
        """Record the complete state: there is nothing to build on."""
        tree = self._snapshot.plain(self._kit.packer)
        if self._kit.redactor is not None:
            tree = self._kit.redactor.tree(tree)
        tree, blobs = lift(tree, self._kit.blob_threshold_bytes, self._seal)
        keyframe = build_keyframe(self._caption(""), tree, blobs, self._kit.formats, self._sealer)
        data, checksum = self._record(full_body(keyframe.entry.sha256), 0, ())
        record = Record(self._entry(data, checksum, self._sequence, ()), data)
        return self._draft(self._commit(record, keyframe, blobs), self._sequence, self._size, 0)

    def _body(self, ops: Sequence[Operation]) -> tuple[Body, dict[str, bytes]]:
        """Encode operations, large values lifted."""
        lifted, blobs = lift_ops(ops, self._kit.blob_threshold_bytes, self._seal)
        body = change_body(lifted, self._kit.formats, self._seal)
        return body, {**blobs, **body.blobs}

    def _record(self, body: Body, base_sequence: int, blobs: Iterable[str]) -> tuple[bytes, str]:
        asked, base, unpack = self._asked, self._base, self._kit.packer.unpack
        stage_state, agent_state = self._subject.stage_state, self._subject.agent_state
        fields = {
            "seq": self._sequence,
            "id": self._uuid,
            "wf": asked.workflow_id,
            "ts": self._timestamp,
            "type": _unless(usual_type(asked.agent_id).value, asked.type.value),
            "stage": asked.stage_id,
            "agent": asked.agent_id,
            "agent_version": asked.agent_version,
            "session": self._asked.session_id,
            "parent": self._named_parent(),
            "forked_from": self._asked.forked_from,
            "parent_id": asked.parent_uuid,
            "base": _unless(self._sequence - 1, base_sequence),
            "schema": _unless(SCHEMA_VERSION, self._subject.schema),
            "phase": self._asked.phase,
            "size": self._size,
            "events": _unless(1, self._event.seq - base.checkpoint_event_seq),
            "event_seq": self._as_of,
            "handler": asked.resume_handler,
            "max_retries": _unless(DEFAULT_MAX_RETRIES, asked.max_retries),
            "deps": list(asked.dependent_uuids) or None,
            "blobs": list(blobs) or None,
            "stage_state": None if stage_state is None else unpack(stage_state),
            "agent_state": None if agent_state is None else unpack(agent_state),
        }
        return build(fields, body, base.head.checksum, self._sealer)

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
        self, commit: Commit, group: int, keyframe_bytes: int, weight: int, due: Caption | None = None
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
        )
        return Draft(checkpoint_id, commit, base, due)


def _unless(usual: _Given, given: _Given) -> _Given | None:
    """Leave out what a reader takes for granted."""
    return None if given == usual else given
