"""Audit entries that ride on hand-made commits, and what must be true of them after any death of a writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import NO_WORKFLOW, Commit, Head, Removal
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import PayloadReader, verify_session
from holdfast.ports import Store

MOMENT = datetime(2026, 1, 11, tzinfo=UTC)
SHARED = "s-shared"


def session_of(workflow_id: str) -> str:
    return f"s-{workflow_id}"


def payload_of(checksum: str) -> bytes:
    """A payload that is found by its checkpoint's checksum, wherever its bytes are."""
    return encode_payload({"about": mark_of(checksum), "pad": "p" * 500}, bytes(32))


def mark_of(checksum: str) -> str:
    return f"payload-{checksum}"


def audited(commit: Commit) -> Commit:
    """Let a commit tell about its checkpoint: in a session of its workflow, and in one that all share."""
    if commit.record is None or commit.audit:
        return commit
    workflow_id, entry = commit.workflow_id, commit.record.entry
    facts = {"cp_seq": entry.sequence, "checksum": entry.checksum}
    created = AuditEntry(
        MOMENT, AuditType.CHECKPOINT_CREATED, session_of(workflow_id), workflow_id, facts=facts
    )
    stored = replace(created, stored=payload_of(entry.checksum))
    return replace(commit, audit=(stored, replace(created, session_id=SHARED)))


def audited_removal(workflow_id: str, removal: Removal) -> Removal:
    """Let a prune tell how far it went."""
    facts = {"through": max(removal.sequences, default=0)}
    pruned = AuditEntry(
        MOMENT, AuditType.CHECKPOINTS_PRUNED, session_of(workflow_id), workflow_id, facts=facts
    )
    return replace(removal, audit=(pruned,))


def apart(commit: Commit) -> tuple[Commit, Commit]:
    """The lie of a negative control: what is done, and afterwards what is told about it."""
    whole = audited(commit)
    return replace(whole, audit=()), Commit(NO_WORKFLOW, Head(), audit=whole.audit)


def erasure(workflow_id: str, seq: int) -> Commit:
    """Erase the payload of an entry, and tell so."""
    told = AuditEntry(MOMENT, AuditType.DATA_ERASED, session_of(workflow_id), facts={"erased_seq": seq})
    return Commit(NO_WORKFLOW, Head(), audit=(told,), erased=((session_of(workflow_id), seq),))


@dataclass(frozen=True, slots=True)
class Told:
    """A trail as one reading of the store gave it."""

    lines: list[bytes]
    entries: list[AuditEntry]


def check_trails(store: Store) -> list[str]:
    """Violations: of chains, of the order of leaves, and of entries that came without their commit."""
    trails: dict[str, Told] = {}
    found: list[str] = []
    for session_id in store.sessions():
        lines = list(store.trail(session_id))
        read_payload = cache(store.payload)
        found += _check_chain(store, session_id, lines, read_payload)
        trails[session_id] = Told(lines, [decode_entry(line, None) for line in lines])
        found += _check_payloads(session_id, trails[session_id].entries, read_payload)
    return [*found, *_check_tree(store, trails), *_check_told(store, trails)]


def erased_marks(store: Store) -> list[bytes]:
    """What no byte of the store may hold any more."""
    marks = []
    for session_id in store.sessions():
        entries = {entry.seq: entry for entry in _entries(store, session_id)}
        for seq in _erased(entries.values()):
            if "checksum" in entries[seq].facts:
                marks.append(mark_of(str(entries[seq].facts["checksum"])).encode())
    return marks


def _entries(store: Store, session_id: str) -> Iterator[AuditEntry]:
    return (decode_entry(line, None) for line in store.trail(session_id))


def _erased(entries: Iterable[AuditEntry]) -> list[int]:
    return [int(entry.facts["erased_seq"]) for entry in entries if entry.type == AuditType.DATA_ERASED]


def _check_chain(
    store: Store, session_id: str, lines: list[bytes], read_payload: PayloadReader
) -> Iterator[str]:
    report = verify_session(lines, session_id, read_payload)
    yield from (f"{session_id}: {fault}" for fault in report.faults)
    if report.head != store.trail_head(session_id):
        yield f"{session_id}: ends with {report.head.seq}, its head is {store.trail_head(session_id).seq}"


def _check_payloads(session_id: str, entries: list[AuditEntry], read_payload: PayloadReader) -> Iterator[str]:
    erased = set(_erased(entries))
    for entry in entries:
        if entry.payload and (read_payload(session_id, entry.seq) is None) != (entry.seq in erased):
            yield f"{session_id}: the payload of {entry.seq} is lost, or was erased and is back"


def _check_tree(store: Store, trails: Mapping[str, Told]) -> Iterator[str]:
    leaves, waiting = list(store.leaves()), list(store.waiting())
    told = Counter(line for trail in trails.values() for line in trail.lines)
    if Counter([*leaves, *waiting]) != told:
        yield f"{len(leaves)} leaves and {len(waiting)} that wait are not the {told.total()} entries"
        return
    for name, trail in trails.items():
        for seq, line in enumerate(trail.lines, start=1):
            place = store.place(name, seq)
            if place is not None and leaves[place : place + 1] != [line]:
                yield f"{name}: entry {seq} is not where it is said to be"


def _check_told(store: Store, trails: Mapping[str, Told]) -> Iterator[str]:
    """Checkpoints and entries are there together: else half a commit is."""
    there = {
        (workflow_id, entry.sequence, entry.checksum)
        for workflow_id in store.workflows()
        for entry in store.entries(workflow_id)
    }
    for name in (SHARED, *map(session_of, store.workflows())):
        told = [
            (entry.workflow_id, entry.facts["cp_seq"], entry.facts["checksum"])
            for entry in (trails[name].entries if name in trails else ())
            if entry.type == AuditType.CHECKPOINT_CREATED
        ]
        wanted = {key for key in there if name in (SHARED, session_of(key[0]))}
        if len(told) != len(wanted) or set(told) != wanted:
            yield f"{name}: half a commit: {len(told)} checkpoints told, {len(wanted)} there"


class Telling:
    """Mixed into a store: whatever is done is told in trails, together with it, unless it is to lie."""

    tells_apart = False

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        store: Any = super()
        if not self.tells_apart:
            outcomes: list[Exception | None] = store.commit([audited(commit) for commit in commits])
            return outcomes
        done, told = apart(commits[0])
        outcomes = store.commit([done])
        store.commit([told])
        return outcomes

    def remove(self, workflow_id: str, removal: Removal) -> int:
        store: Any = super()
        return int(store.remove(workflow_id, audited_removal(workflow_id, removal)))
