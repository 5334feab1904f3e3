"""Verification of a part of a log by itself: its chains, and a proof for each entry that it is in the log.

Who gets one session of a log sees none of the others, and can still check that what is shown is all of this
session up to its last entry, and that the log was signed with it. Who gets a period sees that nothing between
its first and its last entry was left out, and nothing of what was before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.domain.log_check import Level, LogReport, Mark, Trust, read_mark
from holdfast.domain.merkle import EMPTY_ROOT, leaf_hash, verify_inclusion
from holdfast.domain.tlogproof import parse_tlog_proof
from holdfast.domain.trail_check import ChainWalk, Fault, Faults, Kind, PayloadReader
from holdfast.domain.treehead import TreeHead


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """One session, or the entries of a period, as they were exported.

    Attributes:
        session_id: which; None for a period, with entries of any session.
        lines: its lines, from the first; of a period in the order of the log.
        checkpoint: the signed head; empty if there is none.
        proofs: the proof of each line, in order; None where there is none.
        read_payload: gives payloads, where those are to be checked, too.
        faults: what whoever reads it found by itself; asked for last.
    """

    session_id: str | None
    lines: Iterable[bytes]
    checkpoint: bytes = b""
    proofs: Iterable[bytes | None] = ()
    read_payload: PayloadReader | None = None
    faults: Iterable[Fault] = ()


def verify_evidence(evidence: SessionEvidence, trust: Trust) -> LogReport:
    """Check a session or a period; nothing in it makes this raise, only what reads it can."""
    faults = Faults()
    is_period = evidence.session_id is None
    mark = _read_checkpoint(evidence.checkpoint, trust, faults)
    walk = ChainWalk(faults, evidence.read_payload)
    proofs, proving = iter(evidence.proofs), _Proving(evidence, mark)
    since, index = "", -1
    for index, line in enumerate(evidence.lines):
        if is_period:
            walk.take_up(line)
        moment = walk.take(line, index, evidence.session_id)
        try:
            if not proving.take(next(proofs, None), line, index):
                since = since or moment
        except CheckpointError as fault:
            faults.add(_unproven(evidence, fault.message, index))
    if problem := proving.gap():
        faults.add(_unproven(evidence, problem, proving.bare))
    for found in (*_pin_faults(mark, trust), *evidence.faults):
        faults.add(found)
    part = "period" if is_period else "session"
    report = _report(walk, mark, faults, trust, proving.proven, index + 1 - proving.proven, since)
    return replace(report, part=part)


class _Proving:
    """Goes along lines and their proofs; whatever has none comes after all that has one."""

    def __init__(self, evidence: SessionEvidence, mark: Mark | None) -> None:
        self._checkpoint = evidence.checkpoint
        self._is_period = evidence.session_id is None
        self._mark = mark
        self._last = -1
        self.proven = 0
        #: The first line without a proof; -1: each has one.
        self.bare = -1

    def take(self, proof: bytes | None, line: bytes, index: int) -> bool:
        """Check the proof of a line; False if there is nothing to check.

        Raises:
            CheckpointError: it proves something else, or stands where it cannot.
        """
        if proof is None or self._mark is None:
            self.bare = index if self.bare < 0 else self.bare
            return False
        head = self._mark.head
        self._last = _prove(proof, line, self._last, self._checkpoint, head, is_period=self._is_period)
        if self.bare >= 0:
            raise CheckpointCorruptError("an entry before it has no proof, and so is none of the log's")
        self.proven += 1
        return True

    def gap(self) -> str:
        """Say why lines without a proof cannot be what came after the head; empty where they can.

        What lies between two entries of a session is not here. A period has all of it, up to where the head
        ends, and only then something that no head covers yet.
        """
        if self._mark is None or self.bare < 0 or not self.proven or not self._is_period:
            return ""
        is_after = self._last == self._mark.head.size - 1
        return "" if is_after else "entries without a proof stand where the signed head has others"


def _unproven(evidence: SessionEvidence, problem: str, index: int) -> Fault:
    place = f"proof of line {index + 1}"
    return Fault(Kind.HEAD, problem, place, index, evidence.session_id or "", index + 1)


def _read_checkpoint(checkpoint: bytes, trust: Trust, faults: Faults) -> Mark | None:
    if not checkpoint:
        return None
    try:
        return read_mark(checkpoint, "signed head", trust)
    except CheckpointError as fault:
        faults.add(Fault(Kind.HEAD, fault.message, "signed head"))
        return None


def _prove(data: bytes, line: bytes, last: int, checkpoint: bytes, head: TreeHead, *, is_period: bool) -> int:
    """Check the proof of a line; answer its place in the tree."""
    proof = parse_tlog_proof(data)
    if proof.checkpoint != checkpoint:
        raise CheckpointCorruptError("a proof is for another head than the one beside it")
    if proof.index <= last:
        raise CheckpointCorruptError("the entries of a session are not in their order in the log")
    if is_period and last >= 0 and proof.index != last + 1:
        raise CheckpointCorruptError("entries in the middle of the period were left out")
    verify_inclusion(leaf_hash(line), proof.index, head.size, proof.hashes, head.root)
    return proof.index


def _pin_faults(mark: Mark | None, trust: Trust) -> Iterator[Fault]:
    """Compare with pins as far as one head can be: one of the same size must be the same."""
    for pin in trust.pins:
        place = f"pinned head of size {pin.size}"
        if mark is None:
            yield Fault(Kind.PIN, "there is no head to compare it with", place)
        elif pin.size > mark.head.size:
            yield Fault(Kind.PIN, f"the log was cut: its head has the size {mark.head.size}", place)
        elif pin.size == mark.head.size and pin != mark.head:
            yield Fault(Kind.PIN, "the signed head of that size is another one", place)


def _report(
    walk: ChainWalk, mark: Mark | None, faults: Faults, trust: Trust, proven: int, tail: int, since: str
) -> LogReport:
    head = mark.head if mark else TreeHead("", 0, EMPTY_ROOT)
    is_pinned = mark is not None and mark.head in trust.pins
    return LogReport(
        level=_level(mark, faults, proven, is_pinned=is_pinned),
        head=head,
        entries=walk.entries,
        sessions=len(walk.heads),
        open_sessions=sum(not head.closed for head in walk.heads.values()),
        signed_size=head.size if mark and mark.is_signed else 0,
        pinned_size=head.size if is_pinned else 0,
        witnessed_size=head.size if mark and mark.is_witnessed else 0,
        waiting=0,
        tail=tail,
        tail_since=since,
        heads=1 if mark else 0,
        tiles=0,
        missing_tiles=0,
        clock_steps=walk.clock_steps,
        payloads=walk.payloads,
        erased=walk.erased,
        fault_count=faults.counts.total(),
        faults=faults.kept(),
    )


def _level(mark: Mark | None, faults: Faults, proven: int, *, is_pinned: bool) -> Level:
    if faults.has(Kind.ENTRY, Kind.PAYLOAD, Kind.FILE):
        return Level.NONE
    if faults.has(Kind.HEAD) or mark is None or not proven or not mark.is_signed:
        return Level.CHAIN
    if faults.has(Kind.PIN):
        return Level.SIGNED
    if mark.is_witnessed:
        return Level.WITNESSED
    return Level.PINNED if is_pinned else Level.SIGNED
