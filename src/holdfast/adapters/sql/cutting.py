"""Bytes as they are stored: without what the columns beside them say already.

The lines of records, events and audit entries begin with fields that are columns too, and hold a hash that is
one. Both are cut out before the bytes are stored, and put back from the columns when they are read: so the
longest part of a row is there once. What is put back is proven by the hash, as all that is read. A line that
does not begin as its columns say is stored whole, and so are those that were stored before this was done.

What is left of a record is an object of JSON like the whole, its checksum empty. Of an event and of an entry
the hash is gone with its name, and so are the workflow's name and an outcome that is the usual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from holdfast.adapters.sql.database import Row
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.checkpoint import usual_type
from holdfast.domain.record import EventRecord, Record

_CHECKSUM = b',"checksum":"'
_HASH = b',"hash":"'
_TYPE = b'"type":"'
#: Nowhere inside a text: there a quote has a backslash before it.
_LINK = b'"prev_hash":"'
_CORRELATION = b'"correlation":"'
_OUTCOME = b'"outcome":"'
_SUCCESS = b'"outcome":"success",'
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
#: Those of them that a record begins with, of an entry.
_RECORD_VALUES = attrgetter(*RECORD_NAMES[:-3])
#: Columns of an event, in the order of `whole_event`.
EVENT_NAMES = ("seq", "timestamp", "hash", "data")
#: Columns of an audit entry, in the order of `whole_line`.
LINE_NAMES = ("session_id", "seq", "timestamp", "type", "workflow_id", "hash", "line")


# -- records ------------------------------------------------------------------------------------------


def cut_record(workflow_id: str, record: Record) -> bytes:
    """Give what is stored of a record beside its entry."""
    data, entry = record.data, record.entry
    end = data.find(b"\n") + 1
    hashed = entry.checksum.encode() + _END
    if not data.endswith(_CHECKSUM + hashed, 0, end):
        return data
    start = _matched(data, _record_head(workflow_id, _RECORD_VALUES(entry)))
    return b"".join((b"{", data[start : end - len(hashed)], data[end - len(_END) :])) if start else data


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
    pieces = _record_head(workflow_id, values)
    while pieces:
        head = _bytes("".join(pieces))
        if len(head) + len(hashed) - 1 == missing:
            return b"".join((head, data[1:end], hashed, data[end:]))
        pieces.pop()
    return data


def _matched(data: bytes, pieces: list[str]) -> int:
    """Count the bytes of a record that are the first pieces of its head, as many of them as are."""
    while pieces:
        head = _bytes("".join(pieces))
        if data.startswith(head):
            return len(head)
        pieces.pop()
    return 0


def _record_head(workflow_id: str, values: Sequence[Any]) -> list[str]:
    """Write the fields that a record begins with as they look where nothing is escaped."""
    sequence, uuid, timestamp, kind, stage, agent, session, phase, size, event_seq = values
    pieces = [f'{{"seq":{sequence},"id":"{uuid}","wf":"{workflow_id}","ts":"{timestamp}",']
    if kind != usual_type(agent):
        pieces.append(f'"type":"{kind}",')
    if stage is not None:
        pieces.append(f'"stage":"{stage}",')
    if agent is not None:
        pieces.append(f'"agent":"{agent}",')
    if session is not None:
        pieces.append(f'"session":"{session}",')
    pieces.append(f'"size":{size},' if phase is None else f'"phase":{phase},"size":{size},')
    pieces.append(f'"event_seq":{event_seq},')
    return pieces


# -- events -------------------------------------------------------------------------------------------


def cut_event(workflow_id: str, event: EventRecord) -> bytes:
    """Give what is stored of an event beside its columns."""
    data = event.data
    head, name, tail = _event_parts(workflow_id, event.seq, event.timestamp, event.hash)
    start = len(head)
    at = data.find(b'"', start + len(_TYPE)) + 1
    if (
        data.startswith(head)
        and data.startswith(_TYPE, start)
        and data.startswith(name, at)
        and data.endswith(tail)
    ):
        return b"".join((b"{", data[start:at], data[at + len(name) : -len(tail)], b"}"))
    return data


def whole_event(workflow_id: str, row: Row, data: bytes) -> bytes:
    """Put an event together out of the columns `EVENT_NAMES`; `data` is the last of them, as bytes."""
    if not data.startswith(b"{" + _TYPE):
        return data
    head, name, tail = _event_parts(workflow_id, *row[:-1])
    at = data.find(b'"', 1 + len(_TYPE)) + 1
    return b"".join((head, data[1:at], name, data[at:-1], tail))


def _event_parts(workflow_id: str, seq: Any, timestamp: Any, digest: Any) -> tuple[bytes, bytes, bytes]:
    head, name = f'{{"seq":{seq},"ts":"{timestamp}",', f',"wf":"{workflow_id}"'
    return _bytes(head), _bytes(name), _bytes(f',"hash":"{digest}"}}\n')


# -- audit entries ------------------------------------------------------------------------------------


def cut_line(record: AuditRecord) -> bytes:
    """Give what is stored of an audit entry's line beside its columns."""
    line, head = record.data, record.head
    start = _line_head(head.session_id, head.seq, head.timestamp, record.type, record.workflow_id)
    own = _own_hash(head.hash)
    at = line.find(_HASH)
    if not (line.startswith(start) and line.startswith(own, at)):
        return line
    who, link = line[len(start) : at], line[at + len(own) :]
    return b"".join((b"{", who.replace(_SUCCESS, b"", 1), link))


def whole_line(row: Row, line: bytes) -> bytes:
    """Put the line of an entry together out of the columns `LINE_NAMES`; `line` is the last, as bytes."""
    if line.startswith(b'{"id":'):
        return line
    *columns, digest, _ = row
    at = line.find(_LINK)
    end = line.find(b'"', at + len(_LINK)) + 1
    who = line[1:at]
    if _OUTCOME not in who:
        # Before what comes after it, if that is there.
        place = who.find(_CORRELATION)
        place = len(who) if place < 0 else place
        who = b"".join((who[:place], _SUCCESS, who[place:]))
    return b"".join((_line_head(*columns), who, line[at:end], _own_hash(digest), line[end:]))


def _own_hash(digest: Any) -> bytes:
    return _bytes(f',"hash":"{digest}"')


def _line_head(session_id: Any, seq: Any, timestamp: Any, kind: Any, workflow_id: Any) -> bytes:
    of = "" if workflow_id is None else f'"workflow":"{workflow_id}",'
    number = f"{seq:06d}" if isinstance(seq, int) else str(seq)
    return _bytes(
        f'{{"id":"AE-{number}","seq":{seq},"ts":"{timestamp}","type":"{kind}","session":"{session_id}",{of}'
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
