"""Events: facts in a workflow's journal, each line chained to the one before by its hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, recovery_hint
from holdfast.domain.ladder import Mode
from holdfast.domain.record import EventRecord
from holdfast.domain.time import parse_timestamp, timestamp_text

#: A line ends with the 71 characters of its hash, a quote, a brace and a newline.
_END = b'"}\n'
_END_CHARS = len(_END)
_HASH_CHARS = len("sha256:") + 64
_SEQ_AT_START = re.compile(rb'\{"seq":([0-9]{1,18})[,}]')

_NUMBER, _TEXT, _OBJECT = (int,), (str,), (dict,)
_SHAPE: Mapping[str, tuple[type, ...]] = {
    "seq": _NUMBER,
    "ts": _TEXT,
    "type": _TEXT,
    "wf": _TEXT,
    "hash": _TEXT,
}
_OPTIONAL_SHAPE: Mapping[str, tuple[type, ...]] = {
    "agent": _TEXT,
    "step_id": _TEXT,
    "parent_id": _TEXT,
    "cp_seq": _NUMBER,
    "cost": _OBJECT,
    "data": _OBJECT,
    "sealed": _OBJECT,
}
_KINDS = {name: kinds[0] for name, kinds in (*_SHAPE.items(), *_OPTIONAL_SHAPE.items())}


@dataclass(frozen=True, slots=True)
class Event:
    """One fact. `data` and `cost` are plain trees; `hash` is filled when the event is committed."""

    seq: int
    timestamp: datetime
    type: str
    workflow_id: str
    agent: str | None = None
    step_id: str | None = None
    parent_id: str | None = None
    #: The checkpoint the event is about.
    cp_seq: int | None = None
    cost: Mapping[str, Any] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    hash: str = ""
    #: What data and cost are encrypted to, as long as nobody opened it.
    sealed: Mapping[str, Any] | None = None
    #: Data and cost were erased: their key was destroyed.
    erased: bool = False
    #: False in a receipt for what waits in memory and is lost if the process ends before it is written.
    durable: bool = field(default=True, compare=False)
    #: Where the ladder of degradation stood.
    mode: Mode = field(default=Mode.FULL, compare=False)


def chain_hash(previous_hash: str, unhashed: bytes) -> str:
    """Hash a line whose hash is empty onto the hash before it."""
    return "sha256:" + hashlib.sha256(previous_hash.encode() + b"\n" + unhashed).hexdigest()


def encode_event(event: Event, previous_hash: str) -> EventRecord:
    """Write an event as its line, newline included, chained to the hash of the event before."""
    written = timestamp_text(event.timestamp)
    return _chained(event.seq, written, _start(event, written), previous_hash)


def encode_pointer(
    type: str, workflow_id: str, agent: str | None, seq: int, written: str, cp_seq: int, previous_hash: str
) -> EventRecord:
    """Write an event that only points to a checkpoint as `encode_event` does: one rides on every commit.

    Args:
        type: one that JSON need not quote.
        written: its time, as text.
    """
    quoted = plainjson.quoted
    named = f'{{"seq":{seq},"ts":"{written}","type":"{type}","wf":{quoted(workflow_id)}'
    if agent is not None:
        named += f',"agent":{quoted(agent)}'
    start = plainjson.encoded(f'{named},"cp_seq":{cp_seq},"data":{{}},"hash":"')
    return _chained(seq, written, start, previous_hash)


def _chained(seq: int, written: str, start: bytes, previous_hash: str) -> EventRecord:
    """Put the hash at the end of a line."""
    digest = chain_hash(previous_hash, start + _END)
    return EventRecord(seq, written, digest, start + digest.encode() + _END)


def decode_event(line: bytes, previous_hash: str | None) -> Event:
    """Read an event line, with or without its newline, after checking its hash.

    Args:
        line: the bytes as stored.
        previous_hash: hash of the event before (`GENESIS` for the first). None where that event is not
            at hand: then this one's hash is not checked, and only the events after it prove anything.

    Raises:
        ChecksumMismatchError: if the line is not the one that was committed after `previous_hash`.
        CheckpointCorruptError: if its hash is right, or unchecked, and it still is no event.
    """
    whole = line if line.endswith(b"\n") else line + b"\n"
    if previous_hash is not None:
        _verify(whole, previous_hash)
    return _event(_parsed(whole), whole)


def _start(event: Event, written: str) -> bytes:
    """Write the fields in the order of format version 1, up to the hash.

    Raises:
        UnstorableValueError: a name has lone surrogates.
    """
    quoted = plainjson.quoted
    start = (
        f'{{"seq":{event.seq},"ts":"{written}","type":{quoted(event.type)},"wf":{quoted(event.workflow_id)}'
    )
    if event.agent is not None:
        start += f',"agent":{quoted(event.agent)}'
    if event.step_id is not None:
        start += f',"step_id":{quoted(event.step_id)}'
    if event.parent_id is not None:
        start += f',"parent_id":{quoted(event.parent_id)}'
    if event.cp_seq is not None:
        start += f',"cp_seq":{event.cp_seq}'
    return plainjson.encoded(start) + _told(event) + b',"hash":"'


def _told(event: Event) -> bytes:
    """Write what an event holds beside its names: plain trees."""
    told = b""
    if event.cost is not None:
        told += b',"cost":' + plainjson.dumps(dict(event.cost))
    if event.data or event.sealed is None:
        told += b',"data":' + (plainjson.dumps(dict(event.data)) if event.data else b"{}")
    if event.sealed is not None:
        told += b',"sealed":' + plainjson.dumps(dict(event.sealed))
    return told


def _verify(line: bytes, previous_hash: str) -> None:
    start, end = line[: -_HASH_CHARS - _END_CHARS], line[-_END_CHARS:]
    found = line[-_HASH_CHARS - _END_CHARS : -_END_CHARS]
    if found != chain_hash(previous_hash, start + end).encode():
        raise ChecksumMismatchError(
            "an event is not the one that was committed",
            place=_place(line),
            hint=recovery_hint(),
        )


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        fields = plainjson.loads(line)
    except (ValueError, RecursionError):
        raise _no_event(line, "it is not JSON") from None
    if not isinstance(fields, dict):
        raise _no_event(line, "it is not an object")
    return fields


def _event(fields: dict[str, Any], line: bytes) -> Event:
    if not _is_usual(fields):
        _check_shape(fields, line)
    return Event(
        seq=fields["seq"],
        timestamp=parse_timestamp(fields["ts"]),
        type=fields["type"],
        workflow_id=fields["wf"],
        agent=fields.get("agent"),
        step_id=fields.get("step_id"),
        parent_id=fields.get("parent_id"),
        cp_seq=fields.get("cp_seq"),
        cost=fields.get("cost"),
        data=fields.get("data") or {},
        hash=fields["hash"],
        sealed=fields.get("sealed"),
    )


def _is_usual(fields: dict[str, Any]) -> bool:
    """Tell at a glance that all fields are there and of their types; ten thousand are read in a recovery."""
    for name, value in fields.items():
        if type(value) is not _KINDS.get(name):
            return False
    return fields.keys() >= _SHAPE.keys() and "data" in fields


def _check_shape(fields: dict[str, Any], line: bytes) -> None:
    for name, kinds in _SHAPE.items():
        if type(fields.get(name)) not in kinds:
            raise _no_event(line, f"field {name!r} is missing or of the wrong type")
    for name, kinds in _OPTIONAL_SHAPE.items():
        if fields.get(name) is not None and type(fields[name]) not in kinds:
            raise _no_event(line, f"field {name!r} is of the wrong type")
    if fields.get("data") is None and fields.get("sealed") is None:
        raise _no_event(line, "field 'data' is missing or of the wrong type")


def _no_event(line: bytes, why: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        f"a line is no event, {why}",
        place=_place(line),
        hint=recovery_hint(),
    )


def _place(line: bytes) -> str:
    """Name the event by what its first bytes claim; nothing else of a bad line is trusted."""
    claimed = _SEQ_AT_START.match(line)
    return f"event {claimed[1].decode()}" if claimed else "an event line without a sequence"
