"""Looking at the trail as a whole: every entry is a leaf once, and is where the order of leaves says.

Each line is compared with its own hash, and each payload with what its entry commits to. Whether lines
follow each other, and fit what was signed, is for those who verify the trail.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.order import RECORD_BYTES, Place
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.payload_slots import commits_to_payload, slots
from holdfast.adapters.filesystem.trails import Trails
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.payload import commitment
from holdfast.domain.trail import place_of
from holdfast.ports import Finding

_HASH_START = b',"hash":"'
_SUM = b"sha256:"
_COMMITMENT = b'"payload":"' + _SUM
_LOOK_AGAIN_MAX = 20


def check_trail(files: Files, trails: Trails) -> Iterator[Finding]:
    """Compare trails, payloads and the order of leaves with each other; tell the first fault of each."""
    if (files.size(layout.ORDER) or 0) % RECORD_BYTES and not trails.refresh():
        yield Finding(layout.ORDER, "the last line is cut")
    look = _Look(files, trails)
    try:
        yield from look.leaves()
    except CheckpointCorruptError as damage:
        yield Finding(damage.place, damage.message)
        return
    yield from look.unknown_trails()
    yield from look.payloads()


class _Look:
    """One look at all leaves, in order."""

    def __init__(self, files: Files, trails: Trails) -> None:
        self._files = files
        self._trails = trails
        #: Leaves looked at, and the last one of each session.
        self._done = 0
        self._last: dict[str, Place] = {}
        self._told: set[str] = set()
        #: How many entries of a session have a payload, or had one.
        self._payloads: Counter[str] = Counter()

    def leaves(self) -> Iterator[Finding]:
        for _ in range(_LOOK_AGAIN_MAX):
            for portion in self._trails.portions(self._done, self._trails.size()):
                lines = self._trails.lines_of(portion)
                for place, line in zip(portion, lines, strict=True):
                    yield from self._leaf(place, line)
            longer = [name for name, last in self._last.items() if self._size(name) > _end(last)]
            # Those who commit meanwhile write to trails first.
            if not longer or not self._trails.refresh():
                break
        yield from (self._tell(name, "it has entries that are no leaves") for name in longer)

    def _leaf(self, place: Place, line: bytes) -> Iterator[Finding]:
        name = self._trails.name_at(place.session_at)
        last = self._last.get(name)
        expected = (1, 0) if last is None else (last.seq + 1, _end(last))
        if name not in self._told and (place.seq, place.offset) != expected:
            yield self._tell(name, f"leaf {self._done} is entry {place.seq}, not entry {expected[0]}")
        elif name not in self._told and not _is_whole(line):
            yield self._tell(name, f"{place_of(line)}, leaf {self._done}, is not what was committed")
        self._payloads[name] += commits_to_payload(line)
        self._last[name] = place
        self._done += 1

    def _tell(self, session_id: str, problem: str) -> Finding:
        self._told.add(session_id)
        return Finding(layout.trail_path(session_id), problem)

    def _size(self, session_id: str) -> int:
        return self._files.size(layout.trail_path(session_id)) or 0

    def unknown_trails(self) -> Iterator[Finding]:
        """Trails none of whose entries is a leaf."""
        known = set(map(layout.trail_path, self._last))
        unknown = [path for path in self._trails.paths() if path not in known]
        if unknown and not self._trails.refresh():
            yield from (Finding(path, "none of its entries is a leaf") for path in unknown)

    def payloads(self) -> Iterator[Finding]:
        for name in self._last:
            problem = self._payload_problem(name)
            if problem:
                yield Finding(layout.payloads_path(name), problem)

    def _payload_problem(self, session_id: str) -> str:
        """Say what is the first thing wrong with a session's payloads; empty if nothing is."""
        committed = self._commitments(session_id)
        seq = end = count = 0
        for slot in slots(self._files, layout.payloads_path(session_id)):
            known_seq, sum_text = next(committed, (0, ""))
            if slot.offset != end or slot.seq != known_seq:
                break
            stored = self._trails.payload_in(session_id, slot)
            if stored is not None and commitment(stored) != sum_text:
                return f"the payload of entry {slot.seq} is not the one it commits to"
            seq, end, count = slot.seq, slot.end, count + 1
        if count == self._payloads[session_id]:
            return ""
        return f"damaged after the payload of entry {seq}" if seq else "damaged from the first payload on"

    def _commitments(self, session_id: str) -> Iterator[tuple[int, str]]:
        """Give the entries that have a payload, or had one, and what they commit to."""
        lines = islice(self._trails.entries(session_id, 0), self._last[session_id].seq)
        for seq, line in enumerate(lines, 1):
            if commits_to_payload(line):
                start = line.find(_COMMITMENT) + len(_COMMITMENT) - len(_SUM)
                yield seq, line[start : line.find(b'"', start)].decode("ascii", "replace")


def _end(place: Place) -> int:
    return place.offset + place.length


def _is_whole(line: bytes) -> bool:
    """Tell whether a line is one, and the one that its hash is of."""
    start = line.find(_HASH_START) + len(_HASH_START)
    end = line.find(b'"', start)
    digest = hashlib.sha256(line[:start])
    digest.update(line[end:])
    is_one = line.find(b"\n") == len(line) - 1
    return is_one and line[start:end] == b"sha256:" + digest.hexdigest().encode()
