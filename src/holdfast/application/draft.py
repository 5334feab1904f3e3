"""A checkpoint worked out up to its last byte, before anybody writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.application.base import Base
from holdfast.application.commands import CreateCheckpoint, Migrated
from holdfast.application.keyframes import Caption, build_keyframe
from holdfast.application.kit import Kit
from holdfast.application.records import Body, build, build_sealed, change_body, full_body
from holdfast.application.secrecy.sealing import write_event
from holdfast.application.snapshot import Snapshot
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.checkpoint import (
    DEFAULT_MAX_RETRIES,
    SCHEMA_VERSION,
    STATUS_EVENT,
    CheckpointStatus,
    usual_type,
)
from holdfast.domain.delta import Operation
from holdfast.domain.errors import CheckpointConflictError
from holdfast.domain.event import Event, encode_pointer
from holdfast.domain.ids import CheckpointID
from holdfast.domain.keyframe import delta_weight, needs_keyframe
from holdfast.domain.lift import lift, lift_ops
from holdfast.domain.plainjson import quoted
from holdfast.domain.record import Commit, Entry, EventRecord, Head, Keyframe, Record, Transition
from holdfast.domain.time import timestamp_text
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
        asked, states = self.command, (self.stage_state, self.agent_state)
        names = (asked.type, asked.stage_id, asked.agent_id, *states, asked.resume_handler, self.schema)
        return (*names, asked.max_retries, asked.parent_uuid, asked.dependent_uuids)

    @property
    def size(self) -> int:
        """Bytes of the states of stage and agent."""
        return len(self.stage_state or b"") + len(self.agent_state or b"")


@value
class Draft:
    """Everything that a checkpoint records, the base of the next one, and the keyframe that became due."""

    id: CheckpointID
    #: Where the workflow stood before.
    before: Head
    record: Record
    keyframe: Keyframe | None
    events: tuple[EventRecord, ...]
    transitions: tuple[Transition, ...]
    blobs: dict[str, bytes]
    #: Files of the store that have to be as they were.
    guard: dict[str, bytes | None]
    base: Base
    due: Caption | None

    def commit(self, audit: tuple[AuditEntry, ...] = (), token: int = 0) -> Commit:
        """Make the commit, with what the trail is told of it, under a lease or none."""
        return Commit(
            self.id.workflow_id,
            self.before,
            self.record,
            self.keyframe,
            self.events,
            self.transitions,
            self.blobs,
            (),
            token,
            audit,
            {},
            self.guard,
        )


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
        self._timestamp = timestamp_text(self._now)
        self._uuid = subject.uuid or kit.ids.new()
        self._sequence = base.head.sequence + 1
        self._sealer = None if kit.vault is None else kit.vault.sealer(self._asked.workflow_id)
        self._seal = self._sealer.blob if self._sealer else None
        self._event = self._created_event()
        self._as_of = self._event.seq if subject.as_of is None else subject.as_of

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
        base = self._base
        data, checksum = self._record(body, base.head.sequence, blobs)
        weight = base.weight + delta_weight(len(data))
        record = Record(self._entry(data, checksum, base.group, tuple(blobs)), data)
        if not needs_keyframe(base.keyframe_bytes, weight, self._size):
            return self._draft(record, None, blobs, base.group, base.keyframe_bytes, weight, is_bare=is_bare)
        due = self._caption(checksum)
        return self._draft(record, None, blobs, self._sequence, self._size, 0, due, is_bare=is_bare)

    def whole(self) -> Draft:
        """Record the complete state: there is nothing to build on."""
        plain = tree = self._snapshot.plain(self._kit.packer)
        if self._kit.redactor is not None:
            tree = self._kit.redactor.tree(plain)
        is_bare = tree is plain
        tree, blobs = lift(tree, self._kit.blob_threshold_bytes, self._seal)
        keyframe = build_keyframe(self._caption(""), tree, blobs, self._kit.formats, self._sealer)
        data, checksum = self._record(full_body(keyframe.entry.sha256), 0, {})
        record = Record(self._entry(data, checksum, self._sequence, ()), data)
        return self._draft(record, keyframe, blobs, self._sequence, self._size, 0, is_bare=is_bare)

    def _body(self, ops: Sequence[Operation]) -> tuple[Body, dict[str, bytes]]:
        """Encode operations, large values lifted."""
        lifted, blobs = lift_ops(ops, self._kit.blob_threshold_bytes, self._seal)
        body = change_body(lifted, self._kit.formats, self._seal)
        return body, {**blobs, **body.blobs} if body.blobs else blobs

    def _record(self, body: Body, base_sequence: int, blobs: Mapping[str, bytes]) -> tuple[bytes, str]:
        """Write the record, fields in the order of the format; what a reader takes for granted is left out.

        Most records have the same few fields: text by text they are written in a fraction of the time that
        an object of them would take to be made and encoded.
        """
        asked, base, sequence, sealer = self._asked, self._base, self._sequence, self._sealer
        text = f'{{"seq":{sequence},"id":{quoted(self._uuid)},"wf":{quoted(asked.workflow_id)}'
        text += f',"ts":"{self._timestamp}"{self._names(is_whole=not base_sequence)}'
        if base_sequence != sequence - 1:
            text += f',"base":{base_sequence}'
        if self._subject.schema != SCHEMA_VERSION:
            text += f',"schema":{_json(self._subject.schema)}'
        if asked.phase is not None:
            text += f',"phase":{_json(asked.phase)}'
        text += f',"size":{self._size}'
        if self._event.seq != base.checkpoint_event_seq + 1:
            text += f',"events":{self._event.seq - base.checkpoint_event_seq}'
        fields = plainjson.encoded(f'{text},"event_seq":{self._as_of}')
        if sealer is None:
            return build(fields + self._rest(blobs), body, base.head.checksum)
        if blobs:
            fields += b',"blobs":' + plainjson.dumps(list(blobs))
        return build_sealed(fields, self._secret(), body, base.head.checksum, sealer, sequence)

    def _names(self, *, is_whole: bool) -> str:
        """Write what a checkpoint is of, who made it and where it comes from."""
        asked, text = self._asked, ""
        if asked.type is not usual_type(asked.agent_id):
            text += f',"type":"{asked.type}"'
        if asked.stage_id is not None:
            text += f',"stage":{quoted(asked.stage_id)}'
        if asked.agent_id is not None:
            text += f',"agent":{quoted(asked.agent_id)}'
        if asked.agent_version is not None and self._sealer is None:
            text += f',"agent_version":{_json(asked.agent_version)}'
        if asked.session_id is not None:
            text += f',"session":{_json(asked.session_id)}'
        # Where the record before has that checksum nothing is said of the parent, unless the record is
        # sealed: what it was sealed on top of is part of the seal. Of one that is whole it may not be there.
        if is_whole or self._sealer is not None:
            text += f',"parent":{quoted(self._base.head.checksum)}'
        if asked.forked_from is not None:
            text += f',"forked_from":{_json(asked.forked_from)}'
        if asked.parent_uuid is not None:
            text += f',"parent_id":{quoted(asked.parent_uuid)}'
        return text

    def _rest(self, blobs: Mapping[str, bytes]) -> bytes:
        """Write what few records say at their end."""
        secret = self._secret()
        if not secret and not blobs:
            return b""
        secret.pop("agent_version", None)
        states = {name: secret.pop(name) for name in ("stage_state", "agent_state") if name in secret}
        if blobs:
            secret["blobs"] = list(blobs)
        rest = plainjson.dumps(secret | states)[1:-1]
        return b"," + rest if rest else b""

    def _secret(self) -> dict[str, Any]:
        """Answer what an encrypted store keeps to itself beside the change; most checkpoints have none."""
        asked, subject = self._asked, self._subject
        fields: dict[str, Any] = {}
        if asked.agent_version is not None:
            fields["agent_version"] = asked.agent_version
        if asked.resume_handler is not None:
            fields["handler"] = asked.resume_handler
        if asked.max_retries != DEFAULT_MAX_RETRIES:
            fields["max_retries"] = asked.max_retries
        if asked.dependent_uuids:
            fields["deps"] = list(asked.dependent_uuids)
        if subject.stage_state is not None:
            fields["stage_state"] = self._kit.packer.unpack(subject.stage_state)
        if subject.agent_state is not None:
            fields["agent_state"] = self._kit.packer.unpack(subject.agent_state)
        return fields

    def _entry(self, data: bytes, checksum: str, group: int, blobs: tuple[str, ...]) -> Entry:
        asked = self._asked
        # By place: by name it takes three times as long.
        return Entry(
            self._sequence,
            self._uuid,
            self._timestamp,
            asked.type._value_,
            checksum,
            self._base.head.sequence,
            group,
            len(data),
            self._size,
            CheckpointStatus.ACTIVE._value_,
            asked.stage_id,
            asked.agent_id,
            asked.session_id,
            asked.phase,
            None,
            blobs,
            self._as_of,
            self._subject.schema,
        )

    def _created_event(self) -> EventRecord:
        asked, head = self._asked, self._base.head
        seq = head.event_seq + 1
        if not asked.note:
            names = CREATED_EVENT, asked.workflow_id, asked.agent_id
            return encode_pointer(*names, seq, self._timestamp, self._sequence, head.event_hash)
        event = Event(
            seq=seq,
            timestamp=self._now,
            type=CREATED_EVENT,
            workflow_id=asked.workflow_id,
            agent=asked.agent_id,
            cp_seq=self._sequence,
            data=asked.note,
        )
        return write_event(self._sealer, event, head.event_hash)

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

    def _standing(self, before: Migrated | None) -> tuple[tuple[EventRecord, ...], tuple[Transition, ...]]:
        """Answer the events and changes by which a migrated checkpoint stands as the one it replaces did."""
        if before is None or (before.status == CheckpointStatus.ACTIVE and not before.retry_count):
            return (self._event,), ()
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
        return (self._event, told), (moved,)

    def _draft(
        self,
        record: Record,
        keyframe: Keyframe | None,
        blobs: dict[str, bytes],
        group: int,
        keyframe_bytes: int,
        weight: int,
        due: Caption | None = None,
        *,
        is_bare: bool,
    ) -> Draft:
        asked, before, sequence, sealer = self._asked, self._base, self._sequence, self._sealer
        checksum = record.entry.checksum
        made = CheckpointID(
            asked.workflow_id, sequence, self._now, checksum, self._uuid, asked.stage_id, asked.agent_id
        )
        events, transitions = self._standing(asked.migrated)
        base = Base(
            Head(sequence, checksum, events[-1].seq, events[-1].hash),
            before.lineage,
            self._snapshot,
            False,
            self._size,
            made,
            self._subject.fingerprint,
            group,
            keyframe_bytes,
            weight,
            self._as_of,
            before.warned_bytes,
            sealer.key_id if sealer else "",
            False,
            is_bare,
        )
        guard = sealer.guard if sealer else {}
        return Draft(made, before.head, record, keyframe, events, transitions, blobs, guard, base, due)


def _json(plain: Any) -> str:
    """Write a value that nobody checked, in nearly every case a text."""
    return quoted(plain) if type(plain) is str else plainjson.dumps(plain).decode()
