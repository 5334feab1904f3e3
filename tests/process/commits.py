"""Hand-made commits whose every byte can be checked when they come back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import (
    Commit,
    Entry,
    EventRecord,
    Head,
    Keyframe,
    KeyframeEntry,
    Record,
    Removal,
)

TIMESTAMP = "2026-01-11T00:00:00.000000Z"
EVENTS_PER_COMMIT = 2
GROUP_SIZE = 10


def sealed(fields: dict[str, object], name: str, previous: str) -> tuple[bytes, str]:
    """A JSON line that ends in the hash of itself and of what came before it."""
    body = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    digest = hashlib.sha256(previous.encode() + b"\n" + body).hexdigest()
    return body + f',"{name}":"{digest}"}}\n'.encode(), digest


def is_sealed(line: bytes, name: str, previous: str) -> bool:
    """Whether a line is whole, unchanged and follows `previous`."""
    body, separator, tail = line.rpartition(f',"{name}":"'.encode())
    digest = hashlib.sha256(previous.encode() + b"\n" + body).hexdigest()
    return bool(separator) and tail == f'{digest}"}}\n'.encode()


def group_of(sequence: int) -> int:
    return (sequence - 1) // GROUP_SIZE * GROUP_SIZE + 1


def make_commit(
    head: Head, workflow_id: str, *, pad_bytes: int = 200, timestamp: str = TIMESTAMP, writer: str = "w"
) -> Commit:
    """The next commit of a workflow: one record and two events that name it."""
    sequence = head.sequence + 1
    fields = {"seq": sequence, "id": f"{writer}-{sequence}", "wf": workflow_id, "ts": timestamp}
    data, checksum = sealed(
        {**fields, "type": "agent_complete", "pad": "x" * pad_bytes}, "checksum", head.checksum
    )
    group = group_of(sequence)
    entry = Entry(
        sequence,
        f"{writer}-{sequence}",
        timestamp,
        "agent_complete",
        checksum,
        sequence - 1,
        group=group,
        length=len(data),
    )
    return Commit(
        workflow_id, head, Record(entry, data), None, _events(head, workflow_id, sequence, timestamp)
    )


def _events(head: Head, workflow_id: str, sequence: int, timestamp: str) -> tuple[EventRecord, ...]:
    events = []
    previous = head.event_hash
    for number in range(head.event_seq + 1, head.event_seq + 1 + EVENTS_PER_COMMIT):
        fields: dict[str, object] = {"seq": number, "ts": timestamp, "wf": workflow_id, "cp_seq": sequence}
        data, previous = sealed(fields, "hash", previous)
        events.append(EventRecord(number, timestamp, previous, data))
    return tuple(events)


def make_keyframe(sequence: int, size_bytes: int = 3000) -> Keyframe:
    data = json.dumps({"state": sequence, "pad": "k" * size_bytes}).encode() + b"\n"
    return Keyframe(KeyframeEntry(sequence, hashlib.sha256(data).hexdigest(), len(data)), data)


def prune_through(group: int) -> Removal:
    """Remove every checkpoint before a group."""
    return Removal(tuple(range(1, group)), tuple(range(1, group, GROUP_SIZE)))


@dataclass(slots=True)
class Acknowledged:
    """What writers were told is durable: checksum by workflow and sequence, and prunes."""

    commits: dict[str, dict[int, str]] = field(default_factory=dict)
    prune_asked: dict[str, int] = field(default_factory=dict)
    prune_done: dict[str, int] = field(default_factory=dict)
    keyframes: dict[str, set[int]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def note(self, line: str) -> None:
        """Take in one line of a writer's report."""
        word, workflow_id, number, *rest = line.split()
        sequence = int(number)
        if word == "ack":
            known = self.commits.setdefault(workflow_id, {})
            if sequence in known:
                self.violations.append(f"{workflow_id}@{sequence} was acknowledged twice")
            known[sequence] = rest[0]
        elif word == "pruning":
            self.prune_asked[workflow_id] = max(sequence, self.prune_asked.get(workflow_id, 0))
        elif word == "pruned":
            self.prune_done[workflow_id] = max(sequence, self.prune_done.get(workflow_id, 0))
        elif word == "keyframe":
            self.keyframes.setdefault(workflow_id, set()).add(sequence)

    @property
    def count(self) -> int:
        return sum(map(len, self.commits.values()))


def check_workflow(store: FilesystemStore, workflow_id: str, told: Acknowledged) -> list[str]:
    """Everything that must be true of a workflow after any death of its writers."""
    entries = list(store.entries(workflow_id))
    found = []
    if [entry.sequence for entry in entries] != list(range(1, len(entries) + 1)):
        found.append(f"{workflow_id}: sequence is not dense: {[e.sequence for e in entries][:50]}")
        return found
    known = {entry.sequence: entry for entry in entries}
    for sequence, checksum in told.commits.get(workflow_id, {}).items():
        if sequence not in known or known[sequence].checksum != checksum:
            found.append(f"{workflow_id}@{sequence}: acknowledged and lost ({len(entries)} are there)")
    asked, done = told.prune_asked.get(workflow_id, 0), told.prune_done.get(workflow_id, 0)
    for entry in entries:
        if entry.pruned and entry.sequence >= asked:
            found.append(f"{workflow_id}@{entry.sequence}: pruned and nobody asked")
        if not entry.pruned and entry.sequence < done:
            found.append(f"{workflow_id}@{entry.sequence}: pruned and back again")
    found += _check_records(store, workflow_id, [entry for entry in entries if not entry.pruned], known)
    found += _check_events(store, workflow_id, len(entries))
    found += _check_keyframes(store, workflow_id, told, known)
    return found


def _check_records(
    store: FilesystemStore, workflow_id: str, live: list[Entry], known: dict[int, Entry]
) -> list[str]:
    if not live:
        return []
    records = list(store.records(workflow_id, live[0].sequence, live[-1].sequence))
    if len(records) != len(live):
        return [f"{workflow_id}: {len(records)} records for {len(live)} entries"]
    found = []
    for entry, data in zip(live, records, strict=True):
        before = known.get(entry.sequence - 1)
        previous = before.checksum if before else "GENESIS"
        if not is_sealed(data, "checksum", previous) or entry.checksum.encode() not in data:
            found.append(f"{workflow_id}@{entry.sequence}: wrong bytes {data[:60]!r}...{data[-90:]!r}")
    return found


def _check_events(store: FilesystemStore, workflow_id: str, checkpoints: int) -> list[str]:
    lines = list(store.events(workflow_id))
    found = check_event_lines(workflow_id, lines)
    if not found and len(lines) != EVENTS_PER_COMMIT * checkpoints:
        found.append(f"{workflow_id}: {len(lines)} events for {checkpoints} checkpoints: half a commit")
    return found


def check_event_lines(workflow_id: str, lines: Iterable[bytes]) -> list[str]:
    """Event lines are whole, in order, and each names its checkpoint."""
    previous = "GENESIS"
    for number, line in enumerate(lines, start=1):
        if not is_sealed(line, "hash", previous):
            return [f"{workflow_id}: event {number} is wrong: {line[:60]!r}...{line[-90:]!r}"]
        event = json.loads(line)
        previous = event["hash"]
        if (event["seq"], event["cp_seq"]) != (number, (number - 1) // EVENTS_PER_COMMIT + 1):
            return [f"{workflow_id}: event {number} says {event['seq']} of {event['cp_seq']}"]
    return []


def _check_keyframes(
    store: FilesystemStore, workflow_id: str, told: Acknowledged, known: dict[int, Entry]
) -> list[str]:
    there = {keyframe.sequence for keyframe in store.keyframes(workflow_id)}
    asked = told.prune_asked.get(workflow_id, 0)
    wanted = {sequence for sequence in told.keyframes.get(workflow_id, set()) if sequence >= asked}
    found = [f"{workflow_id}: keyframe {sequence} is lost" for sequence in sorted(wanted - there)]
    for sequence in sorted(there):
        if store.keyframe(workflow_id, sequence) != make_keyframe(sequence).data:
            found.append(f"{workflow_id}: keyframe {sequence} is wrong")
    return found


def check_store(store: FilesystemStore, told: Acknowledged) -> list[str]:
    """Violations in the whole store; none may be there."""
    found = list(told.violations)
    workflows = set(store.workflows()) | set(told.commits)
    for workflow_id in sorted(workflows):
        try:
            found += check_workflow(store, workflow_id, told)
        except CheckpointError as error:
            found.append(f"{workflow_id}: cannot be read: {error}")
    # Whoever is killed in the middle of a large value, or of a ring, may leave it: that is told, and no harm.
    findings = (one for one in store.check() if one.harm or not one.place.startswith("leftovers: "))
    found += [f"{finding.place}: {finding.problem}" for finding in findings]
    return found
