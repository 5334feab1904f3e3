"""Bytes as they are stored: without what the columns beside them say already.

The lines of records, events and audit entries begin with fields that are columns too, and hold a hash that is
one. Both are cut out before the bytes are stored, and put back from the columns when they are read: so the
longest part of a row is there once. What is put back is proven by the hash, as all that is read. A line that
does not begin as its columns say is stored whole, and so are those that were stored before this was done.

What is left is an object of JSON like the whole, its hash empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from holdfast.adapters.sql.database import Row
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.checkpoint import usual_type
from holdfast.domain.record import Entry, EventRecord, Record

_CHECKSUM = b',"checksum":"'
_HASH = b',"hash":"'
_END = b'"}\n'

#: Columns of a checkpoint that its record is put together from, in the order of `whole_record`.
RECORD_NAMES = (
    "sequence",
    "uuid",
    "timestamp",
    "type",
    "stage",
    "agent",
    "session",
    "phase",
    "state_bytes",
    "event_seq",
    "checksum",
    "length",
    "data",
)
#: Columns of an event, in the order of `whole_event`.
EVENT_NAMES = ("seq", "timestamp", "hash", "data")
#: Columns of an audit entry, in the order of `whole_line`.
LINE_NAMES = ("session_id", "seq", "timestamp", "type", "workflow_id", "hash", "line")


# -- records ------------------------------------------------------------------------------------------


def cut_record(workflow_id: str, record: Record) -> bytes:
    """Give what is stored of a record beside its entry."""
    data, tail = record.data, record.entry.checksum.encode() + _END
    end = data.find(b"\n") + 1
    hash_at = end - len(tail)
    if data[hash_at:end] != tail or not data.endswith(_CHECKSUM, 0, max(hash_at, 0)):
        return data
    start = 0
    for piece in _record_head(workflow_id, _values_of(record.entry)):
        if not data.startswith(piece, start):
            break
        start += len(piece)
    return b"".join((b"{", data[start:hash_at], data[end - len(_END) :])) if start else data


def whole_record(workflow_id: str, row: Row, data: bytes) -> bytes:
    """Put a record together out of the columns `RECORD_NAMES`; `data` is the last of them, as bytes.

    What does not come out as long as it was is given as it is stored: it is damaged.
    """
    *values, checksum, length, _ = row
    missing = length - len(data)
    if not missing:
        return data
    end = data.find(b"\n") + 1 - len(_END)
    hashed = str(checksum).encode("utf-8", "surrogatepass")
    pieces = list(_record_head(workflow_id, values))
    for count, size in enumerate(accumulate(map(len, pieces)), start=1):
        if size + len(hashed) - 1 == missing:
            return b"".join((*pieces[:count], data[1:end], hashed, data[end:]))
    return data


def _values_of(entry: Entry) -> Sequence[Any]:
    return (
        entry.sequence,
        entry.uuid,
        entry.timestamp,
        entry.type,
        entry.stage,
        entry.agent,
        entry.session,
        entry.phase,
        entry.state_bytes,
        entry.event_seq,
    )


def _record_head(workflow_id: str, values: Sequence[Any]) -> Iterator[bytes]:
    """Write the fields that a record begins with as they look where nothing is escaped."""
    sequence, uuid, timestamp, kind, stage, agent, session, phase, size, event_seq = values
    yield _bytes(f'{{"seq":{sequence},"id":"{uuid}","wf":"{workflow_id}","ts":"{timestamp}",')
    if kind != usual_type(agent):
        yield _bytes(f'"type":"{kind}",')
    if stage is not None:
        yield _bytes(f'"stage":"{stage}",')
    if agent is not None:
        yield _bytes(f'"agent":"{agent}",')
    if session is not None:
        yield _bytes(f'"session":"{session}",')
    yield _bytes(f'"size":{size},' if phase is None else f'"phase":{phase},"size":{size},')
    yield _bytes(f'"event_seq":{event_seq},')


# -- events -------------------------------------------------------------------------------------------


def cut_event(event: EventRecord) -> bytes:
    """Give what is stored of an event beside its columns."""
    head, tail = _event_ends(event.seq, event.timestamp, event.hash)
    data = event.data
    if data.startswith(head) and data.endswith(tail):
        return b"".join((b"{", data[len(head) : -len(tail)], _HASH, _END))
    return data


def whole_event(row: Row, data: bytes) -> bytes:
    """Put an event together out of the columns `EVENT_NAMES`; `data` is the last of them, as bytes."""
    if data.startswith(b'{"seq":') or not data.endswith(_HASH + _END):
        return data
    head, tail = _event_ends(*row[:-1])
    return b"".join((head, data[1 : -len(_HASH + _END)], tail))


def _event_ends(seq: Any, timestamp: Any, digest: Any) -> tuple[bytes, bytes]:
    return _bytes(f'{{"seq":{seq},"ts":"{timestamp}",'), _HASH + _bytes(str(digest)) + _END


# -- audit entries ------------------------------------------------------------------------------------


def cut_line(record: AuditRecord) -> bytes:
    """Give what is stored of an audit entry's line beside its columns."""
    line, head = record.data, record.head
    start = _line_head(head.session_id, head.seq, head.timestamp, record.type, record.workflow_id)
    hashed = head.hash.encode()
    at = line.find(_HASH) + len(_HASH)
    if line.startswith(start) and line.startswith(hashed, at):
        return b"".join((b"{", line[len(start) : at], line[at + len(hashed) :]))
    return line


def whole_line(row: Row, line: bytes) -> bytes:
    """Put the line of an entry together out of the columns `LINE_NAMES`; `line` is the last, as bytes."""
    if line.startswith(b'{"id":'):
        return line
    *columns, digest, _ = row
    at = line.find(_HASH) + len(_HASH)
    return b"".join((_line_head(*columns), line[1:at], _bytes(str(digest)), line[at:]))


def _line_head(session_id: Any, seq: Any, timestamp: Any, kind: Any, workflow_id: Any) -> bytes:
    of = "" if workflow_id is None else f'"workflow":"{workflow_id}",'
    number = f"{seq:06d}" if isinstance(seq, int) else str(seq)
    return _bytes(
        f'{{"id":"AE-{number}","seq":{seq},"ts":"{timestamp}","type":"{kind}","session":"{session_id}",{of}'
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
