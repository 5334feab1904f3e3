"""The whole history of a workflow, read back from a store: each piece verified on top of the one before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from holdfast.application.records import open_record
from holdfast.application.restore import open_alone
from holdfast.application.vanished import told_by
from holdfast.domain import plainjson
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
)
from holdfast.domain.event import Event, decode_event
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Entry, EventRecord, Head, KeyframeEntry, Record
from holdfast.domain.time import timestamp_text
from holdfast.ports import Store

#: So much is read at once.
READ_COUNT_MAX = 256
READ_BYTES_MAX = 4 * 1024 * 1024

_LOOKS_MAX = 3
_DOCTOR = "Run `holdfast doctor` on that store to see what can be recovered."


@dataclass(frozen=True, slots=True)
class History:
    """What a store listed about a workflow at one moment; what comes later is no part of it."""

    workflow_id: str
    head: Head
    #: Tombstones included; one whose record is gone has no group.
    entries: tuple[Entry, ...]
    keyframes: tuple[KeyframeEntry, ...]

    def after(self, sequence: int) -> list[Entry]:
        """Answer the checkpoints after one."""
        return [entry for entry in self.entries if entry.sequence > sequence]

    def keyframe_at(self, sequence: int) -> KeyframeEntry | None:
        """Answer the keyframe of a checkpoint, None if it has none."""
        at = bisect_left(self.keyframes, sequence, key=attrgetter("sequence"))
        found = self.keyframes[at : at + 1]
        return found[0] if found and found[0].sequence == sequence else None

    def until(self, head: Head) -> History:
        """Answer the history up to where it stood before."""
        return replace(
            self,
            head=head,
            entries=tuple(entry for entry in self.entries if entry.sequence <= head.sequence),
            keyframes=tuple(one for one in self.keyframes if one.sequence <= head.sequence),
        )

    def blobs(self) -> set[str]:
        """Name every blob that what is stored refers to."""
        named = {sha256 for entry in self.entries for sha256 in entry.blobs}
        return named.union(*(keyframe.blobs for keyframe in self.keyframes))


def look(store: Store, workflow_id: str) -> History:
    """Look at a workflow that others may be writing to.

    If it changes each time, statuses may be newer than the last event; nothing else can be.

    Raises:
        CheckpointConflictError: the listing does not hold what the workflow's head says.
    """
    for _ in range(_LOOKS_MAX):
        head = store.head(workflow_id)
        entries = tuple(entry for entry in store.entries(workflow_id) if entry.sequence <= head.sequence)
        keyframes = tuple(one for one in store.keyframes(workflow_id) if one.sequence <= head.sequence)
        # A change of status moves the head too: if that stood still, the listing is that of one moment.
        if store.head(workflow_id) == head:
            break
    if not _fits(entries, head):
        raise CheckpointConflictError(
            "the workflow changed while it was read", place=workflow_id, hint="Try again."
        )
    dropped = _dropped(store, workflow_id, entries)
    listed = tuple(bare(entry) if entry.group in dropped else entry for entry in entries)
    return History(workflow_id, head, listed, keyframes)


def bare(entry: Entry) -> Entry:
    """Answer what is left of a checkpoint whose record is gone: it belongs to no group and needs nothing."""
    return replace(entry, group=0, length=0, blobs=())


def _fits(entries: Sequence[Entry], head: Head) -> bool:
    return (entries[-1].checksum if entries else GENESIS) == head.checksum


def _dropped(store: Store, workflow_id: str, entries: Iterable[Entry]) -> set[int]:
    """Find the groups that are gone. One that holds a kept checkpoint is there; the others are tried."""
    kept: set[int] = set()
    doubtful: dict[int, Entry] = {}
    for entry in entries:
        if entry.pruned:
            doubtful[entry.group] = entry
        else:
            kept.add(entry.group)
    return {
        group
        for group, entry in doubtful.items()
        if group not in kept and not _is_stored(store, workflow_id, entry.sequence)
    }


def _is_stored(store: Store, workflow_id: str, sequence: int) -> bool:
    try:
        return bool(list(store.records(workflow_id, sequence, sequence)))
    except CheckpointNotFoundError:
        return False


def read_records(store: Store, history: History, after: int = 0) -> Iterator[Record]:
    """Read the checkpoints after one, tombstones too, each verified on top of the one before.

    Raises:
        ChecksumMismatchError: a record is not the one that was committed.
        CheckpointNotFoundError: a record is gone, perhaps pruned meanwhile.
    """
    before = next((entry for entry in reversed(history.entries) if entry.sequence <= after), None)
    for piece in _pieces(history.after(after)):
        stored = iter(_read(store, history, [entry for entry in piece if entry.group]))
        for entry in piece:
            data = b""
            if entry.group:
                data = next(stored)
                _verify(store, history.workflow_id, before, entry, data)
            yield Record(entry, data)
            before = entry


def _pieces(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Part checkpoints into what is read at once."""
    piece: list[Entry] = []
    size_bytes = 0
    for entry in entries:
        if piece and (len(piece) == READ_COUNT_MAX or size_bytes + entry.length > READ_BYTES_MAX):
            yield piece
            piece, size_bytes = [], 0
        piece.append(entry)
        size_bytes += entry.length
    if piece:
        yield piece


def _read(store: Store, history: History, entries: Sequence[Entry]) -> list[bytes]:
    if not entries:
        return []
    found = list(store.records(history.workflow_id, entries[0].sequence, entries[-1].sequence))
    if len(found) != len(entries):
        raise CheckpointNotFoundError(
            f"{len(found)} of {len(entries)} records are there",
            place=f"{history.workflow_id}@{entries[0].sequence} to {entries[-1].sequence}",
            hint=_DOCTOR,
        )
    return found


def _verify(store: Store, workflow_id: str, before: Entry | None, entry: Entry, data: bytes) -> None:
    """Check that a record is the one listed, of this workflow, on top of the checkpoint before."""
    place = f"{workflow_id}@{entry.sequence}"
    if not entry.parent:
        opened = open_record(data, GENESIS, workflow_id, entry.sequence)
    elif before is not None and before.sequence == entry.parent:
        opened = open_record(data, before.checksum, workflow_id, entry.sequence)
    else:
        # A history that begins in the middle.
        opened, _ = open_alone(store, data, workflow_id, entry.sequence)
    name = plainjson.dumps({"seq": entry.sequence, "id": entry.uuid, "wf": workflow_id})
    if opened.checksum != entry.checksum or not data.startswith(name[:-1]):
        raise ChecksumMismatchError("the record is not the one that is listed", place=place, hint=_DOCTOR)


def read_events(
    store: Store, history: History, after: int = 0, hash_before: str = GENESIS
) -> Iterator[EventRecord]:
    """Read the events after one, up to the history's last, each verified on top of the one before.

    Without an event to begin after, the first may be any: those before it were removed. Its own hash is
    then proven by the events that follow.

    Raises:
        ChecksumMismatchError: an event is not the one that was committed.
        CheckpointCorruptError: events are missing at the end, or checkpoints that they tell of.
        CheckpointNotFoundError: the event to begin with is gone, perhaps pruned meanwhile.
    """
    last, told = Head(event_seq=after, event_hash=hash_before), 0
    for line in store.events(history.workflow_id, after=after):
        if last.event_seq == history.head.event_seq:
            break
        if after and last.event_seq == after:
            _check_next(history, line, after)
        event = _next_event(history, line, last)
        last, told = Head(event_seq=event.seq, event_hash=event.hash), told_by(event, told)
        yield EventRecord(event.seq, timestamp_text(event.timestamp), event.hash, line)
    if (last.event_seq, last.event_hash) != (history.head.event_seq, history.head.event_hash):
        raise CheckpointCorruptError(
            f"the events end with {last.event_seq}, {history.head.event_seq} were committed",
            place=f"events of {history.workflow_id}",
            hint=_DOCTOR,
        )
    if told > history.head.sequence:
        raise CheckpointCorruptError(
            f"the events tell of checkpoint {told}, and the last that is stored is {history.head.sequence}",
            place=history.workflow_id,
            hint=_DOCTOR,
        )


def _next_event(history: History, line: bytes, last: Head) -> Event:
    if last.event_seq == 0:
        event = decode_event(line, None)
        if event.seq == 1:
            decode_event(line, GENESIS)
    else:
        event = decode_event(line, last.event_hash)
    if event.workflow_id != history.workflow_id:
        raise CheckpointCorruptError(
            f"event {event.seq} is one of {event.workflow_id}",
            place=f"events of {history.workflow_id}",
            hint=_DOCTOR,
        )
    return event


def _check_next(history: History, line: bytes, after: int) -> None:
    found = decode_event(line, None).seq
    if found > after + 1:
        raise CheckpointNotFoundError(
            f"events {after + 1} to {found - 1} are gone",
            place=f"events of {history.workflow_id}",
            hint=_DOCTOR,
        )


def first_event(store: Store, workflow_id: str) -> int:
    """Answer the sequence of the oldest event that is kept; 0 where there is none."""
    for line in store.events(workflow_id):
        return decode_event(line, None).seq
    return 0
