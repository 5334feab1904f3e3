"""The state of a workflow at any point: the newest good checkpoint at or before it, and the events since."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from holdfast.application.commands import CheckpointName, CreateCheckpoint
from holdfast.application.kit import Kit
from holdfast.application.lenient import plain_again, revive_known
from holdfast.application.migrating import is_current, migrated
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, as_point, living, resolve
from holdfast.application.revealing import reveal
from holdfast.application.snapshot import changes, from_plain
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import SCHEMA_VERSION, CheckpointType
from holdfast.domain.delta import Operation
from holdfast.domain.errors import (
    UNUSABLE,
    CheckpointNotFoundError,
    EventsSkippedWarning,
    StoreDamageWarning,
    UnsupportedVersionError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import GENESIS, CheckpointRef, check_workflow_id
from holdfast.domain.plain import Plain
from holdfast.domain.record import Entry
from holdfast.domain.replay import Replayed, SkippedEvent, replay
from holdfast.domain.state import WorkflowState
from holdfast.domain.time import timestamp_text

_NAMED_MAX = 10


@dataclass(frozen=True, slots=True)
class Point:
    """The state of a workflow at a point, and how it came about."""

    workflow_id: str
    #: As a plain tree.
    tree: dict[str, Any]
    #: The checkpoint it was made from; None where there was none yet.
    found: Found | None = None
    #: The last event that is in it; 0 where that is not known, or there was none.
    event_seq: int = 0
    #: How many of the events since the checkpoint changed the state, and which could not.
    replayed: int = 0
    skipped: tuple[SkippedEvent, ...] = ()
    #: Damage that was worked around.
    notes: tuple[str, ...] = ()
    #: Version of the state's shape.
    schema: str = SCHEMA_VERSION
    #: Whether it was asked for as a checkpoint.
    is_checkpoint: bool = False
    #: False if the tree certainly holds no tagged object.
    is_tagged: bool = True

    def __str__(self) -> str:
        if self.is_checkpoint:
            return str(self.found)
        return f"{self.workflow_id}@event:{self.event_seq}"

    @property
    def origin(self) -> dict[str, Any]:
        """What a fork says about where it comes from."""
        entry = self.found.entry if self.found else None
        checkpoint = {"seq": entry.sequence, "checksum": entry.checksum} if entry else _NO_CHECKPOINT
        event = {} if self.is_checkpoint else {"event_seq": self.event_seq}
        return {"wf": self.workflow_id, **checkpoint, **event}

    @property
    def facts(self) -> dict[str, int | str]:
        """What the trail is told about it."""
        facts: dict[str, int | str] = {} if self.is_checkpoint else {"event_seq": self.event_seq}
        if self.found is not None:
            facts |= {"cp_seq": self.found.entry.sequence, "checksum": self.found.entry.checksum}
        return facts

    @property
    def remarks(self) -> list[str]:
        """What it is without, in words."""
        skipped = (f"event {one.seq} ({one.type}) was left out: {one.reason}" for one in self.skipped)
        return [*self.notes, *skipped]


_NO_CHECKPOINT: dict[str, Any] = {"seq": 0, "checksum": GENESIS}


class TimeTravel:
    """Answers for any point what `Reader` answers for checkpoints."""

    def __init__(self, kit: Kit, trail: Trail | None, reader: Reader) -> None:
        self._kit = kit
        self._trail = trail
        self._reader = reader

    def state_at(self, ref: CheckpointRef, *, stacklevel: int = 3) -> WorkflowState:
        """Answer the state at a point between checkpoints, verified; warnings are about so many levels up.

        Raises:
            CheckpointNotFoundError: there is no such point, or too little is kept to get there.
            CheckpointCorruptError: stored bytes are not what was committed.
            UnsupportedVersionError: the state has a shape that this program does not know.
        """
        point = self._at(ref, is_strict=True)
        _warn(point, stacklevel + 1)
        revealed = reveal(point.tree, self._kit.resolver, self._kit.packer)
        revealed.warn(str(point), stacklevel=stacklevel)
        state = WorkflowState.from_fields(self._kit.registry.revive(point.tree, owned=True))
        state.checkpoint_id = str(point.found) if point.found else None
        self._tell(AuditType.STATE_RESTORED, point)
        return state

    def at(self, name: CheckpointName) -> Point:
        """Answer the state at a checkpoint, as it is stored, or at a point, as a plain tree.

        The types in it need not be known here, nor the version of its shape.
        """
        ref = as_point(name)
        if ref is not None:
            return self._at(ref, is_strict=False)
        return self.checkpoint(resolve(self._kit.store, name))

    def checkpoint(self, found: Found) -> Point:
        """Answer the state of a checkpoint as it is stored."""
        restored = self._reader.restored(found)
        return Point(
            found.workflow_id,
            self._reader.whole(found, restored),
            found,
            found.entry.event_seq,
            notes=restored.notes,
            schema=restored.schema,
            is_checkpoint=True,
            is_tagged=restored.tagged,
        )

    def before(self, point: Point) -> Point | None:
        """Answer what a point grew out of: the checkpoint it starts from, the one before if it is one."""
        if point.found is None:
            return None
        if not point.is_checkpoint:
            return self.checkpoint(point.found)
        last = point.found.entry.sequence
        older = (entry for entry in living(self._kit.store, point.workflow_id) if entry.sequence < last)
        parent = next(older, None)
        return None if parent is None else self.checkpoint(Found(point.workflow_id, parent))

    def difference(self, old: CheckpointName, new: CheckpointName) -> list[Operation]:
        """Answer the operations that turn the state at one point into that at another."""
        points = [self.at(name) for name in (old, new)]
        before, after = (from_plain(point.tree, self._kit.packer) for point in points)
        for point in points:
            _warn(point, stacklevel=4)
            self._tell(AuditType.STATE_READ, point)
        return changes(before, after, self._kit.packer)

    def fork_command(self, name: CheckpointName, new_workflow_id: str) -> CreateCheckpoint:
        """Make the first checkpoint of a new workflow out of another's state at any point."""
        check_workflow_id(new_workflow_id)
        point = self.at(name)
        _warn(point, stacklevel=5)
        entry = point.found.entry if point.found else None
        # Plain trees are stored as they are: types that this program does not know fork as well.
        fields = {key: Plain(value) for key, value in point.tree.items()}
        phase = point.tree.get("phase")
        return CreateCheckpoint(
            new_workflow_id,
            {**fields, "workflow_id": new_workflow_id},
            CheckpointType.WORKFLOW_START,
            phase=phase if type(phase) is int else None,
            session_id=entry.session if entry else None,
            expected_sequence=0,
            forked_from=point.origin,
            schema_version=point.schema,
        )

    def _at(self, ref: CheckpointRef, *, is_strict: bool) -> Point:
        point = self._base(ref, is_strict=is_strict)
        events = _Counted(self.events(ref, point.event_seq), point.event_seq)
        replayed = self.replayed(point, events)
        if not events.last:
            raise _no_point(ref, "nothing had been recorded by then")
        return replace(
            point,
            tree=plain_again(replayed.fields, self._kit.registry, self._kit.packer),
            is_tagged=True,
            event_seq=events.last,
            replayed=replayed.count,
            skipped=replayed.skipped,
        )

    def replayed(self, point: Point, events: Iterator[Event]) -> Replayed:
        """Fold events onto the state at a point; the fields that come out are values."""
        reducers = self._kit.app.reducers
        readable = (self.with_values(event) for event in events if event.type in reducers)
        return replay(self.values(point), readable, reducers)

    def values(self, point: Point) -> dict[str, Any]:
        """Answer the fields at a point as values, as far as their types are known."""
        if not point.is_tagged:
            return point.tree
        fields: dict[str, Any] = revive_known(point.tree, self._kit.registry)
        return fields

    def with_values(self, event: Event) -> Event:
        """Answer an event whose data are values, as far as their types are known."""
        data = revive_known(event.data, self._kit.registry)
        return event if data is event.data else replace(event, data=data)

    def _base(self, ref: CheckpointRef, *, is_strict: bool) -> Point:
        """Restore the newest good checkpoint at or before a point; a blank state where there is none yet."""
        entries = self._kit.store.entries(ref.workflow_id, newest_first=True)
        notes, first = list[str](), None
        for entry in (entry for entry in entries if is_by(entry, ref)):
            if entry.pruned:
                notes.append(_missing(entry, "was pruned"))
                continue
            try:
                point = self.readable(Found(ref.workflow_id, entry), is_strict=is_strict)
                return replace(point, notes=(*notes, *point.notes))
            except UNUSABLE as problem:
                if not self._kit.recovery.is_fallback_allowed:
                    raise
                first = first or problem
                notes.append(_missing(entry, f"cannot be used ({problem.message})"))
        if first is not None:
            raise first
        if notes:
            raise _no_point(ref, "the checkpoints up to it were pruned")
        blank = WorkflowState(workflow_id=ref.workflow_id).to_fields()
        return Point(ref.workflow_id, blank, schema=self._kit.app.schema_version)

    def readable(self, found: Found, *, is_strict: bool = False) -> Point:
        """Restore a checkpoint in the shape that reducers know, if there is a way to it."""
        point = replace(self.checkpoint(found), is_checkpoint=False)
        if is_current(self._kit, point.schema):
            return point
        try:
            tree = migrated(self._kit, point.tree, point.schema, str(found))
        except UnsupportedVersionError:
            if is_strict:
                raise
            return point
        return replace(point, tree=tree, schema=self._kit.app.schema_version, is_tagged=True)

    def events(self, ref: CheckpointRef, after: int) -> Iterator[Event]:
        """Read the events after one, up to a point, each verified; none may be missing."""
        last = after
        if ref.event is not None and ref.event <= after:
            return
        for event in self._reader.opened_events(ref.workflow_id, after):
            if event.seq <= after:
                continue
            if ref.moment is not None and event.timestamp > ref.moment:
                break
            if event.seq != last + 1:
                raise _no_point(ref, f"events {last + 1} to {event.seq - 1} are gone")
            last = event.seq
            yield event
            if last == ref.event:
                # What follows may be damaged, and is not asked for.
                return
        if ref.event is not None and last < ref.event:
            raise _no_point(ref, f"the last event is {last}")

    def _tell(self, type: AuditType, point: Point) -> None:
        """Note in the trail that somebody looked at a state."""
        if self._trail is not None:
            self._trail.note(*self._trail.told(type, workflow_id=point.workflow_id, facts=point.facts))


class _Counted:
    """Passes events on and remembers the last one."""

    def __init__(self, events: Iterator[Event], last: int) -> None:
        self._events = events
        self.last = last

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = next(self._events)
        self.last = event.seq
        return event


def is_by(entry: Entry, ref: CheckpointRef) -> bool:
    """Tell whether a checkpoint was there at a point."""
    if ref.event is not None:
        return entry.event_seq <= ref.event
    return ref.moment is not None and entry.timestamp <= timestamp_text(ref.moment)


def _missing(entry: Entry, why: str) -> str:
    return f"checkpoint {entry.sequence} {why}: an older one was used, what only its state held is missing"


def _warn(point: Point, stacklevel: int) -> None:
    """Tell the caller, so many levels up, what the state of a point is without."""
    for note in point.notes:
        warnings.warn(note, StoreDamageWarning, stacklevel=stacklevel)
    if point.skipped:
        warnings.warn(_skipped_text(point), EventsSkippedWarning, stacklevel=stacklevel)


def _skipped_text(point: Point) -> str:
    named = [f"{event.seq} ({event.type}: {event.reason})" for event in point.skipped[:_NAMED_MAX]]
    more = f" and {len(point.skipped) - _NAMED_MAX} more" if len(point.skipped) > _NAMED_MAX else ""
    return f"{point} is without these events: {', '.join(named)}{more}. Register reducers that take them."


def _no_point(ref: CheckpointRef, why: str) -> CheckpointNotFoundError:
    return CheckpointNotFoundError(
        f"there is no such point, {why}", place=str(ref), hint="See `holdfast list` for what is there."
    )
