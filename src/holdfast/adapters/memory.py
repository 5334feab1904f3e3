"""A store in memory: for tests, for a store that failed, and to read what a store has to do."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.adapters.memory_workflow import Workflow
from holdfast.adapters.set_aside import check_quarantine
from holdfast.adapters.system import SystemClock
from holdfast.domain import lease as leases
from holdfast.domain import trail as trails
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.errors import (
    CheckpointNotFoundError,
    ChecksumMismatchError,
    InvalidStateError,
    StoreClosedError,
    UnstorableValueError,
)
from holdfast.domain.ids import check_file_name
from holdfast.domain.quarantine_marks import FOLDER
from holdfast.domain.record import (
    NO_WORKFLOW,
    Commit,
    Entry,
    Head,
    Keyframe,
    KeyframeEntry,
    Lease,
    Removal,
)
from holdfast.ports import Clock, Finding


class MemoryStore:
    """Keeps everything in dictionaries; durable as long as the process."""

    read_only = False
    url = "memory:"

    def __init__(self, clock: Clock | None = None) -> None:
        self._lock = threading.RLock()
        self._clock: Clock = clock or SystemClock()
        self._workflows: dict[str, Workflow] = {}
        self._blobs: dict[str, bytes] = {}
        self._trails: dict[str, list[AuditRecord]] = {}
        #: Every entry in the order in which it was committed, which is that of the tree.
        self._leaves: list[AuditRecord] = []
        self._files: dict[str, bytes] = {}
        #: Leases that were not released, and the last token of every workflow that ever had one.
        self._leases: dict[str, Lease] = {}
        self._tokens: dict[str, int] = {}
        self._closed = False

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        with self._open():
            return [self._commit_one(commit) for commit in commits]

    def head(self, workflow_id: str) -> Head:
        with self._open():
            workflow = self._workflows.get(workflow_id)
            return workflow.head if workflow else Head()

    def workflows(self) -> Iterator[str]:
        with self._open():
            return iter(list(self._workflows))

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        with self._open():
            entries = list(self._peek(workflow_id).entries.values())
        return reversed(entries) if newest_first else iter(entries)

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        with self._open():
            return [
                (workflow_id, entry)
                for workflow_id, workflow in self._workflows.items()
                for entry in workflow.entries.values()
                if entry.uuid.startswith(uuid_prefix)
            ]

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        with self._open():
            records = self._peek(workflow_id).records
            for sequence in (first, last):
                if sequence not in records:
                    raise _no_checkpoint(workflow_id, sequence)
            return iter([records[n] for n in range(first, last + 1) if n in records])

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        with self._open():
            keyframes = self._peek(workflow_id).keyframes
            return [keyframes[sequence].entry for sequence in sorted(keyframes)]

    def newest_keyframe(self, workflow_id: str, through: int) -> KeyframeEntry | None:
        return next((one for one in reversed(self.keyframes(workflow_id)) if one.sequence <= through), None)

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        with self._open():
            keyframe = self._peek(workflow_id).keyframes.get(sequence)
        if keyframe is None:
            raise _no_checkpoint(workflow_id, sequence, "keyframe")
        _verify(keyframe.data, keyframe.entry.sha256, f"keyframe {workflow_id}@{sequence}")
        return keyframe.data

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        with self._open():
            workflow = self._peek(workflow_id)
            entry = workflow.entries.get(keyframe.entry.sequence)
            if entry is None:
                raise _no_checkpoint(workflow_id, keyframe.entry.sequence)
            stored = workflow.keyframes.get(entry.sequence)
            if entry.pruned and stored is None:
                return
            for sha256 in keyframe.entry.blobs:
                if sha256 not in self._blobs:
                    raise CheckpointNotFoundError("a keyframe names a blob that is not stored", place=sha256)
            if stored is None or hashlib.sha256(stored.data).hexdigest() != stored.entry.sha256:
                workflow.keyframes[keyframe.entry.sequence] = keyframe

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        with self._open():
            return iter([event.data for event in self._peek(workflow_id).events if event.seq > after])

    def has_blob(self, sha256: str) -> bool:
        with self._open():
            return sha256 in self._blobs

    def blob(self, sha256: str) -> bytes:
        with self._open():
            data = self._blobs.get(sha256)
        if data is None:
            raise CheckpointNotFoundError("there is no such blob", place=sha256)
        _verify(data, sha256, f"blob {sha256}")
        return data

    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        with self._open():
            return iter(self._peek(workflow_id).evidence(sequence, self._blobs))

    def remove(self, workflow_id: str, removal: Removal) -> int:
        with self._open():
            workflow = self._peek(workflow_id)
            before = workflow.size_bytes
            for sequence in removal.sequences:
                if sequence in workflow.entries:
                    workflow.entries[sequence] = replace(workflow.entries[sequence], pruned=True)
            for group in removal.groups:
                workflow.drop_group(group)
            workflow.events = [event for event in workflow.events if event.seq > removal.events_through]
            self._keep_trail(self._chain(removal.audit))
            return before - workflow.size_bytes + self._collect(removal.blobs)

    def trail_head(self, session_id: str) -> TrailHead:
        with self._open():
            records = self._trails.get(session_id)
            return records[-1].head if records else TrailHead(session_id)

    def sessions(self) -> Iterator[str]:
        with self._open():
            return iter(list(self._trails))

    def trail(self, session_id: str, *, after: int = 0) -> Iterator[bytes]:
        with self._open():
            return iter([record.data for record in self._trails.get(session_id, [])[after:]])

    def payload(self, session_id: str, seq: int) -> bytes | None:
        with self._open():
            records = self._trails.get(session_id, [])
            return records[seq - 1].payload or None if 0 < seq <= len(records) else None

    def integrate(self) -> int:
        with self._open():
            return len(self._leaves)

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        with self._open():
            return iter([record.data for record in self._leaves[after:]])

    def waiting(self) -> Iterator[bytes]:
        with self._open():
            return iter(())

    def place(self, session_id: str, seq: int) -> int | None:
        with self._open():
            places = ((record.head.session_id, record.head.seq) for record in self._leaves)
            return next((index for index, place in enumerate(places) if place == (session_id, seq)), None)

    def file(self, name: str) -> bytes | None:
        with self._open():
            return self._files.get(check_file_name(name))

    def files(self, prefix: str) -> Iterator[str]:
        with self._open():
            return iter(sorted(name for name in self._files if name.startswith(prefix)))

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        with self._open():
            now = self._clock.now()
            previous, last_token = self._lease_at(workflow_id, now), self._tokens.get(workflow_id, 0)
            lease = leases.granted(workflow_id, owner, previous, last_token, now=now, ttl_seconds=ttl_seconds)
            self._keep_trail(self._chain(audit))
            self._leases[workflow_id] = lease
            self._tokens[workflow_id] = lease.token
            return lease

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        with self._open():
            current = self._leases.get(lease.workflow_id)
            renewed = leases.renewed(lease, current, now=self._clock.now(), ttl_seconds=ttl_seconds)
            self._leases[lease.workflow_id] = renewed
            return renewed

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        with self._open():
            if leases.is_current(lease, self._leases.get(lease.workflow_id)):
                self._keep_trail(self._chain(audit))
                del self._leases[lease.workflow_id]

    def lease(self, workflow_id: str) -> Lease | None:
        with self._open():
            return self._lease_at(workflow_id, self._clock.now())

    def check(self) -> Iterator[Finding]:
        with self._open():
            blobs = list(self._blobs.items())
            keyframes = [
                (workflow_id, keyframe)
                for workflow_id, workflow in self._workflows.items()
                for keyframe in workflow.keyframes.values()
            ]
        for sha256, data in blobs:
            if hashlib.sha256(data).hexdigest() != sha256:
                yield Finding(f"blob {sha256}", "its bytes are not what was committed")
        for workflow_id, keyframe in keyframes:
            if hashlib.sha256(keyframe.data).hexdigest() != keyframe.entry.sha256:
                yield Finding(f"keyframe {workflow_id}@{keyframe.entry.sequence}", "its bytes were changed")
        yield from check_quarantine(self.files(FOLDER), self.file)

    def stats(self) -> dict[str, Any]:
        with self._open():
            kept = self._workflows.values()
            return {
                "workflows": len(self._workflows),
                "checkpoints": sum(not e.pruned for workflow in kept for e in workflow.entries.values()),
                "events": sum(len(workflow.events) for workflow in kept),
                "blobs": len(self._blobs),
                **{"audit_entries": len(self._leaves), "sessions": len(self._trails)},
                "bytes": sum(workflow.size_bytes for workflow in kept) + sum(map(len, self._blobs.values())),
            }

    def settle(self) -> None:
        self._open()

    def close(self) -> None:
        self._closed = True

    def _open(self) -> threading.RLock:
        """Give the lock to read or write under, unless the store was closed."""
        if self._closed:
            raise StoreClosedError("the store was closed", place=self.url, hint="Open it again.")
        return self._lock

    def _peek(self, workflow_id: str) -> Workflow:
        """Look at a workflow; one that does not exist is empty, and stays inexistent."""
        return self._workflows.get(workflow_id) or Workflow()

    def _lease_at(self, workflow_id: str, now: datetime) -> Lease | None:
        lease = self._leases.get(workflow_id)
        return None if lease is None else leases.as_of(lease, now)

    def _commit_one(self, commit: Commit) -> Exception | None:
        workflow = self._peek(commit.workflow_id)
        refusal = self._refusal(commit, workflow.head)
        if refusal is not None:
            return refusal
        try:
            records = self._chain(commit.audit)
        except (InvalidStateError, UnstorableValueError) as problem:
            return problem
        if commit.workflow_id != NO_WORKFLOW:
            self._keep(commit, workflow)
        self._keep_trail(records)
        self._keep_files(commit)
        return None

    def _chain(self, audit: Sequence[AuditEntry]) -> list[AuditRecord]:
        return trails.chain(audit, self.trail_head)

    def _keep_trail(self, records: Sequence[AuditRecord]) -> None:
        for record in records:
            self._trails.setdefault(record.head.session_id, []).append(record)
            self._leaves.append(record)

    def _keep_files(self, commit: Commit) -> None:
        for name, data in commit.files.items():
            if data is None:
                self._files.pop(name, None)
            else:
                self._files[name] = data
        for session_id, seq in commit.erased:
            records = self._trails.get(session_id, [])
            if 0 < seq <= len(records):
                records[seq - 1] = replace(records[seq - 1], payload=b"")

    def _keep(self, commit: Commit, workflow: Workflow) -> None:
        self._workflows[commit.workflow_id] = workflow
        self._blobs.update(commit.blobs)
        if commit.record is not None:
            workflow.add(commit.record)
        if commit.keyframe is not None:
            workflow.keyframes[commit.keyframe.entry.sequence] = commit.keyframe
        if commit.events:
            last, head = commit.events[-1], workflow.head
            workflow.events.extend(commit.events)
            workflow.head = Head(head.sequence, head.checksum, last.seq, last.hash)
        for transition in commit.transitions:
            workflow.move(transition)

    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        for name in commit.files:
            check_file_name(name)
        for name, data in commit.expected_files.items():
            if self._files.get(name) != data:
                return commit.file_conflict(name)
        if commit.workflow_id == NO_WORKFLOW:
            commit.check_nameless()
            return None
        if commit.token or commit.workflow_id in self._leases:
            fenced_off = leases.refusal(commit, self._lease_at(commit.workflow_id, self._clock.now()))
            if fenced_off is not None:
                return fenced_off
        if commit.expected != head:
            return commit.conflict(head)
        for sha256 in commit.needs:
            if sha256 not in self._blobs and sha256 not in commit.blobs:
                return CheckpointNotFoundError(
                    "a blob this commit refers to is gone", place=sha256, hint="Commit it with its bytes."
                )
        return None

    def _collect(self, candidates: Sequence[str]) -> int:
        """Drop blobs that nothing kept refers to, in any workflow."""
        used: set[str] = set()
        for workflow in self._workflows.values():
            used.update(*(workflow.entries[sequence].blobs for sequence in workflow.records))
            used.update(*(keyframe.entry.blobs for keyframe in workflow.keyframes.values()))
        gone = [self._blobs.pop(sha256, b"") for sha256 in candidates if sha256 not in used]
        return sum(map(len, gone))


def _verify(data: bytes, sha256: str, place: str) -> None:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ChecksumMismatchError(
            "the bytes are not what was committed", place=place, hint="Run `holdfast doctor`."
        )


def _no_checkpoint(workflow_id: str, sequence: int, what: str = "checkpoint") -> CheckpointNotFoundError:
    return CheckpointNotFoundError(
        f"there is no such {what}", place=f"{workflow_id}@{sequence}", hint="It may have been pruned."
    )
