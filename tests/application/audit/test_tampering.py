"""What is done to a stored trail is found and named, at the level that was promised for it.

The chain finds changes, swaps and gaps; a signed head also a cut tail and a trail made anew; a pin also a
store that was put back to an older state.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.log_keeping import ROOTS_FILE, LogKeeper, head_name
from holdfast.application.audit.log_name import LOG
from holdfast.application.audit.log_source import StoreSource
from holdfast.application.audit.log_tiles import SIZE_FILE
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.audit_type import AuditType
from holdfast.domain.log_check import Level, LogReport, Trust, Verdict, verify_log
from holdfast.domain.note import parse_note
from holdfast.domain.treehead import TreeHead, parse_head
from holdfast.ports import Store
from tests.application.logs import SEED, Desk, OneKey, anchored, make_desk, replace_signing
from tests.campaign import Part


def small(store: Store | None = None, seed: bytes = SEED) -> Desk:
    """Make a small trail: two sessions, one of them closed, two heads, and a few entries after the last."""
    desk = replace_signing(make_desk(store), OneKey(seed=seed))
    desk.tell(2, "s-1")
    anchored(desk)
    desk.tell(2, "s-2", first=2)
    desk.trail.record(*desk.trail.told(AuditType.SESSION_CLOSED, session_id="s-1"))
    anchored(desk)
    desk.tell(1, "s-2", first=4)
    desk.keeper.update()
    return desk


BASE = make_desk()


def check(store: Store, trust: Trust) -> LogReport:
    """Verify a store without telling of it."""
    keeper = LogKeeper(replace(BASE.kit, store=store), BASE.trail)
    return verify_log(StoreSource(store, keeper).open(payloads=True), trust)


def pin_of(desk: Desk) -> TreeHead:
    return parse_head(parse_note(desk.keeper.checkpoint() or b"").text)


class Vandal:
    """Changes copies of one store in memory."""

    def __init__(self) -> None:
        self.desk = small()
        self.trust = self.desk.log.trust()
        assert isinstance(self.desk.store, MemoryStore)
        self.records = list(self.desk.store._leaves)
        self.files = dict(self.desk.store._files)
        self.signed = pin_of(self.desk).size

    def report(
        self, records: list[AuditRecord], files: dict[str, bytes] | None = None, trust: Trust | None = None
    ) -> LogReport:
        """Verify a store that holds these."""
        store = MemoryStore()
        store._leaves = records
        for record in records:
            store._trails.setdefault(record.head.session_id, []).append(record)
        store._files = self.files if files is None else files
        return check(store, trust or self.trust)

    def without_tree(self) -> dict[str, bytes]:
        """Leave the files that a careful forger takes away."""
        return {
            name: data
            for name, data in self.files.items()
            if not name.startswith((LOG + "tile/", LOG + "heads/", LOG + "checkpoint", SIZE_FILE))
        }


@pytest.fixture(scope="module")
def vandal() -> Vandal:
    return Vandal()


def test_nothing_is_wrong_before(vandal: Vandal) -> None:
    report = vandal.report(vandal.records)
    assert (report.verdict(Level.SIGNED), report.fault_count, report.payloads) == (Verdict.OK, 0, 5)
    assert report.tail == len(vandal.records) - vandal.signed > 0


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def bits(data: bytes, *, every: bool) -> Iterator[int]:
    """Name the bits to flip: all in a campaign, else one of each byte, another one each time."""
    return iter(range(8 * len(data))) if every else (8 * at + at % 8 for at in range(len(data)))


@pytest.mark.sweep
def test_every_flipped_bit_of_an_entry_is_found_at_its_place(vandal: Vandal, campaign: bool) -> None:
    for index, record in enumerate(vandal.records):
        for bit in bits(record.data, every=campaign):
            changed = AuditRecord(record.id, record.head, flipped(record.data, bit), record.payload)
            report = vandal.report([*vandal.records[:index], changed, *vandal.records[index + 1 :]])
            assert report.level is Level.NONE, (index, bit)
            assert report.first_fault is not None and report.first_fault.index == index, (index, bit)


@pytest.mark.sweep
def test_every_flipped_bit_of_a_payload_is_found_at_its_entry(vandal: Vandal, campaign: bool) -> None:
    for index, record in enumerate(vandal.records):
        for bit in bits(record.payload, every=campaign):
            changed = AuditRecord(record.id, record.head, record.data, flipped(record.payload, bit))
            report = vandal.report([*vandal.records[:index], changed, *vandal.records[index + 1 :]])
            fault = report.first_fault
            assert fault is not None and (fault.kind, fault.index) == ("payload", index)
            assert (fault.session_id, fault.seq) == (record.head.session_id, record.head.seq)


@pytest.mark.sweep
def test_every_flipped_bit_of_a_file_of_the_log_is_found(vandal: Vandal, campaign: bool) -> None:
    for name, data in vandal.files.items():
        for bit in bits(data, every=campaign) if name != ROOTS_FILE else ():
            report = vandal.report(vandal.records, {**vandal.files, name: flipped(data, bit)})
            assert report.fault_count and report.verdict() is Verdict.FAILED, (name, bit)


def test_every_two_entries_that_were_swapped_are_found(vandal: Vandal) -> None:
    for first, second in combinations(range(len(vandal.records)), 2):
        records = copy(vandal.records)
        records[first], records[second] = records[second], records[first]
        report = vandal.report(records)
        assert report.verdict(Level.SIGNED) is Verdict.FAILED
        fault = report.first_fault
        assert fault is not None and fault.index is not None and fault.index <= second
        one_session = records[first].head.session_id == records[second].head.session_id
        if one_session:
            # The chain alone finds it, at the first of the two.
            bare = vandal.report(records, {}, Trust(vandal.trust.verify))
            assert bare.first_fault is not None and bare.first_fault.index == first


def test_every_entry_that_was_deleted_is_found(vandal: Vandal) -> None:
    for index, gone in enumerate(vandal.records):
        records = [record for record in vandal.records if record is not gone]
        report = vandal.report(records)
        assert report.verdict() is Verdict.FAILED
        assert report.first_fault is not None and report.first_fault.index is not None
        followers = [r for r in vandal.records[index + 1 :] if r.head.session_id == gone.head.session_id]
        if followers:
            bare = vandal.report(records, {}, Trust(vandal.trust.verify))
            assert bare.first_fault is not None
            assert bare.first_fault.seq == followers[0].head.seq


def test_every_cut_tail_is_found_as_far_as_it_was_signed(vandal: Vandal) -> None:
    for size in range(len(vandal.records)):
        report = vandal.report(vandal.records[:size])
        # What is left of the tiles gives even the unsigned tail away.
        assert report.verdict() is Verdict.FAILED
        # A careful forger makes the tiles anew: then what was signed is missed, and nothing else can be.
        careful = {
            name: data for name, data in vandal.files.items() if "/tile/" not in name and name != SIZE_FILE
        }
        report = vandal.report(vandal.records[:size], careful)
        if size < vandal.signed:
            fault = report.first_fault
            assert fault is not None and (fault.kind, fault.index) == ("head", size)
            assert f"entries {size} to" in fault.problem
        else:
            assert (report.level, report.tail) == (Level.SIGNED, size - vandal.signed)


def test_an_entry_that_was_put_in_is_found(vandal: Vandal) -> None:
    for index in range(len(vandal.records)):
        records = [*vandal.records[:index], vandal.records[index], *vandal.records[index:]]
        assert vandal.report(records, vandal.without_tree()).verdict() is Verdict.FAILED


def test_a_store_that_was_put_back_is_found_with_a_pin_and_only_so(vandal: Vandal) -> None:
    older = vandal
    size = min(parse_head(parse_note(note).text).size for note in older.desk.keeper.heads())
    files = {
        name: data
        for name, data in older.files.items()
        if name not in (head_name(older.signed), LOG + "checkpoint", SIZE_FILE) and "/tile/" not in name
    }
    put_back = older.records[:size]
    report = older.report(put_back, files)
    assert (report.verdict(Level.SIGNED), report.tail) == (Verdict.OK, 0)
    pin = pin_of(older.desk)
    pinned = Trust(older.trust.verify, older.trust.log_keys, (pin,))
    report = older.report(put_back, files, pinned)
    assert report.verdict() is Verdict.FAILED
    fault = report.first_fault
    assert fault is not None and (fault.kind, fault.index) == ("pin", size)
    assert "entries 3 to" in fault.problem


def test_a_trail_made_anew_is_found_by_whoever_knows_the_key(vandal: Vandal) -> None:
    forged = small(seed=bytes(32))
    assert isinstance(forged.store, MemoryStore)
    records, files = forged.store._leaves, forged.store._files
    # All of it fits together, and was signed: with another key.
    assert vandal.report(records, files, forged.log.trust()).verdict(Level.SIGNED) is Verdict.OK
    report = vandal.report(records, files)
    assert report.verdict() is Verdict.FAILED and report.level is Level.CHAIN
    assert "signed by no key of the log" in str(report.first_fault)
    # Without any head nothing is wrong, and nothing is vouched for.
    bare = vandal.report(records, {})
    assert (bare.verdict(Level.SIGNED), bare.level) == (Verdict.INCONCLUSIVE, Level.CHAIN)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trust]:
    """Make a small trail in a folder, everything in its place."""
    folder = tmp_path_factory.mktemp("kept") / "store"
    store = FilesystemStore.open(folder, journal_bytes=1 << 20)
    desk = small(store)
    trust = desk.log.trust(pins=[pin_of(desk)])
    store.settle()
    store.close()
    return folder, trust


def look(folder: Path, trust: Trust) -> LogReport:
    store = FilesystemStore.open(folder, read_only=True, create=False)
    try:
        return check(store, trust)
    finally:
        store.close()


def audit_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.joinpath("audit").rglob("*") if path.is_file())


def test_a_folder_verifies_before_it_is_touched(kept: tuple[Path, Trust]) -> None:
    report = look(*kept)
    assert (report.verdict(Level.PINNED), report.payloads, report.erased) == (Verdict.OK, 5, 0)


@pytest.mark.sweep
def test_every_flipped_bit_in_the_folder_of_the_trail_is_found(
    kept: tuple[Path, Trust], part: Part | None
) -> None:
    folder, trust = kept
    cases = [(path, bit) for path in audit_files(folder) for bit in range(8 * path.stat().st_size)]
    chosen = part.of(cases) if part else cases[3::301]
    for path, bit in chosen:
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, bit))
        try:
            report = look(folder, trust)
        finally:
            path.write_bytes(whole)
        # A view for people is not verified, nor is the room beside a payload.
        is_view = path.name == "merkle_roots.json"
        is_room = path.name == "payloads.jsonl" and report.payloads == 5
        assert report.fault_count or is_view or is_room, (path.relative_to(folder), bit)


def test_every_line_that_was_taken_out_of_a_file_is_found(kept: tuple[Path, Trust]) -> None:
    folder, trust = kept
    for path in audit_files(folder):
        if path.suffix not in (".jsonl", ".txt") or path.name == "payloads.jsonl":
            continue
        whole = path.read_bytes()
        lines = whole.splitlines(keepends=True)
        for at in range(len(lines)):
            path.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
            report = look(folder, trust)
            path.write_bytes(whole)
            is_told_by_trails = path.name == "sessions.jsonl" and at == len(lines) - 1
            assert report.fault_count or is_told_by_trails, (path.relative_to(folder), at)


def test_a_folder_that_was_put_back_is_found_with_a_pin(tmp_path: Path) -> None:
    folder, older = tmp_path / "store", tmp_path / "older"
    store = FilesystemStore.open(folder, journal_bytes=1 << 20)
    small(store)
    store.close()
    shutil.copytree(folder, older)
    store = FilesystemStore.open(folder)
    desk = make_desk(store)
    desk.tell(3)
    anchored(desk)
    pin, trust = pin_of(desk), desk.log.trust()
    store.close()
    assert look(older, trust).verdict(Level.SIGNED) is Verdict.OK
    report = look(older, Trust(trust.verify, trust.log_keys, (pin,)))
    assert report.verdict() is Verdict.FAILED
    assert report.first_fault is not None and report.first_fault.kind == "pin"
    assert look(folder, Trust(trust.verify, trust.log_keys, (pin,))).verdict(Level.PINNED) is Verdict.OK
