"""Every bit flipped, every file cut anywhere: damage is told or harmless, and never returned as a state."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import pytest

from holdfast.adapters.filesystem import manifest, ring, views
from holdfast.adapters.filesystem.frame import Frame
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError, StoreDamageWarning
from holdfast.domain.record import Head, Removal
from holdfast.domain.trail import read_fields
from tests.campaign import Part
from tests.crash.evidence import keep
from tests.crash.ledger import Seen, is_sealed, see_all, sha256
from tests.crash.simulated_disk import Endless, SimulatedDisk
from tests.crash.simulated_machine import Folder, Inode, Machine
from tests.crash.trail_ledger import Told, see_trails
from tests.crash.workload import Workload, open_on

T = TypeVar("T")
Damaging = Callable[[bytes], bytes]
#: File, what is done to it, and the doing.
Case = tuple[str, str, Damaging]

PADDING_BYTES = 128


def small_store(*, settled: bool) -> Machine:
    """A store with a little of everything; if not settled, the newest of it is in the journal only."""
    machine = Machine()
    w = Workload(lambda: SimulatedDisk(machine))
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": 1}\n' * 3, blobs={sha256(b"blob"): b"blob"}))
    w.commit("A", w.draft("A", "WF-one", needs=(sha256(b"blob"),), events=2))
    w.put_keyframe("A", "WF-one", 2, b'{"state": 2}\n' * 3)
    w.commit("A", w.draft("A", "WF-one", group=2, day=1))
    w.status("A", "WF-one", 2, "failed")
    w.erase_one("A")
    w.commit("A", w.draft("A", "WF-one", group=2, day=1))
    w.commit("A", w.draft("A", "WF-two"))
    w.remove("A", "WF-one", Removal((1,)))
    if settled:
        w.close("A")
    return machine.copy()


def recovered(machine: Machine) -> tuple[dict[str, Seen], Told]:
    store = open_on(SimulatedDisk(machine.copy()))
    return see_all(store), see_trails(store)


def inode_at(machine: Machine, path: str) -> Inode:
    node: Folder | Inode = machine.root
    for part in path.split("/"):
        assert isinstance(node, Folder)
        node = node.entries[part]
    assert isinstance(node, Inode)
    return node


def damaged(machine: Machine, path: str, damage: Damaging) -> Machine:
    copy = machine.copy()
    inode = inode_at(copy, path)
    inode.data = bytearray(damage(bytes(inode.data)))
    inode.durable = bytearray(inode.data)
    inode.sizes = [len(inode.data)]
    return copy


@dataclass
class Look:
    """Reads everything, one piece at a time, and compares it with the truth."""

    truth: dict[str, Seen]
    trails: Told
    told: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def ask(self, question: Callable[[], T]) -> T | None:
        try:
            return question()
        except CheckpointError as error:
            self.told.append(repr(error))
            return None

    def at(self, store: FilesystemStore) -> None:
        names = self.ask(lambda: sorted(store.workflows()))
        if names is not None and names != sorted(self.truth):
            self.missing.append(f"workflows {names}")
        for workflow_id, seen in self.truth.items():
            self._listing(store, workflow_id, seen)
            self._records(store, workflow_id, seen)
            self._events(store, workflow_id, seen)
            self._whole_files(store, workflow_id, seen)
        self._trails(store)
        self._payloads(store)
        self.told += self.ask(lambda: [str(finding) for finding in store.check()]) or []

    def _listing(self, store: FilesystemStore, workflow_id: str, seen: Seen) -> None:
        head = self.ask(lambda: store.head(workflow_id))
        if head is not None and head != seen.head:
            self.missing.append(f"{workflow_id}: head {head}")
        entries = self.ask(lambda: tuple(store.entries(workflow_id)))
        if entries is not None and entries != seen.entries:
            self.missing.append(f"{workflow_id}: entries {entries}")
        keyframes = self.ask(lambda: [found.sequence for found in store.keyframes(workflow_id)])
        if keyframes is not None and keyframes != sorted(seen.keyframes):
            self.missing.append(f"{workflow_id}: keyframes {keyframes}")

    def _records(self, store: FilesystemStore, workflow_id: str, seen: Seen) -> None:
        parents = dict(
            zip(
                (e.sequence for e in seen.entries),
                (Head().checksum, *(e.checksum for e in seen.entries)),
                strict=False,
            )
        )
        for sequence, truth in seen.records.items():
            data = self.ask(partial(one_record, store, workflow_id, sequence))
            if data is not None and data != truth:
                fits = is_sealed(data, parents[sequence])
                (self.wrong if fits else self.told).append(f"{workflow_id}@{sequence}: another record")

    def _events(self, store: FilesystemStore, workflow_id: str, seen: Seen) -> None:
        lines = self.ask(lambda: tuple(store.events(workflow_id)))
        if lines is None or lines == seen.events:
            return
        for line in lines:
            if line not in seen.events:
                self._event(line, seen)
        self.missing.append(f"{workflow_id}: {len(lines)} of {len(seen.events)} events")

    def _event(self, line: bytes, seen: Seen) -> None:
        """A line that nobody wrote must not carry a hash that fits on any event."""
        hashes = [Head().event_hash, *(json.loads(event)["hash"] for event in seen.events)]
        fits = any(is_sealed(line, before) for before in hashes)
        (self.wrong if fits else self.told).append(f"event line {line[:40]!r}")

    def _trails(self, store: FilesystemStore) -> None:
        names = self.ask(lambda: sorted(store.sessions()))
        if names is not None and names != sorted(self.trails.trails):
            self.missing.append(f"sessions {names}")
        for name, truth in self.trails.trails.items():
            self._entries(self.ask(partial(one_trail, store, name)), truth, name)
        self._entries(self.ask(lambda: tuple(store.leaves())), self.trails.leaves, "leaves")

    def _entries(self, lines: tuple[bytes, ...] | None, truth: tuple[bytes, ...], what: str) -> None:
        """A line that nobody wrote must not carry its own hash."""
        if lines is None or lines == truth:
            return
        self.missing.append(f"{what}: {len(lines)} of {len(truth)} entries")
        for line in set(lines).difference(truth):
            try:
                read_fields(line)
                self.wrong.append(f"{what}: {line[:40]!r}")
            except CheckpointError as error:
                self.told.append(repr(error))

    def _payloads(self, store: FilesystemStore) -> None:
        """A payload is compared with the commitment of its entry; one that is missing counts as erased."""
        for (name, seq), truth in self.trails.payloads.items():
            data = self.ask(partial(store.payload, name, seq))
            if data is None and truth is not None:
                self.missing.append(f"{name}: payload {seq}")
            elif data is not None and data != truth:
                self.told.append(f"{name}: payload {seq} is not what its entry commits to")

    def _whole_files(self, store: FilesystemStore, workflow_id: str, seen: Seen) -> None:
        for sequence, truth in seen.keyframes.items():
            data = self.ask(partial(store.keyframe, workflow_id, sequence))
            if data is not None and data != truth:
                self.wrong.append(f"{workflow_id}: keyframe {sequence}")
        for name, truth in seen.blobs.items():
            data = self.ask(partial(store.blob, name))
            if data is not None and data != truth:
                self.wrong.append(f"blob {name}")


def problems(machine: Machine, truth: tuple[dict[str, Seen], Told], *, read_only: bool) -> list[str]:
    """What is wrong with how a damaged store answers."""
    look = Look(*truth)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            store = look.ask(lambda: open_on(SimulatedDisk(machine), read_only=read_only, create=False))
            if store is not None:
                look.at(store)
                if not read_only:
                    goes_on(machine, store, look)
        look.told += [str(w.message) for w in warned if issubclass(w.category, StoreDamageWarning)]
    except (Exception, Endless) as error:
        return [f"{error!r} escaped"]
    if look.wrong:
        return look.wrong
    return [] if look.told else [f"nobody told: {text}" for text in look.missing]


def one_trail(store: FilesystemStore, session_id: str) -> tuple[bytes, ...]:
    return tuple(store.trail(session_id))


def one_record(store: FilesystemStore, workflow_id: str, sequence: int) -> bytes:
    return next(iter(store.records(workflow_id, sequence, sequence)))


def commit_one(w: Workload, workflow_id: str) -> None:
    w.commit("A", w.draft("A", workflow_id, group=9, day=2))


def goes_on(machine: Machine, store: FilesystemStore, look: Look) -> None:
    """Committing, removing and closing on a damaged store may be refused, in our words only."""
    w = Workload(lambda: SimulatedDisk(machine), stores={"A": store}, drafts=500)
    for workflow_id in look.truth:
        look.ask(partial(commit_one, w, workflow_id))
    look.ask(lambda: w.put_keyframe("A", "WF-one", 4, b"{}"))
    look.ask(lambda: w.remove("A", "WF-one", Removal((2,), (1,), 2)))
    look.ask(lambda: w.close("A"))


def telling(data: bytes, per_byte: int) -> Iterator[int]:
    """Places in a file: all of them, but in long runs of zeros, which are all alike, only some."""
    for at in range(len(data)):
        is_padding = not any(data[max(at - PADDING_BYTES, 0) : at + PADDING_BYTES])
        if not is_padding:
            yield from range(at * per_byte, (at + 1) * per_byte)
        elif at % 101 == 0:
            yield at * per_byte


def flips(machine: Machine) -> Iterator[Case]:
    for path, data in sorted(machine.files().items()):
        for bit in telling(data, 8):
            yield path, f"bit {bit}", partial(flipped, bit)


def flipped(bit: int, data: bytes) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def cut(size: int, data: bytes) -> bytes:
    return data[:size]


def cuts(machine: Machine) -> Iterator[Case]:
    for path, data in sorted(machine.files().items()):
        for size in telling(data, 1):
            yield path, f"cut at {size}", partial(cut, size)


def harms(machine: Machine, cases: Iterable[Case], counts: Counter[str]) -> Iterator[str]:
    truth = recovered(machine)
    for path, what, damage in cases:
        counts["damages"] += 1
        for read_only in (True, False):
            mode = "read-only" if read_only else "writable"
            found = problems(damaged(machine, path, damage), truth, read_only=read_only)
            yield from (f"{path} {what}, {mode}: {text}" for text in found[:1])


def chosen(everything: Iterable[T], part: Part | None, sample: int) -> Sequence[T]:
    """Take one part of everything in a campaign, and always the same sample on other days."""
    listed = list(everything)
    return part.of(listed) if part else random.Random(13).sample(listed, sample)


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "in the journal"])
@pytest.mark.parametrize("kind", [flips, cuts])
def test_damage_is_told_or_harmless(
    kind: Callable[[Machine], Iterator[Case]],
    settled: bool,
    part: Part | None,
    record_property: Callable[[str, object], None],
) -> None:
    machine, counts = small_store(settled=settled), Counter[str]()
    violations = list(harms(machine, chosen(kind(machine), part, 40), counts))
    name = f"{kind.__name__}_{'settled' if settled else 'journal'}"
    tell(name, part, counts, violations, record_property)
    assert violations == []


def tell(
    name: str,
    part: Part | None,
    counts: Counter[str],
    violations: list[str],
    record_property: Callable[[str, object], None],
) -> None:
    """Keep the numbers of a sample as evidence; those of a part go to the campaign, which adds them up."""
    if part is None:
        keep(name, counts, violations, campaign=False)
    record_property("cases", counts["damages"])
    record_property("violations", violations)


def test_it_goes_red_without_the_digest_of_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def decode_unchecked(header: bytes, payload: bytes) -> Frame:
        numbers = [int.from_bytes(header[at : at + 8], "little") for at in (8, 16)]
        return Frame(numbers[0], numbers[1], 0, header[32:64], header[64:96], payload)

    machine = small_store(settled=False)
    cases = [c for c in flips(machine) if "ring" in c[0]]
    monkeypatch.setattr(ring, "decode_frame", decode_unchecked)
    # A sample that soon meets a harm: a file that seems to be endless would be read for minutes.
    assert any(harms(machine, random.Random(2).sample(cases, 1000), Counter()))


def test_it_goes_red_without_the_sums_of_manifest_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse_unchecked(line: bytes) -> dict[str, object]:
        return json.loads(line.rpartition(b',"sum":"')[0] + b"}")

    machine = small_store(settled=True)
    cases = [c for c in flips(machine) if "manifest" in c[0]]
    for module in (manifest, views):
        monkeypatch.setattr(module, "parse_line", parse_unchecked)
    assert any(harms(machine, random.Random(1).sample(cases, 1000), Counter()))


def test_it_goes_red_when_nobody_compares_trails_with_the_order_of_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = small_store(settled=True)
    cases = [c for c in cuts(machine) if c[0].endswith("order.txt") and c[1] == "cut at 0"]
    monkeypatch.setattr("holdfast.adapters.filesystem.store.check_trail", lambda files, trails: iter(()))
    assert any(harms(machine, cases, Counter()))


@pytest.mark.parametrize(
    "name",
    [
        "manifest.jsonl",
        "events_2026-01-11.jsonl",
        "trail.jsonl",
        "payloads.jsonl",
        "order.txt",
        "sessions.jsonl",
    ],
)
def test_a_file_that_became_empty_is_told(name: str) -> None:
    machine = small_store(settled=True)
    empty = [c for c in cuts(machine) if c[0].endswith(name) and c[1] == "cut at 0"]
    assert empty
    assert list(harms(machine, empty, Counter())) == []


def test_a_first_event_that_claims_to_be_number_zero_is_told() -> None:
    machine = small_store(settled=True)
    first = [c for c in flips(machine) if c[0].endswith("events_2026-01-11.jsonl") and c[1] == "bit 56"]
    assert first
    assert list(harms(machine, first, Counter())) == []
