"""One session by itself: its chain, and a proof for each entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.log_check import Level, LogReport, Trust, Verdict
from holdfast.domain.merkle import inclusion_proof
from holdfast.domain.session_check import SessionEvidence, verify_evidence
from holdfast.domain.tiles import TileHashes
from holdfast.domain.tlogproof import TlogProof
from holdfast.domain.trail import encode_entry
from holdfast.domain.trail_check import Fault, Kind
from tests.trails import EVERYTHING, KEY_ONLY, NOW, Log, make_log

LOG = make_log(40, (20, 36), sessions=2)
INDEXES = [index for index, line in enumerate(LOG.lines) if b'"session":"s-0"' in line]


def proofs_of(log: Log, size: int, head: bytes, indexes: Sequence[int]) -> list[bytes | None]:
    hashes = TileHashes(size, lambda tile: log.tiles.get(tile.path))
    return [
        TlogProof(index, inclusion_proof(index, size, hashes), head).encode() if index < size else None
        for index in indexes
    ]


def evidence() -> SessionEvidence:
    whole = make_log(36, (36,), sessions=2)
    lines = [LOG.lines[index] for index in INDEXES]
    return SessionEvidence(
        "s-0",
        lines,
        LOG.heads[-1],
        proofs_of(whole, 36, LOG.heads[-1], INDEXES),
        lambda session_id, seq: LOG.payloads.get((session_id, seq)),
    )


WHOLE = evidence()
LINES = list(WHOLE.lines)
PROOFS = list(WHOLE.proofs)


def check(trust: Trust = KEY_ONLY, **changes: object) -> LogReport:
    return verify_evidence(replace(WHOLE, **changes), trust)


def test_a_session_is_verified_up_to_the_level_that_is_known() -> None:
    report = check()
    assert (report.verdict(Level.SIGNED), report.entries, report.sessions) == (Verdict.OK, 20, 1)
    assert (report.level, report.signed_size, report.tail) == (Level.SIGNED, 36, 2)
    assert report.payloads > 5 and report.erased == 0 and report.tail_since
    assert check(EVERYTHING).level is Level.WITNESSED
    assert check(replace(KEY_ONLY, pins=(LOG.pin(-1),))).level is Level.PINNED
    assert check(replace(KEY_ONLY, pins=(LOG.pin(0),))).level is Level.SIGNED
    assert check(Trust(KEY_ONLY.verify)).level is Level.CHAIN


def test_without_a_head_there_is_the_chain() -> None:
    report = check(checkpoint=b"", proofs=())
    assert (report.level, report.tail, report.fault_count) == (Level.CHAIN, 20, 0)
    assert check(replace(KEY_ONLY, pins=(LOG.pin(-1),)), checkpoint=b"").verdict() is Verdict.FAILED


@pytest.mark.parametrize("index", range(20))
def test_every_changed_or_missing_line_is_found(index: int) -> None:
    changed = LINES[index].replace(b"svc-7", b"svc-8")
    report = check(lines=[*LINES[:index], changed, *LINES[index + 1 :]])
    assert report.first_fault is not None and report.first_fault.index == index
    report = check(lines=LINES[:index] + LINES[index + 1 :])
    if index < 18:
        assert report.verdict() is Verdict.FAILED


def test_proofs_are_for_their_own_line_and_in_order() -> None:
    swapped = [PROOFS[1], PROOFS[0], *PROOFS[2:]]
    report = check(proofs=swapped)
    assert {fault.index for fault in report.faults} == {0, 1} and report.level is Level.CHAIN
    assert check(proofs=[b"nothing", *PROOFS[1:]]).verdict() is Verdict.FAILED
    twice = check(lines=[LINES[0], LINES[0]], proofs=[PROOFS[0], PROOFS[0]])
    assert any("not in their order" in fault.problem for fault in twice.faults)


def test_a_proof_is_for_the_head_beside_it() -> None:
    report = check(checkpoint=LOG.heads[0])
    assert any("another head" in fault.problem for fault in report.faults)


def test_a_head_that_the_log_did_not_sign_proves_nothing() -> None:
    forged = LOG.heads[-1].replace(b"example.com", b"example.org")
    report = check(checkpoint=forged)
    assert (report.level, report.verdict()) == (Level.CHAIN, Verdict.FAILED)


def test_pins_are_compared_as_far_as_one_head_can_be() -> None:
    pin = LOG.pin(-1)
    for wrong in (replace(pin, size=99), replace(pin, root=bytes(32))):
        report = check(replace(KEY_ONLY, pins=(wrong,)))
        assert (report.level, report.verdict()) == (Level.SIGNED, Verdict.FAILED)


def test_what_others_found_counts() -> None:
    report = check(faults=[Fault(Kind.FILE, "a file is wrong", "there")])
    assert (report.level, report.fault_count) == (Level.NONE, 1)


def test_a_changed_payload_is_found() -> None:
    report = check(read_payload=lambda session_id, seq: b"else")
    assert report.level is Level.NONE and report.first_fault is not None
    assert report.first_fault.kind == Kind.PAYLOAD
    assert check(read_payload=lambda session_id, seq: None).erased > 5


def period(first: int = 7, last: int = 30, **changes: object) -> SessionEvidence:
    whole = make_log(36, (36,), sessions=2)
    indexes = range(first, last + 1)
    proofs = proofs_of(whole, 36, LOG.heads[-1], indexes)
    lines = [LOG.lines[index] for index in indexes]
    found = SessionEvidence(None, lines, LOG.heads[-1], proofs, WHOLE.read_payload)
    return replace(found, **changes)


def test_a_period_is_verified_though_its_chains_begin_elsewhere() -> None:
    report = verify_evidence(period(), KEY_ONLY)
    assert (report.verdict(Level.SIGNED), report.entries, report.sessions) == (Verdict.OK, 24, 2)
    assert (report.level, report.tail, report.fault_count) == (Level.SIGNED, 0, 0)
    assert verify_evidence(period(30, 38), KEY_ONLY).tail == 3


@pytest.mark.parametrize("gone", range(1, 23))
def test_what_is_left_out_of_the_middle_of_a_period_is_found(gone: int) -> None:
    whole = period()
    lines, proofs = list(whole.lines), list(whole.proofs)
    del lines[gone], proofs[gone]
    report = verify_evidence(replace(whole, lines=lines, proofs=proofs), KEY_ONLY)
    assert report.verdict() is Verdict.FAILED and report.first_fault is not None
    assert report.first_fault.index == gone


@pytest.mark.parametrize("index", range(24))
def test_a_changed_line_of_a_period_is_found(index: int) -> None:
    lines = list(period().lines)
    lines[index] = lines[index].replace(b"svc-7", b"svc-8")
    assert verify_evidence(period(lines=lines), KEY_ONLY).verdict() is Verdict.FAILED
    assert verify_evidence(period(lines=[*lines[:index], b"damaged\n"]), KEY_ONLY).fault_count


@pytest.mark.parametrize("index", [0, 1, 11, 24])
def test_an_entry_that_nobody_signed_has_no_place_in_a_period(index: int) -> None:
    whole = period()
    lines, proofs = list(whole.lines), list(whole.proofs)
    invented = AuditEntry(NOW, "SESSION_STARTED", "s-9")
    lines.insert(index, encode_entry(invented, TrailHead("s-9")).data)
    proofs.insert(index, None)
    report = verify_evidence(replace(whole, lines=lines, proofs=proofs), KEY_ONLY)
    assert (report.level, report.verdict()) == (Level.CHAIN, Verdict.FAILED)


@pytest.mark.parametrize("index", [0, 5, 23])
def test_a_proof_that_is_gone_is_missed_in_a_period(index: int) -> None:
    proofs = list(period().proofs)
    proofs[index] = None
    assert verify_evidence(period(proofs=proofs), KEY_ONLY).verdict() is Verdict.FAILED


@pytest.mark.parametrize("index", [0, 9])
def test_in_a_session_only_the_last_entries_may_be_without_a_proof(index: int) -> None:
    report = check(proofs=[*PROOFS[:index], None, *PROOFS[index + 1 :]])
    assert (report.level, report.verdict()) == (Level.CHAIN, Verdict.FAILED)
