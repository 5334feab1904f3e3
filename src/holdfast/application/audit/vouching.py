"""Whether the trail vouches for a checkpoint: the entry that tells of it, and the signed head it lies under.

A checkpoint does not know its entry. The log is nearly in the order of time, so it is looked for around the
moment at which the checkpoint was made, and nowhere else once so many lines were looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.audit.missing import makes
from holdfast.application.loading import record_fields
from holdfast.application.resolve import Found
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError
from holdfast.domain.note import parse_note
from holdfast.domain.release import PRODUCER_FACT
from holdfast.domain.trail import decode_entry, read_fields
from holdfast.domain.treehead import open_head, parse_head
from holdfast.ports import Store

#: Stores read about as many lines of the log at once.
_PORTION = 8_192
#: So many lines to each side of its moment are looked at.
_FAR = 50_000
#: Further than so many entries nobody looks back for the beginning of a session.
_SESSION_MAX = 20_000

_TIME = re.compile(rb'"ts":"([^"]*)"')
_STARTED = f'"type":"{AuditType.SESSION_STARTED}"'.encode()


class Standing(StrEnum):
    """How far the trail vouches for a checkpoint."""

    #: Its entry lies in a signed head; signature, proof and checksum are right.
    SIGNED = "signed"
    #: Its entry is there, and no signed head covers it yet.
    WAITING = "waiting"
    #: No entry tells of it.
    UNTOLD = "untold"
    #: Entry, proof or signature are not right.
    BROKEN = "broken"
    #: That cannot be told here.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Vouching:
    """What the trail says for one checkpoint.

    Attributes:
        index: place of its entry in the log; None: there is none, or it has no place yet.
        size: how many entries the newest signed head covers; 0: nothing was signed.
        key: id of the key that signed that head.
        is_own_key: whether that key is kept here; the log itself may name any other.
        producer: version of the Holdfast that began the session which made it; None: not told.
        problem: what is not right, or why nobody knows.
    """

    standing: Standing
    index: int | None = None
    session_id: str | None = None
    seq: int | None = None
    size: int = 0
    key: str = ""
    is_own_key: bool = False
    producer: str | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Told:
    """A line that tells of a checkpoint, and its place."""

    line: bytes
    index: int | None


def vouch(store: Store, log: AuditLog, found: Found) -> Vouching:
    """Tell how far the trail vouches for a checkpoint; nothing is signed for it."""
    told: _Told | None = None
    try:
        told, problem = _found(store, found)
        if told is None:
            return Vouching(Standing.UNKNOWN if problem else Standing.UNTOLD, problem=problem)
        entry = decode_entry(told.line, None)
    except CheckpointError as damage:
        return Vouching(Standing.BROKEN, told.index if told else None, problem=damage.message)
    vouching = Vouching(
        Standing.BROKEN,
        told.index,
        entry.session_id,
        entry.seq,
        producer=_producer(store, entry),
        problem="the trail tells of another checkpoint under this number",
    )
    if entry.facts.get("checksum") != found.entry.checksum:
        return vouching
    try:
        if not found.entry.pruned:
            # What the listing says its checksum is, the record may no longer be.
            record_fields(store, found.workflow_id, found.entry)
        return _under_head(log, replace(vouching, problem=""))
    except CheckpointError as damage:
        return replace(vouching, problem=damage.message)


def _under_head(log: AuditLog, vouching: Vouching) -> Vouching:
    """Check that an entry lies under the newest signed head.

    Raises:
        CheckpointError: it does not, or the head is not signed as it should be.
    """
    note, index = log.keeper.checkpoint(), vouching.index
    size = 0 if note is None else parse_head(parse_note(note).text).size
    vouching = replace(vouching, size=size)
    if note is None or index is None or size <= index:
        return replace(vouching, standing=Standing.WAITING)
    trust = log.trust()
    if not trust.log_keys:
        return replace(
            vouching, standing=Standing.UNKNOWN, problem="there is no key to check the signature with"
        )
    _, verified = open_head(note, trust.log_keys, trust.verify)
    # It is covered, so nothing is signed for the proof.
    log.keeper.proof(vouching.session_id or "", vouching.seq or 0)
    own = log.keeper.own_key()
    key = verified[0].key
    return replace(vouching, standing=Standing.SIGNED, key=key.id.hex(), is_own_key=key == own)


def _found(store: Store, found: Found) -> tuple[_Told | None, str]:
    """Find the line that tells of a checkpoint, or of another one with its number; else why it is unknown."""
    number = f'"cp_seq":{found.entry.sequence},"checksum":"'
    right = f'{number}{found.entry.checksum}"'.encode()
    other: _Told | None = None
    size = store.integrate()
    middle = _near(store, size, found.entry.timestamp.encode())
    for told in _around(store, size, middle):
        if right in told.line and _tells(told.line, found.workflow_id):
            return told, ""
        if number.encode() in told.line and other is None and _is_of(told.line, found.workflow_id):
            other = told
    is_whole = middle <= _FAR and middle + _FAR >= size
    if other is not None or is_whole:
        return other, ""
    return None, f"none of the {2 * _FAR:,} entries around its moment tells of it; no others were looked at"


def _is_of(line: bytes, workflow_id: str) -> bool:
    return b'"workflow":' + plainjson.dumps(workflow_id) in line and _tells(line, workflow_id)


def _tells(line: bytes, workflow_id: str) -> bool:
    try:
        fields = read_fields(line)
    except CheckpointError:
        # Whoever looks at it is told so.
        return True
    return fields.get("workflow") == workflow_id and makes(fields)


def _near(store: Store, size: int, moment: bytes) -> int:
    """Find about where the log has come to a moment; sessions are in order, and the log nearly is."""
    low, high = 0, size
    while high - low > _PORTION:
        middle = (low + high) // 2
        said = _TIME.search(next(iter(store.leaves(after=middle)), b""))
        if said is not None and said[1] < moment:
            low = middle
        else:
            high = middle
    return low


def _around(store: Store, size: int, middle: int) -> Iterator[_Told]:
    """Give the lines around a place, the nearest portions first, and those that have no place yet."""
    near = (middle - _PORTION, middle + 2 * _PORTION)
    for first, last in (near, (near[1], middle + _FAR), (middle - _FAR, near[0])):
        first, last = max(first, 0), min(last, size)
        if first < last:
            for index, line in enumerate(islice(store.leaves(after=first), last - first), first):
                yield _Told(line, index)
    for line in islice(store.waiting(), _FAR):
        yield _Told(line, None)


def _producer(store: Store, entry: AuditEntry) -> str | None:
    """Read which Holdfast began a session, the last time before an entry; None where that is not told."""
    if entry.seq > _SESSION_MAX:
        return None
    started = b""
    for line in islice(store.trail(entry.session_id), entry.seq):
        started = line if _STARTED in line else started
    try:
        version = decode_entry(started, None).facts.get(PRODUCER_FACT) if started else None
    except CheckpointError:
        return None
    return version if isinstance(version, str) else None
