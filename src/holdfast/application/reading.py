"""Questions to a store: states, checkpoints, listings, events."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from typing import Any

from holdfast.application.commands import CheckpointName
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.migrating import is_current, migrated
from holdfast.application.quarantine_marks import refuse_quarantined
from holdfast.application.resolve import Found, living, resolve
from holdfast.application.restore import Restored, Restorer
from holdfast.application.revealing import Revealed, WatchedBlobs, reveal
from holdfast.application.secrecy.sealing import read_event
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.checkpoint import (
    DEFAULT_MAX_RETRIES,
    SCHEMA_VERSION,
    STATUS_EVENT,
    Checkpoint,
    CheckpointMeta,
)
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointReadError,
    ChecksumMismatchError,
    InvalidStateError,
    StoreDamageWarning,
    recovery_hint,
)
from holdfast.domain.event import Event, decode_event
from holdfast.domain.ids import GENESIS
from holdfast.domain.lift import lower
from holdfast.domain.record import Entry
from holdfast.domain.state import WorkflowState
from holdfast.domain.time import timestamp_text
from holdfast.domain.tree import has_tags


class Reader:
    """Answers questions without changing anything."""

    def __init__(self, kit: Kit, trail: Trail | None = None) -> None:
        self._kit = kit
        self._trail = trail
        self._store = kit.store
        self._restorer = Restorer(kit.store, kit.formats, kit.vault)

    def restore(self, name: CheckpointName, *, stacklevel: int = 3) -> WorkflowState:
        """Answer the state of a checkpoint, verified; warnings are about the caller so many levels up."""
        found = resolve(self._store, name)
        restored = self.restored(found)
        for note in restored.notes:
            warnings.warn(note, StoreDamageWarning, stacklevel=stacklevel)
        fields, revealed = self.revived(found, restored)
        revealed.warn(str(found), stacklevel=stacklevel)
        state = WorkflowState.from_fields(fields)
        state.checkpoint_id = str(found)
        self.tell(AuditType.STATE_RESTORED, found, facts=_counted(revealed))
        return state

    def revived(self, found: Found, restored: Restored) -> tuple[Any, Revealed]:
        """Answer the fields of a state as they were given, and what is missing in them.

        A state of another version is migrated to that of the program; what is stored stays as it is.
        """
        try:
            return self._revived(found, restored)
        except CheckpointNotFoundError as problem:
            raise self._missing(found, problem) from problem

    def _missing(self, found: Found, problem: CheckpointNotFoundError) -> CheckpointError:
        """Tell what a listed checkpoint lacks: that is damage, unless it was pruned while it was read."""
        listed = (entry.sequence for entry in living(self._store, found.workflow_id))
        if found.entry.sequence not in listed:
            return problem
        return CheckpointCorruptError(
            problem.message, place=problem.place or str(found), hint=recovery_hint(found.workflow_id)
        )

    def _revived(self, found: Found, restored: Restored) -> tuple[Any, Revealed]:
        if not is_current(self._kit, restored.schema):
            return self._migrated(found, restored)
        revive, blobs = self._kit.registry.revive, WatchedBlobs(self._restorer.load_blob)
        if not restored.redacted:
            if not restored.tagged:
                return restored.tree, Revealed()
            fields = revive(restored.tree, blobs.load, owned=True)
            if not blobs.is_redacted:
                return fields, Revealed()
            restored = self.restored(found)
        tree = self.whole(found, restored)
        revealed = reveal(tree, self._kit.resolver, self._kit.packer)
        return revive(tree), revealed

    def _migrated(self, found: Found, restored: Restored) -> tuple[Any, Revealed]:
        blobs = WatchedBlobs(self._restorer.load_blob)
        tree = lower(restored.tree, blobs.load) if restored.tagged else restored.tree
        tree = migrated(self._kit, tree, restored.schema, str(found))
        revealed = Revealed()
        if restored.redacted or blobs.is_redacted:
            revealed = reveal(tree, self._kit.resolver, self._kit.packer)
        return self._kit.registry.revive(tree, owned=True), revealed

    def tell(
        self,
        type: AuditType,
        found: Found,
        *,
        outcome: Outcome = Outcome.SUCCESS,
        facts: Mapping[str, int | str] | None = None,
    ) -> None:
        """Note in the trail that somebody looked at a checkpoint."""
        if self._trail is not None:
            about = {"cp_seq": found.entry.sequence, "checksum": found.entry.checksum, **(facts or {})}
            self._trail.note(
                *self._trail.told(type, workflow_id=found.workflow_id, outcome=outcome, facts=about)
            )

    def restored(self, found: Found, *, is_from_oldest: bool = False) -> Restored:
        """Answer a checkpoint's state as a plain tree, verified.

        Raises:
            CheckpointQuarantinedError: it was set aside.
        """
        refuse_quarantined(self._store, found.workflow_id, found.entry.sequence)
        return self.verified(found, is_from_oldest=is_from_oldest)

    def verified(self, found: Found, *, is_from_oldest: bool = False) -> Restored:
        """Answer a checkpoint's state as a plain tree, verified, whether it was set aside or not."""
        workflow_id, sequence = found.workflow_id, found.entry.sequence
        try:
            restored = self._restorer.restore(workflow_id, sequence, is_from_oldest=is_from_oldest)
        except CheckpointNotFoundError as problem:
            raise self._missing(found, problem) from problem
        if restored.checksum != found.entry.checksum:
            raise ChecksumMismatchError(
                "the restored checkpoint is not the one listed",
                place=str(found),
                hint=recovery_hint(found.workflow_id),
            )
        return restored

    def whole(self, found: Found, restored: Restored) -> dict[str, Any]:
        """Answer a state as a plain tree with the values of its blobs."""
        try:
            return self._restorer.whole(restored)
        except CheckpointNotFoundError as problem:
            raise self._missing(found, problem) from problem

    def latest(self, workflow_id: str) -> WorkflowState | None:
        """Answer the newest state of a workflow, None if it has no checkpoint."""
        newest = next(living(self._store, workflow_id), None)
        if newest is None:
            return None
        return self.restore(Found(workflow_id, newest).id)

    def listing(
        self, workflow_id: str, limit: int, after: datetime | CheckpointName | int | None
    ) -> list[CheckpointMeta]:
        """Answer the newest checkpoints of a workflow, newest first, tombstones left out."""
        metas: Iterator[CheckpointMeta] = (
            CheckpointMeta.from_entry(workflow_id, entry) for entry in living(self._store, workflow_id)
        )
        if isinstance(after, datetime):
            # Refuses one without a time zone, which no moment can be compared with.
            timestamp_text(after)
            metas = (meta for meta in metas if meta.created_at > after)
        elif after is not None:
            last = after if isinstance(after, int) else resolve(self._store, after).entry.sequence
            metas = takewhile(lambda meta: meta.id.sequence > last, metas)
        return list(islice(metas, _at_most(limit)))

    def checkpoint(self, name: CheckpointName) -> Checkpoint | None:
        """Answer everything about a checkpoint but its workflow's state; None if there is none."""
        try:
            found = resolve(self._store, name)
        except CheckpointNotFoundError:
            return None
        fields = record_fields(self._store, found.workflow_id, found.entry, self._kit.vault)
        names = [name for name in ("stage_state", "agent_state") if name in fields]
        states: dict[str, Any] = {name: fields[name] for name in names}
        revealed = reveal(states, self._kit.resolver, self._kit.packer)
        revealed.warn(str(found), stacklevel=3)
        described = self._described(found, {**fields, **states})
        self.tell(AuditType.STATE_READ, found, facts=_counted(revealed))
        return described

    def events(self, workflow_id: str, after: int, type: str | None, limit: int | None) -> list[Event]:
        """Answer a workflow's events in order, each verified on top of the one before."""
        matching = (
            event
            for event in self._verified_events(workflow_id, after)
            if event.seq > after and type in (None, event.type)
        )
        events = list(islice(matching, _at_most(limit)))
        self._tell_events(workflow_id, events)
        return events

    def events_as_far(self, workflow_id: str, after: int) -> tuple[list[Event], CheckpointReadError | None]:
        """Answer a workflow's events after one as far as they verify, and what ends that."""
        events, problem = list[Event](), None
        try:
            for event in self._verified_events(workflow_id, after):
                if event.seq > after:
                    events.append(event)
        except CheckpointReadError as found:
            problem = found
        self._tell_events(workflow_id, events)
        return events, problem

    def _tell_events(self, workflow_id: str, events: list[Event]) -> None:
        if self._trail is not None and events:
            facts = {"first": events[0].seq, "last": events[-1].seq}
            self._trail.note(*self._trail.told(AuditType.EVENTS_READ, workflow_id=workflow_id, facts=facts))

    def _verified_events(self, workflow_id: str, after: int) -> Iterator[Event]:
        return map(self.with_values, self.opened_events(workflow_id, after))

    def with_values(self, event: Event) -> Event:
        """Answer an event whose data are values, and not what is stored of them."""
        if not has_tags(event.data):
            return event
        return replace(event, data=self._kit.registry.revive(event.data))

    def opened_events(self, workflow_id: str, after: int = 0) -> Iterator[Event]:
        """Answer events, verified and opened, their data plain; the one before the first may be among them.

        Its line tells what the first one was hashed on.
        """
        previous: str | None = None
        for line in self._store.events(workflow_id, after=max(after - 1, 0)):
            event = _decoded(line, previous, workflow_id)
            if previous is None and event.seq == 1:
                previous = GENESIS
                _decoded(line, previous, workflow_id)
            opened = read_event(self._kit.vault, event, workflow_id, previous)
            previous = event.hash
            yield opened

    def _described(self, found: Found, fields: Mapping[str, Any]) -> Checkpoint:
        meta = CheckpointMeta.from_entry(found.workflow_id, found.entry)
        last = self.last_status(found) if found.entry.status != "active" else None
        parent = fields.get("parent_id") or self._parent_uuid(found)
        return Checkpoint(
            id=meta.id,
            type=meta.type,
            created_at=meta.created_at,
            updated_at=last.timestamp if last else meta.created_at,
            status=meta.status,
            stage_state=self._kit.registry.revive(fields.get("stage_state", {})),
            agent_state=self._kit.registry.revive(fields.get("agent_state", {})),
            parent_checkpoint_id=parent,
            dependent_checkpoint_ids=tuple(fields.get("deps", ())),
            resume_handler=fields.get("handler"),
            retry_count=found.entry.retry_count,
            max_retries=fields.get("max_retries", DEFAULT_MAX_RETRIES),
            error_message=last.data.get("error_message") if last else None,
            error_stacktrace=last.data.get("error_stacktrace") if last else None,
            schema_version=fields.get("schema", SCHEMA_VERSION),
            session_id=found.entry.session,
            agent_version=fields.get("agent_version"),
        )

    def _parent_uuid(self, found: Found) -> str | None:
        for entry in self._store.entries(found.workflow_id, newest_first=True):
            if entry.sequence == found.entry.parent:
                return entry.uuid
        return None

    def last_status(self, found: Found) -> Event | None:
        """Answer the last event that changed the status of a checkpoint, verified; None if none did."""
        return self.last_statuses(found.workflow_id, [found.entry]).get(found.entry.sequence)

    def last_statuses(self, workflow_id: str, entries: Sequence[Entry]) -> dict[int, Event]:
        """Answer the last event that changed the status of each checkpoint, verified, by sequence."""
        return self.last_events(STATUS_EVENT, workflow_id, entries)

    def last_events(self, type: str, workflow_id: str, entries: Sequence[Entry]) -> dict[int, Event]:
        """Answer the last event of a type that is about each checkpoint, verified, by sequence."""
        mark = type.encode()
        sequences = {entry.sequence for entry in entries}
        # They came after the checkpoints: nothing older is read, and of what is only the few that may be it.
        after, before = min((entry.event_seq for entry in entries), default=0), b""
        last: dict[int, Event] = {}
        for line in self._store.events(workflow_id, after=max(after - 1, 0)) if entries else ():
            if mark in line:
                event = self._event_after(line, before, workflow_id)
                if event.seq > after and event.type == type and event.cp_seq in sequences:
                    last[event.cp_seq] = event
            before = line
        revive = self._kit.registry.revive
        return {sequence: replace(event, data=revive(event.data)) for sequence, event in last.items()}

    def _event_after(self, line: bytes, before: bytes, workflow_id: str) -> Event:
        """Read one event, verified on top of the line before it."""
        previous = decode_event(before, None).hash if before else None
        event = _decoded(line, previous, workflow_id)
        if previous is None and event.seq == 1:
            previous = GENESIS
            _decoded(line, previous, workflow_id)
        return read_event(self._kit.vault, event, workflow_id, previous)


def _at_most(limit: int | None) -> int | None:
    """Answer how many are wanted at most.

    Raises:
        InvalidStateError: it is no number of anything.
    """
    if limit is not None and not (isinstance(limit, int) and limit >= 0):
        raise InvalidStateError(f"limit is {limit!r}", hint="Use a whole number from 0 on.")
    return limit if limit is None else min(limit, sys.maxsize)


def _counted(revealed: Revealed) -> dict[str, int]:
    """Tell in numbers what was missing in a state, and what the resolver put there."""
    counts = {"redacted": len(revealed.left), "resolved": revealed.filled}
    return {name: count for name, count in counts.items() if count}


def _decoded(line: bytes, previous_hash: str | None, workflow_id: str) -> Event:
    """Read an event; the line itself does not say whose it is, and the hint has to."""
    try:
        return decode_event(line, previous_hash)
    except CheckpointCorruptError as damage:
        damage.hint = recovery_hint(workflow_id)
        raise
