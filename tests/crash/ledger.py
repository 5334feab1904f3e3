"""What was attempted on a store and what was acknowledged, and whether a store agrees with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import (
    NO_WORKFLOW,
    Commit,
    Entry,
    EventRecord,
    Head,
    Keyframe,
    KeyframeEntry,
    Removal,
    Transition,
)
from holdfast.domain.record import Record as CheckpointRecord
from tests.crash.trail_ledger import (
    Told,
    chain_problems,
    content_problems,
    gone,
    keys_of,
    see_trails,
    traces,
)

#: Length of a hash with its kind, and of what ends a line after it.
_SEAL_BYTES = len("sha256:") + 64 + len('"}\n')

DAYS = ("2026-01-11", "2026-01-12", "2026-01-13")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sealed(fields: dict[str, Any], name: str, parent: str) -> tuple[bytes, str]:
    """A JSON line that carries its own hash last, chained to its parent."""
    start = json.dumps(fields, separators=(",", ":")).encode()[:-1] + f',"{name}":"'.encode()
    checksum = "sha256:" + sha256(parent.encode() + b"\n" + start + b'"}\n')
    return start + checksum.encode() + b'"}\n', checksum


def is_sealed(line: bytes, parent: str) -> bool:
    """Whether a line is whole and was hashed on top of this parent."""
    start, claimed, end = line[:-_SEAL_BYTES], line[-_SEAL_BYTES:-3], line[-3:]
    checksum = "sha256:" + sha256(parent.encode() + b"\n" + start + b'"}\n')
    return end == b'"}\n' and claimed == checksum.encode()


def make_event(
    head: Head, workflow_id: str, timestamp: str, data: dict[str, Any], **fields: Any
) -> EventRecord:
    seq = head.event_seq + 1
    line, digest = sealed(
        {"seq": seq, "ts": timestamp, "type": "NOTE", "wf": workflow_id, **fields, "data": data},
        "hash",
        head.event_hash,
    )
    return EventRecord(seq, timestamp, digest, line)


def make_record(
    head: Head, workflow_id: str, uuid: str, timestamp: str, group: int, **fields: Any
) -> CheckpointRecord:
    seq = head.sequence + 1
    named = {"seq": seq, "id": uuid, "wf": workflow_id, "ts": timestamp, "type": "agent_complete"}
    data, checksum = sealed({**named, "event_seq": head.event_seq, **fields}, "checksum", head.checksum)
    blobs = tuple(fields.get("blobs", ()))
    entry = Entry(
        seq,
        uuid,
        timestamp,
        "agent_complete",
        checksum,
        seq - 1,
        group=group,
        length=len(data),
        blobs=blobs,
        event_seq=head.event_seq,
    )
    return CheckpointRecord(entry, data)


def make_keyframe(sequence: int, data: bytes) -> Keyframe:
    return Keyframe(KeyframeEntry(sequence, sha256(data), len(data)), data)


@dataclass
class Attempt:
    """One call that tried to make something durable."""

    number: int
    workflow_id: str
    what: Commit | Keyframe | Removal
    #: None while the call runs or when it raised: it may be there, wholly, or not.
    acknowledged: bool = False
    #: True if the store answered that nothing of it was kept.
    refused: bool = False


@dataclass
class Ledger:
    attempts: list[Attempt] = field(default_factory=list)

    def attempt(self, workflow_id: str, what: Commit | Keyframe | Removal) -> Attempt:
        found = Attempt(len(self.attempts), workflow_id, what)
        self.attempts.append(found)
        return found

    @property
    def acknowledged(self) -> int:
        return sum(attempt.acknowledged for attempt in self.attempts)

    def of(self, workflow_id: str) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.workflow_id == workflow_id]

    def workflows(self) -> list[str]:
        names = dict.fromkeys(attempt.workflow_id for attempt in self.attempts)
        return [name for name in names if name != NO_WORKFLOW]


@dataclass(frozen=True)
class Seen:
    """Everything a store says about one workflow."""

    head: Head
    entries: tuple[Entry, ...]
    records: dict[int, bytes]
    keyframes: dict[int, bytes]
    events: tuple[bytes, ...]
    blobs: dict[str, bytes]


def see(store: FilesystemStore, workflow_id: str) -> Seen:
    entries = tuple(store.entries(workflow_id))
    kept = [entry for entry in entries if not entry.pruned]
    records = {e.sequence: next(iter(store.records(workflow_id, e.sequence, e.sequence))) for e in kept}
    keyframes = {k.sequence: store.keyframe(workflow_id, k.sequence) for k in store.keyframes(workflow_id)}
    blobs = {sha: store.blob(sha) for entry in kept for sha in entry.blobs}
    return Seen(store.head(workflow_id), entries, records, keyframes, tuple(store.events(workflow_id)), blobs)


def see_all(store: FilesystemStore) -> dict[str, Seen]:
    return {workflow_id: see(store, workflow_id) for workflow_id in sorted(store.workflows())}


def differences(store: FilesystemStore, ledger: Ledger, *, recovered: bool = False) -> list[str]:
    """Everything in which a store breaks its word; empty if it keeps it.

    Once it was recovered, nothing may be left of what was erased, also if nobody was told that it was.
    """
    try:
        seen, told = see_all(store), see_trails(store)
        found = list(chain_problems(store, told))
    except CheckpointError as error:
        return [f"cannot read: {error!r}"]
    known = set(ledger.workflows())
    found += [f"invented workflow {name}" for name in seen if name not in known]
    for workflow_id in ledger.workflows():
        there = seen.get(workflow_id) or Seen(Head(), (), {}, {}, (), {})
        found += [f"{workflow_id}: {text}" for text in _compare(there, ledger.of(workflow_id), told)]
    for attempt in ledger.of(NO_WORKFLOW):
        assert isinstance(attempt.what, Commit)
        found += _all_or_nothing(attempt, list(_told_parts(told, attempt.what)))
    found += content_problems(told, [attempt.what for attempt in ledger.attempts])
    done = [attempt.what for attempt in ledger.attempts if attempt.acknowledged or recovered]
    found += traces(store._disk, gone(told, done))
    # Whoever dies in the middle of a large value may leave it: that is told, and no harm.
    findings = (one for one in store.check() if one.harm or not one.place.startswith("leftovers: "))
    found += [f"check: {finding}" for finding in findings]
    return found


def _compare(seen: Seen, attempts: list[Attempt], told: Told) -> Iterator[str]:
    yield from _verify_chains(seen)
    removals = [(a, a.what) for a in attempts if isinstance(a.what, Removal)]
    done = [removal for _, removal in removals if any(_removed_parts(seen, removal))]
    removed = {sequence for removal in done for sequence in removal.sequences}
    events_through = max((removal.events_through for removal in done), default=0)
    present: list[Commit] = []
    for attempt in attempts:
        if isinstance(attempt.what, Commit):
            parts = _parts(seen, attempt.what, removed, events_through)
            there = [*parts, *_told_parts(told, attempt.what)]
            yield from _all_or_nothing(attempt, there)
            # Where a removal left nothing to look at, the answer to the caller decides.
            if all(there) and (there or attempt.acknowledged):
                present.append(attempt.what)
    yield from _heads(seen, present)
    yield from _statuses(seen, present)
    for attempt, removal in removals:
        there = [*_removed_parts(seen, removal), *_told_parts(told, removal)]
        yield from _all_or_nothing(attempt, there)
    dropped = {group for _, removal in removals for group in removal.groups}
    for attempt in attempts:
        if isinstance(attempt.what, Keyframe) and attempt.what.entry.sequence not in dropped:
            yield from _keyframe_there(seen, attempt, attempt.what)


def _told_parts(told: Told, what: Commit | Removal) -> Iterator[bool]:
    return (key in told.seqs for key in keys_of(what.audit))


def _all_or_nothing(attempt: Attempt, there: list[bool]) -> Iterator[str]:
    what = type(attempt.what).__name__
    if attempt.acknowledged and not all(there):
        yield f"attempt {attempt.number} ({what}) was acknowledged and is not all there: {there}"
    elif attempt.refused and any(there):
        yield f"attempt {attempt.number} ({what}) was refused and is there: {there}"
    elif any(there) and not all(there):
        yield f"attempt {attempt.number} ({what}) is half there: {there}"


def _parts(seen: Seen, commit: Commit, removed: set[int], events_through: int) -> Iterator[bool]:
    """For each part of a commit that must still be there: whether it is, byte for byte."""
    if (record := commit.record) is not None:
        entry = next((e for e in seen.entries if e.uuid == record.entry.uuid), None)
        yield entry is not None and entry.checksum == record.entry.checksum
        if record.entry.sequence not in removed:
            yield seen.records.get(record.entry.sequence) == record.data
            # A blob may be there because of another commit: it counts only beside its own record.
            yield entry is not None and all(sha in seen.blobs for sha in record.entry.blobs)
            if commit.keyframe is not None:
                yield seen.keyframes.get(record.entry.sequence) == commit.keyframe.data
    for event in commit.events:
        if event.seq > events_through:
            yield event.data in seen.events


def _removed_parts(seen: Seen, removal: Removal) -> Iterator[bool]:
    by_sequence = {entry.sequence: entry for entry in seen.entries}
    for sequence in removal.sequences:
        entry = by_sequence.get(sequence)
        yield entry is not None and entry.pruned
    for group in removal.groups:
        yield group not in seen.keyframes


def _keyframe_there(seen: Seen, attempt: Attempt, keyframe: Keyframe) -> Iterator[str]:
    data = seen.keyframes.get(keyframe.entry.sequence)
    if data is None and attempt.acknowledged:
        yield f"keyframe {keyframe.entry.sequence} was acknowledged and is gone"
    elif data is not None and data != keyframe.data:
        yield f"keyframe {keyframe.entry.sequence} has other bytes"


def _verify_chains(seen: Seen) -> Iterator[str]:
    """Dense sequences, and every record and event hashed on top of the one before."""
    sequences = [entry.sequence for entry in seen.entries]
    if sequences != list(range(1, len(sequences) + 1)):
        yield f"sequences {sequences}"
    parent = Head().checksum
    for entry in seen.entries:
        if entry.sequence in seen.records and not is_sealed(seen.records[entry.sequence], parent):
            yield f"record {entry.sequence} is not chained to the one before"
        parent = entry.checksum
    lines = [json.loads(line) for line in seen.events]
    first = lines[0]["seq"] if lines else 0
    if [line["seq"] for line in lines] != list(range(first, first + len(lines))):
        yield "event sequences have a hole"
    for line, before in zip(seen.events[1:], lines, strict=False):
        if not is_sealed(line, before["hash"]):
            yield f"event {json.loads(line)['seq']} is not chained to the one before"


def _heads(seen: Seen, present: list[Commit]) -> Iterator[str]:
    head = Head()
    for commit in present:
        if commit.record is not None:
            head = replace(head, sequence=commit.record.entry.sequence, checksum=commit.record.entry.checksum)
        if commit.events:
            head = replace(head, event_seq=commit.events[-1].seq, event_hash=commit.events[-1].hash)
    if head != seen.head:
        yield f"head is {seen.head}, what is there says {head}"


def _statuses(seen: Seen, present: list[Commit]) -> Iterator[str]:
    expected: dict[int, Transition] = {}
    for commit in present:
        expected.update({transition.sequence: transition for transition in commit.transitions})
    for entry in seen.entries:
        if not entry.pruned:
            want = expected.get(entry.sequence, Transition(entry.sequence, "active"))
            if (entry.status, entry.retry_count, entry.pinned) != (
                want.status,
                want.retry_count,
                want.pinned,
            ):
                yield f"checkpoint {entry.sequence} is {entry.status}, committed was {want.status}"
