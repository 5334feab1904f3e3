"""Verification of session trails: every line read once, in order, and what is wrong named with its place.

A chain alone shows that nothing inside it was changed, swapped, inserted or taken out. It cannot show that
its end was cut off, nor that somebody with the right to write made all of it anew: `log_check` goes further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointError
from holdfast.domain.payload import commitment
from holdfast.domain.trail import check_follows, head_after, read_fields

#: Answers the stored payload of an entry by session and sequence; None if it was erased.
PayloadReader = Callable[[str, int], bytes | None]
#: Hears the fields of each entry that is right by itself, its index, and whether its payload is gone.
Hearer = Callable[[Mapping[str, Any], int, bool], None]

FAULTS_MAX = 100


class Kind(StrEnum):
    """What a fault is a fault of."""

    ENTRY = "entry"
    PAYLOAD = "payload"
    TILE = "tile"
    HEAD = "head"
    PIN = "pin"
    #: The last head that the key on this machine signed.
    MEMORY = "memory"
    #: What the log tells of, and the store beside it does not hold.
    STORE = "store"
    #: A file of an export that is a view of the rest.
    FILE = "file"


_KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, where it is, and how far from the start.

    Attributes:
        kind: what it is wrong with.
        problem: what is wrong.
        place: where, for people: an entry, a tile, a signed head.
        index: number of the leaf in the tree, or of the line in a session's file, from 0; None if it
            concerns no single one.
        session_id, seq: the entry, as far as it is known.
    """

    kind: Kind
    problem: str
    place: str
    index: int | None = None
    session_id: str = ""
    seq: int | None = None

    def __str__(self) -> str:
        return f"{self.problem}: {self.place}"


class Faults:
    """Collects faults. A damaged store has many of them: only some are kept, the first for certain."""

    def __init__(self) -> None:
        self.counts: Counter[Kind] = Counter()
        self._kept: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self.counts[fault.kind] += 1
        if len(self._kept) < FAULTS_MAX or _order(fault) < _order(self._kept[-1]):
            self._kept = sorted([*self._kept, fault], key=_order)[:FAULTS_MAX]

    def has(self, *kinds: Kind) -> bool:
        """Tell whether there is a fault of any of these kinds."""
        return any(self.counts[kind] for kind in kinds)

    def kept(self) -> tuple[Fault, ...]:
        """Answer the kept ones, those nearest to the start first."""
        return tuple(self._kept)


def _order(fault: Fault) -> tuple[bool, int, int]:
    """Put what is nearest to the start first, and of one place what says most about it."""
    return fault.index is None, fault.index or 0, _KINDS.index(fault.kind)


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What the check of one session's trail found.

    Attributes:
        entries: how many entries are right and follow what came before.
        head: where the trail stands after the last line.
        clock_steps: entries that tell of a clock that had stepped back.
        payloads, erased: payloads that fit their commitment, and those that are gone.
        fault_count: how much is wrong.
        faults: the first of these, in their order.
    """

    entries: int
    head: TrailHead
    clock_steps: int = 0
    payloads: int = 0
    erased: int = 0
    fault_count: int = 0
    faults: tuple[Fault, ...] = ()

    @property
    def is_sound(self) -> bool:
        return not self.fault_count

    @property
    def first_fault(self) -> Fault | None:
        return self.faults[0] if self.faults else None


class ChainWalk:
    """Follows any number of chains at once, in whatever order their lines come, with one head for each."""

    def __init__(
        self, faults: Faults, read_payload: PayloadReader | None = None, hear: Hearer | None = None
    ) -> None:
        self.heads: dict[str, TrailHead] = {}
        self.entries = self.clock_steps = self.payloads = self.erased = 0
        self._faults = faults
        self._read_payload = read_payload
        self._hear = hear

    def take_up(self, line: bytes) -> None:
        """Begin a chain that is not known yet with this line: what came before it is not here."""
        try:
            fields = read_fields(line)
        except CheckpointError:
            # Taking it tells why.
            return
        name: str = fields["session"]
        self.heads.setdefault(name, TrailHead(name, fields["seq"] - 1, fields["prev_hash"]))

    def take(self, line: bytes, index: int, session_id: str | None = None) -> str:
        """Check the next line of the chain it says it belongs to, or of a given one; answer its time.

        What does not follow is a fault, and the chain is taken up from there: later faults are found, too.
        """
        try:
            fields = read_fields(line)
        except CheckpointError as fault:
            self._faults.add(Fault(Kind.ENTRY, fault.message, fault.place, index, session_id or ""))
            return ""
        name: str = fields["session"]
        known = session_id or name
        try:
            check_follows(fields, self.heads.get(known) or TrailHead(known))
            self.entries += 1
        except CheckpointError as fault:
            self._faults.add(Fault(Kind.ENTRY, fault.message, fault.place, index, name, fields["seq"]))
        self.heads[known] = head_after(fields)
        self.clock_steps += "clock" in fields
        is_gone = self._is_gone(fields, index)
        if self._hear is not None:
            self._hear(fields, index, is_gone)
        return str(fields["ts"])

    def _is_gone(self, fields: dict[str, Any], index: int) -> bool:
        """Compare an entry's payload, if it has one; tell whether that is not there."""
        committed = fields.get("data", {}).get("payload")
        if committed is None or self._read_payload is None:
            return False
        name, seq = fields["session"], fields["seq"]
        stored = self._read_payload(name, seq)
        if stored is None:
            self.erased += 1
        elif commitment(stored) == committed:
            self.payloads += 1
        else:
            problem = "a payload is not the one that was committed to"
            place = f"payload of audit entry {seq} of session {ascii(name)[:80]}"
            self._faults.add(Fault(Kind.PAYLOAD, problem, place, index, name, seq))
        return stored is None


def verify_session(
    lines: Iterable[bytes], session_id: str, read_payload: PayloadReader | None = None
) -> SessionReport:
    """Check the trail of one session, line by line, in memory that does not grow with it.

    Args:
        lines: its lines as stored, newlines included, from the first.
        session_id: the session they should belong to.
        read_payload: gives payloads, where those are to be checked, too.
    """
    faults = Faults()
    walk = ChainWalk(faults, read_payload)
    for index, line in enumerate(lines):
        walk.take(line, index, session_id)
    head = walk.heads.get(session_id) or TrailHead(session_id)
    return SessionReport(
        walk.entries, head, walk.clock_steps, walk.payloads, walk.erased, faults.counts.total(), faults.kept()
    )
