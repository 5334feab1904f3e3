"""Verification of the whole log: chains, tree, signed heads, remembered heads and witnesses, in one pass.

How far a log can be trusted depends on what the one who verifies knows from elsewhere:

    chain         nothing                     changes, swaps, gaps inside a session are found
    signed head   the log's public key        also a trail made anew, and a tail cut below the last head
    pinned head   a head seen earlier         also a log put back to an older state
    witness       keys of witnesses           also a log that shows different things to different people

Every entry is read once and is a link of its chain and a leaf of the tree by the very same bytes: a chain
that is right and a tree that is right, but not over the same entries, cannot pass. Memory grows with the
number of sessions and heads, not with the number of entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, ChecksumMismatchError
from holdfast.domain.merkle import HASH_BYTES, leaf_hash
from holdfast.domain.note import VerifierKey, Verify, parse_note, verify_signatures
from holdfast.domain.tiles import WIDTH, Tile, TileReader, TreeEdge
from holdfast.domain.trail_check import ChainWalk, Fault, Faults, Hearer, Kind, PayloadReader
from holdfast.domain.treehead import TreeHead, parse_head


class Level(IntEnum):
    """How much the evidence carries; each level finds all that those below it find."""

    NONE = 0
    CHAIN = 1
    SIGNED = 2
    PINNED = 3
    WITNESSED = 4

    @property
    def label(self) -> str:
        """The level's name for people."""
        return ("none", "chain", "signed head", "pinned head", "witness")[self]


class Verdict(StrEnum):
    """What a verification comes to."""

    OK = "ok"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class LogSource:
    """What is verified, from a store or from an export; each part is read once, from its start.

    Attributes:
        leaves: the lines of all entries in the order of the tree, in which each session's keep their own
            order; None for one that is not there.
        waiting: the lines that are committed and not yet in the tree: everything else any session has.
        heads: signed heads as they were given out.
        read_tile: gives the stored tiles, which are compared with the tree of the entries.
        read_payload: gives stored payloads, which are compared with the commitments.
        tree_size, tree_root: how many entries the stored tiles say they were made for, and what they come to;
            no root where that is not said.
        trail_heads: where the sessions' own trails stood, before anything else was read.
        hear: hears each entry, for whoever compares the log with what lies beside it.
        faults: what whoever reads it found by itself; asked for when everything else was read.
    """

    leaves: Iterable[bytes | None]
    waiting: Iterable[bytes] = ()
    heads: Iterable[bytes] = ()
    read_tile: TileReader | None = None
    read_payload: PayloadReader | None = None
    tree_size: int = 0
    tree_root: bytes = b""
    trail_heads: Iterable[TrailHead] = ()
    hear: Hearer | None = None
    faults: Iterable[Fault] = ()


@dataclass(frozen=True, slots=True)
class Trust:
    """What the one who verifies knows from elsewhere.

    Attributes:
        verify: checks an Ed25519 signature.
        log_keys: every key the log ever signed with.
        pins: heads that were seen earlier and kept where the log's keeper cannot reach.
        remembered: the last head that the key kept here signed; whoever keeps the log may have changed it.
        witness_keys: keys of witnesses.
        quorum: how many of these must have signed a head.
    """

    verify: Verify
    log_keys: tuple[VerifierKey, ...] = ()
    pins: tuple[TreeHead, ...] = ()
    witness_keys: tuple[VerifierKey, ...] = ()
    quorum: int = 1
    remembered: TreeHead | None = None

    @property
    def origins(self) -> frozenset[str]:
        """Names that the log may have: that of its keys, else that of the pins; empty if nobody knows."""
        return frozenset(key.name for key in self.log_keys) or frozenset(pin.origin for pin in self.pins)


@dataclass(frozen=True, slots=True)
class LogReport:
    """What a verification found.

    Attributes:
        level: the highest level that holds.
        head: size and root of the tree over the entries that were read.
        entries: how many entries, waiting ones included, are right and follow what came before.
        sessions, open_sessions: how many there are, and how many of them were not closed.
        signed_size, pinned_size, witnessed_size: how many entries are covered by what, from the first.
        waiting: entries that are not in the tree yet.
        tail: entries that nothing but their chain covers; waiting ones included.
        tail_since: when the first of those was made.
        heads, tiles: how many of these fit.
        missing_tiles: full tiles that are not stored; they can be made anew.
        clock_steps: entries that tell of a clock that had stepped back.
        payloads, erased: payloads that fit, and those that are gone.
        fault_count: how much is wrong.
        faults: the first of these, those nearest to the start first.
        untold: workflows of the store that the log should tell of, and does not.
        part: what of the log was looked at, `session` or `period`; empty for all of it.
    """

    level: Level
    head: TreeHead
    entries: int
    sessions: int
    open_sessions: int
    signed_size: int
    pinned_size: int
    witnessed_size: int
    waiting: int
    tail: int
    tail_since: str
    heads: int
    tiles: int
    missing_tiles: int
    clock_steps: int
    payloads: int
    erased: int
    fault_count: int
    faults: tuple[Fault, ...]
    untold: tuple[str, ...] = ()
    part: str = ""

    @property
    def first_fault(self) -> Fault | None:
        return self.faults[0] if self.faults else None

    def verdict(self, required: Level = Level.CHAIN) -> Verdict:
        """Judge: failed if anything is wrong, inconclusive if the level required was not reached.

        A log that leaves workflows out proves nothing about them: entries may be gone.
        """
        if self.fault_count:
            return Verdict.FAILED
        return Verdict.OK if self.level >= required and not self.untold else Verdict.INCONCLUSIVE


@dataclass(frozen=True, slots=True)
class Mark:
    """A head that the tree must have had at its size, and what follows if it had."""

    head: TreeHead
    place: str
    kind: Kind
    is_signed: bool = False
    is_witnessed: bool = False

    @property
    def anchors(self) -> bool:
        """Whether it vouches for the entries, and not only fits them."""
        return self.is_signed or self.is_witnessed or self.kind == Kind.PIN


def verify_log(source: LogSource, trust: Trust) -> LogReport:
    """Check a whole log; nothing in it makes this raise, only what reads it can."""
    faults = Faults()
    marks = [*_read_heads(source.heads, trust, faults), *_read_pins(trust, faults)]
    trail_heads = list(source.trail_heads)
    chains = ChainWalk(faults, source.read_payload, source.hear)
    tree = _TreeWalk(marks, source, faults)
    anchored = max((mark.head.size for mark in marks if mark.anchors), default=0)
    index, since = 0, ""
    for index, line in enumerate(source.leaves, 1):
        moment = _take(line, index - 1, chains, tree, faults)
        if index > anchored and not since:
            since = moment
    tree.finish()
    waiting = 0
    for waiting, line in enumerate(source.waiting, 1):
        moment = chains.take(line, index + waiting - 1)
        since = since or moment
    _compare_trails(trail_heads, chains, faults)
    for fault in source.faults:
        faults.add(fault)
    return _report(chains, tree, faults, _origin(trust, marks), waiting, since)


def _take(line: bytes | None, index: int, chains: ChainWalk, tree: _TreeWalk, faults: Faults) -> str:
    if line is None:
        faults.add(Fault(Kind.ENTRY, "an audit entry is not there", f"leaf {index}", index))
        tree.take(bytes(HASH_BYTES))
        return ""
    tree.take(leaf_hash(line))
    return chains.take(line, index)


def _compare_trails(trail_heads: list[TrailHead], chains: ChainWalk, faults: Faults) -> None:
    """Find sessions whose own trail holds what is not in the tree."""
    for head in trail_heads:
        walked = chains.heads.get(head.session_id) or TrailHead(head.session_id)
        if head.seq > walked.seq or (head.seq == walked.seq and head.hash != walked.hash):
            problem = f"the trail of a session stands at entry {head.seq}, and the log at {walked.seq}"
            place = f"session {ascii(head.session_id)[:80]}"
            faults.add(Fault(Kind.ENTRY, problem, place, None, head.session_id, walked.seq + 1))


def _read_heads(heads: Iterable[bytes], trust: Trust, faults: Faults) -> Iterable[Mark]:
    for number, data in enumerate(heads, 1):
        place = f"signed head {number}"
        try:
            yield read_mark(data, place, trust)
        except CheckpointError as fault:
            faults.add(Fault(Kind.HEAD, fault.message, f"{place}, {fault.place}" if fault.place else place))


def read_mark(data: bytes, place: str, trust: Trust) -> Mark:
    """Read a signed head and see who signed it.

    Raises:
        CheckpointCorruptError: if it is none, or that of another log.
        ChecksumMismatchError: if the log's key did not sign it.
    """
    note = parse_note(data)
    head = parse_head(note.text)
    if trust.origins and head.origin not in trust.origins:
        raise CheckpointCorruptError(f"a head of another log, {ascii(head.origin)[:80]}, stands here")
    signers = {
        found.key for found in verify_signatures(note, [*trust.log_keys, *trust.witness_keys], trust.verify)
    }
    is_signed = not signers.isdisjoint(trust.log_keys)
    if trust.log_keys and not is_signed:
        raise ChecksumMismatchError(f"the head of size {head.size} was signed by no key of the log")
    # A witness that goes by two names is one witness.
    witnesses = {key.public_key for key in signers.intersection(trust.witness_keys)}
    is_witnessed = bool(trust.witness_keys) and len(witnesses) >= max(1, trust.quorum)
    return Mark(head, f"{place}, of size {head.size}", Kind.HEAD, is_signed, is_witnessed)


def _read_pins(trust: Trust, faults: Faults) -> Iterable[Mark]:
    if trust.remembered is not None:
        place = f"last head that the key here signed, of size {trust.remembered.size}"
        yield Mark(trust.remembered, place, Kind.MEMORY)
    for pin in trust.pins:
        place = f"pinned head of size {pin.size}"
        if pin.origin in trust.origins:
            yield Mark(pin, place, Kind.PIN)
        else:
            faults.add(Fault(Kind.PIN, f"it is of another log, {ascii(pin.origin)[:80]}", place))


class _TreeWalk:
    """Builds the tree from the entries, and compares it with stored tiles and with heads on the way."""

    def __init__(self, marks: Iterable[Mark], source: LogSource, faults: Faults) -> None:
        self.edge = TreeEdge()
        self.fitting: list[Mark] = []
        self.tiles = self.missing_tiles = 0
        self._marks = sorted(marks, key=lambda mark: mark.head.size, reverse=True)
        self._read = source.read_tile
        self._tree_size = source.tree_size
        self._tree_root = source.tree_root
        self._faults = faults
        self._batch: list[bytes] = []
        self._good_size = 0
        self._flush()

    def take(self, leaf: bytes) -> None:
        """Take the hash of the next leaf."""
        self._batch.append(leaf)
        if len(self._batch) == self._wanted:
            self._flush()

    def finish(self) -> None:
        """Compare what is left, once there are no more leaves."""
        self._flush()
        missing = self.edge.size
        if missing < self._tree_size:
            problem = f"the log ends before: its tiles were made for {self._tree_size} entries"
            self._faults.add(Fault(Kind.TILE, problem, f"leaf {missing}", missing))
        for mark in reversed(self._marks):
            problem = f"the log ends before: entries {missing} to {mark.head.size - 1} are not there"
            self._faults.add(Fault(mark.kind, problem, mark.place, missing))

    def _flush(self) -> None:
        """Go on to the end of a tile or to the size of a head, whichever comes first."""
        for tile, data in self.edge.append(self._batch):
            self._compare_tile(tile, data)
        self._batch = []
        size = self.edge.size
        while self._marks and self._marks[-1].head.size <= size:
            self._compare_root(self._marks.pop())
        if size == self._tree_size and self._tree_root:
            if self._tree_root != self.edge.root():
                problem = "the tiles were made for other entries"
                self._faults.add(Fault(Kind.TILE, problem, f"tree of size {size}"))
            self._tree_root = b""
        # Partial tiles are stored for one size only: that has to be met exactly.
        stops = [mark.head.size for mark in self._marks[-1:]] + [self._tree_size]
        self._wanted = min([WIDTH - size % WIDTH, *(stop - size for stop in stops if stop > size)])

    def _compare_root(self, mark: Mark) -> None:
        if self.edge.root() == mark.head.root:
            self.fitting.append(mark)
            self._good_size = self.edge.size
            return
        problem = f"the entries are not those it was made for; look from entry {self._good_size} on"
        self._faults.add(Fault(mark.kind, problem, mark.place))

    def _compare_tile(self, tile: Tile, data: bytes) -> None:
        stored = self._read(tile) if self._read else None
        if stored is None:
            self.missing_tiles += self._read is not None and tile.width == WIDTH
        elif stored == data:
            self.tiles += 1
        else:
            self._faults.add(_tile_fault(tile, data, stored))


def _tile_fault(tile: Tile, data: bytes, stored: bytes) -> Fault:
    if len(stored) != len(data):
        return Fault(Kind.TILE, f"a tile has {len(stored)} bytes instead of {len(data)}", tile.path)
    at = next(at for at in range(len(data)) if data[at] != stored[at]) // HASH_BYTES
    place = f"{tile.path}, hash {at}"
    if tile.level:
        return Fault(Kind.TILE, "a tile does not fit the tiles below it", place)
    return Fault(Kind.TILE, "an entry and its tile do not fit", place, tile.index * WIDTH + at)


def _origin(trust: Trust, marks: list[Mark]) -> str:
    return next(iter([*sorted(trust.origins), *(mark.head.origin for mark in marks)]), "")


def _report(
    chains: ChainWalk, tree: _TreeWalk, faults: Faults, origin: str, waiting: int, since: str
) -> LogReport:
    fitting, size = tree.fitting, tree.edge.size
    signed = max((mark.head.size for mark in fitting if mark.is_signed), default=0)
    pinned = max((mark.head.size for mark in fitting if mark.kind == Kind.PIN), default=0)
    witnessed = max((mark.head.size for mark in fitting if mark.is_witnessed), default=0)
    return LogReport(
        level=_level(fitting, faults),
        head=TreeHead(origin, size, tree.edge.root()),
        entries=chains.entries,
        sessions=len(chains.heads),
        open_sessions=sum(not head.closed for head in chains.heads.values()),
        signed_size=signed,
        pinned_size=pinned,
        witnessed_size=witnessed,
        waiting=waiting,
        tail=size - max(signed, pinned, witnessed) + waiting,
        tail_since=since,
        heads=sum(mark.kind == Kind.HEAD for mark in fitting),
        tiles=tree.tiles,
        missing_tiles=tree.missing_tiles,
        clock_steps=chains.clock_steps,
        payloads=chains.payloads,
        erased=chains.erased,
        fault_count=faults.counts.total(),
        faults=faults.kept(),
    )


def _level(fitting: list[Mark], faults: Faults) -> Level:
    """Name the highest level at which nothing is wrong."""
    if faults.has(Kind.ENTRY, Kind.PAYLOAD, Kind.TILE, Kind.FILE):
        return Level.NONE
    if faults.has(Kind.HEAD):
        return Level.CHAIN
    level = Level.CHAIN
    if any(mark.is_signed for mark in fitting):
        level = Level.SIGNED
    if faults.has(Kind.PIN, Kind.MEMORY):
        return level
    if any(mark.kind == Kind.PIN for mark in fitting):
        level = Level.PINNED
    return Level.WITNESSED if any(mark.is_witnessed for mark in fitting) else level
