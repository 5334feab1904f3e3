"""What a workload told in trails and left in files, and whether a store agrees with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import Commit, Removal
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import verify_session
from tests.crash.simulated_disk import SimulatedDisk

MOMENT = datetime(2026, 1, 11, tzinfo=UTC)
SHARED = "all of us, \u00fc"
#: A key that is destroyed later.
KEY = b"key-material-1234567890"
#: Entry of a session, by the number that its commit was given.
Key = tuple[str, int]


def told(session_id: str, number: int, *, payload: bool = False) -> AuditEntry:
    """Tell of the attempt with a number."""
    stored = encode_payload({"secret": secret(number)}, bytes(32)) if payload else b""
    return AuditEntry(MOMENT, "AGENT_DECISION", session_id, facts={"n": number}, stored=stored)


def secret(number: int) -> str:
    return f"payload-of-{number:04d}!"


@dataclass(frozen=True)
class Told:
    """Everything a store says in trails and files."""

    trails: dict[str, tuple[bytes, ...]]
    leaves: tuple[bytes, ...]
    payloads: dict[tuple[str, int], bytes | None]
    files: dict[str, bytes | None]
    #: Sequence of each entry of the workload.
    seqs: dict[Key, int] = field(default_factory=dict)


def see_trails(store: FilesystemStore) -> Told:
    trails = {name: tuple(store.trail(name)) for name in sorted(store.sessions())}
    seqs, payloads = {}, {}
    for name, lines in trails.items():
        for seq, line in enumerate(lines, start=1):
            facts = decode_entry(line, None).facts
            payloads[name, seq] = store.payload(name, seq)
            if "n" in facts:
                seqs[name, int(facts["n"])] = seq
    files = {name: store.file(name) for name in store.files("")}
    return Told(trails, tuple(store.leaves()), payloads, files, seqs)


def keys_of(entries: Sequence[AuditEntry]) -> list[Key]:
    return [(entry.session_id, int(entry.facts["n"])) for entry in entries]


def chain_problems(store: FilesystemStore, seen: Told) -> Iterator[str]:
    """Chains hold, and every entry is a leaf once and where it is said to be."""
    for name, lines in seen.trails.items():
        report = verify_session(lines, name, lambda name, seq: seen.payloads[name, seq])
        yield from (f"{name}: {fault}" for fault in report.faults)
        if report.head != store.trail_head(name):
            yield f"{name}: head is {store.trail_head(name)}, the trail ends with {report.head}"
        places = [store.place(name, seq) for seq in range(1, len(lines) + 1)]
        if [seen.leaves[place] for place in places if place is not None] != list(lines):
            yield f"{name}: entries are at {places}, where they are not"
    entries = Counter(line for lines in seen.trails.values() for line in lines)
    if Counter(seen.leaves) != entries or store.integrate() != len(seen.leaves):
        yield f"{len(seen.leaves)} leaves are not the {entries.total()} entries"


def present(seen: Told, whats: Sequence[object]) -> list[Commit]:
    """Those commits of a ledger that are in the store, as their entries show."""
    found = []
    for what in whats:
        if isinstance(what, Commit) and what.audit and all(key in seen.seqs for key in keys_of(what.audit)):
            found.append(what)
    return found


def content_problems(seen: Told, whats: Sequence[object]) -> Iterator[str]:
    """Files and payloads are what the commits that are there, in their order, made of them."""
    files: dict[str, bytes | None] = {}
    payloads: dict[tuple[str, int], bytes | None] = dict.fromkeys(seen.payloads)
    for commit in present(seen, whats):
        files.update(commit.files)
        for entry, key in zip(commit.audit, keys_of(commit.audit), strict=True):
            payloads[key[0], seen.seqs[key]] = entry.stored or None
        payloads.update(dict.fromkeys(commit.erased))
    if {name: data for name, data in files.items() if data is not None} != seen.files:
        yield f"files are {sorted(seen.files.items())}, committed were {sorted(files)}"
    if payloads != seen.payloads:
        differing = [key for key in payloads if payloads[key] != seen.payloads.get(key)]
        yield f"payloads are not what was committed, or erased: {differing}"
    asked = {key for what in whats if isinstance(what, Commit | Removal) for key in keys_of(what.audit)}
    yield from (f"an entry was invented: {key}" for key in seen.seqs if key not in asked)


def gone(seen: Told, whats: Sequence[object]) -> list[bytes]:
    """What nothing may be left of: payloads that some commits erased, and keys that they destroyed."""
    numbers = {(name, seq): number for (name, number), seq in seen.seqs.items()}
    marks: list[bytes] = []
    for commit in present(seen, whats):
        marks += [secret(numbers[key]).encode() for key in commit.erased]
        marks += [KEY for name, data in commit.files.items() if data is None and name.startswith("keys/")]
    return marks


def traces(disk: Disk, marks: Sequence[bytes]) -> list[str]:
    """Where something is left of what was taken away for ever."""
    files = _files(disk) if marks else {}
    return [f"{mark!r} is left in {path}" for path, data in files.items() for mark in marks if mark in data]


def _files(disk: Disk) -> dict[str, bytes]:
    if isinstance(disk, SimulatedDisk):
        return disk.machine.files()
    return {str(path): path.read_bytes() for path in Path(disk.root).rglob("*") if path.is_file()}
