"""What a store keeps: bytes that were hashed, and the few columns it may index."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import CheckpointConflictError, InvalidIdError
from holdfast.domain.ids import GENESIS
from holdfast.domain.value import value

#: Workflow of a commit that belongs to none.
NO_WORKFLOW = ""


@value
class Head:
    """Where a workflow stands: its last checkpoint and its last event."""

    sequence: int = 0
    checksum: str = GENESIS
    event_seq: int = 0
    event_hash: str = GENESIS


@value
class Entry:
    """What a listing knows about one checkpoint without reading its state."""

    sequence: int
    uuid: str
    timestamp: str
    type: str
    checksum: str
    parent: int = 0
    #: Sequence of the keyframe whose delta file holds the record.
    group: int = 0
    #: Bytes of the record as stored.
    length: int = 0
    #: Bytes of the whole state as packed; what limits and keyframe rules look at.
    state_bytes: int = 0
    status: str = "active"
    stage: str | None = None
    agent: str | None = None
    session: str | None = None
    phase: int | None = None
    label: str | None = None
    #: SHA-256 of every blob the record refers to.
    blobs: tuple[str, ...] = ()
    #: Last event committed before or with this checkpoint.
    event_seq: int = 0
    #: Schema version of the stored state.
    schema: str = "1.0.0"
    retry_count: int = 0
    pinned: bool = False
    #: A tombstone: the checkpoint was removed, its checksum keeps the chain checkable.
    pruned: bool = False


@value
class Record:
    """A checkpoint as committed: its listing entry and the exact bytes that were hashed.

    A copy of a store also brings tombstones: then the entry is `pruned`, and where the record of the
    checkpoint is gone too there are no bytes, and the entry's group is 0.
    """

    entry: Entry
    data: bytes


@value
class KeyframeEntry:
    """A stored keyframe: a complete state, a shortcut beside the deltas."""

    sequence: int
    sha256: str
    length: int
    #: File name ending: json, msgpack, cbor, then .zst or .gz.
    suffix: str = "json"
    blobs: tuple[str, ...] = ()


@value
class Keyframe:
    entry: KeyframeEntry
    data: bytes


@value
class EventRecord:
    """One event as committed: a JSON line that carries its own hash."""

    seq: int
    timestamp: str
    hash: str
    data: bytes


@value
class Transition:
    """A committed change of a checkpoint's status, retry count or pin. The event beside it is the truth."""

    sequence: int
    status: str
    retry_count: int = 0
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """A workflow that one owner has for itself until a moment, and the token that proves it."""

    workflow_id: str
    owner: str
    #: Higher with each lease of the workflow that is granted, never used twice.
    token: int
    #: By the clock of the store.
    expires_at: str
    #: Whether it had not expired when the store answered.
    is_live: bool = True


@value
class Commit:
    """Everything one call records. It becomes durable as a whole, or not at all.

    One without a workflow (`NO_WORKFLOW`) holds what concerns the store: audit entries, files, erasures.
    """

    workflow_id: str
    #: What the writer believes is the last checkpoint and event; else the commit is a conflict.
    expected: Head
    record: Record | None = None
    #: The complete state of `record`, given with the first checkpoint of a workflow.
    keyframe: Keyframe | None = None
    events: tuple[EventRecord, ...] = ()
    transitions: tuple[Transition, ...] = ()
    #: New blobs by SHA-256. A store keeps each once.
    blobs: dict[str, bytes] = field(default_factory=dict)
    #: Blobs that must already be there (found by `has_blob`): checked again under the commit lock.
    needs: tuple[str, ...] = ()
    #: Token of the lease under which the writer works; 0: under none.
    token: int = 0
    #: Appended to the trails of their sessions, where the store chains them; not one is left out.
    audit: tuple[AuditEntry, ...] = ()
    #: Small files of the store itself by name, to be replaced, or removed (None).
    files: dict[str, bytes | None] = field(default_factory=dict)
    #: What the writer believes these hold (None: there is none); else the commit is a conflict.
    expected_files: dict[str, bytes | None] = field(default_factory=dict)
    #: Payloads of audit entries, by session and sequence, whose bytes go for ever.
    erased: tuple[tuple[str, int], ...] = ()

    @property
    def head(self) -> Head:
        """Where the workflow stands once the commit is in."""
        before, record, events = self.expected, self.record, self.events
        return Head(
            record.entry.sequence if record else before.sequence,
            record.entry.checksum if record else before.checksum,
            events[-1].seq if events else before.event_seq,
            events[-1].hash if events else before.event_hash,
        )

    def check_nameless(self) -> None:
        """Refuse what only a workflow can have where there is none.

        Raises:
            InvalidIdError: the commit names no workflow, and holds more than concerns the store.
        """
        if self.record or self.keyframe or self.events or self.transitions or self.blobs:
            raise InvalidIdError("a commit of checkpoints or events names no workflow")

    def file_conflict(self, name: str) -> CheckpointConflictError:
        """Say that a file of the store is not what the writer believed."""
        return CheckpointConflictError(
            "a file of the store was changed by another writer", place=name, hint="Try again."
        )

    def conflict(self, head: Head) -> CheckpointConflictError:
        """Say that the workflow stands elsewhere than the writer believed."""
        believed = self.expected
        return CheckpointConflictError(
            f"expected checkpoint {believed.sequence} and event {believed.event_seq} to be the last, "
            f"found {head.sequence} and {head.event_seq}",
            place=self.workflow_id,
            hint="Another writer was faster: load the latest state, apply your change to it, try again.",
        )


@value
class Removal:
    """What retention decided to remove from one workflow."""

    sequences: tuple[int, ...]
    #: Groups (keyframe plus delta file) that no kept checkpoint needs.
    groups: tuple[int, ...] = ()
    #: Events up to and including this one may go.
    events_through: int = 0
    #: Blobs the removed records referred to; collected when nobody else does.
    blobs: tuple[str, ...] = ()
    #: Committed together with the removal.
    audit: tuple[AuditEntry, ...] = ()
    #: Nothing may be left to find: events go line by line, and journals keep no copy once this is settled.
    erases: bool = False
