"""Entries of the trail: listed, shown, and handed out as they were hashed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from holdfast.application.audit.audit_event import PayloadState, open_payload
from holdfast.application.audit.audit_query import AuditQuery
from holdfast.domain import plainjson
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError
from holdfast.domain.ids import check_session_id, check_workflow_id
from holdfast.domain.note import parse_note
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import decode_entry
from holdfast.domain.treehead import parse_head
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.problems import Refusal
from holdfast.server.totals import Total, total_of

#: So many lines are read at once, and so many at most for one page.
_PORTION = 500
_LOOKED_AT_MAX = 20_000
_LINES_MAX = 2_000
_LINES_BYTES_MAX = 4 * 1024 * 1024
_LINES_TYPE = "application/x-ndjson"
_INDEX_MAX = 2**53

Index = Annotated[int, Meta(ge=0, le=_INDEX_MAX)]


class AuditRow(msgspec.Struct):
    """One entry of the trail, without its payload. What cannot be read has a problem, and little else."""

    index: int
    session_id: str
    seq: int
    id: str
    time: str
    type: str
    actor: str | None
    agent: str | None
    workflow_id: str | None
    outcome: str
    correlation_id: str | None
    facts: dict[str, bool | int | str]
    has_payload: bool
    is_anchored: bool
    problem: str = ""


class AuditPage(msgspec.Struct):
    """Some entries."""

    items: list[AuditRow]
    next_cursor: str | None
    size: int
    anchored: int
    total: Total = UNSET


class AuditDetail(msgspec.Struct):
    """One entry with its payload and the bytes that were hashed."""

    row: AuditRow
    line: str
    payload: Any
    payload_state: str
    prev_hash: str
    hash: str


class EntriesQuery(msgspec.Struct):
    """Which entries."""

    type: str | None = None
    actor: str | None = None
    agent: str | None = None
    workflow: str | None = None
    session: str | None = None
    outcome: Literal["success", "failure", "refused", "unknown"] | None = None
    since: datetime | None = None
    until: datetime | None = None
    order: Literal["newest", "oldest"] = "newest"
    cursor: Annotated[str, Meta(pattern=r"^[0-9]{1,15}$")] | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    count: bool = False


class LinesQuery(msgspec.Struct):
    """From which entry on."""

    start: Index = 0
    limit: Annotated[int, Meta(ge=1, le=_LINES_MAX)] = 500


def entries(desk: Desk, asked: Asked[EntriesQuery, None]) -> AuditPage:
    """List entries, the newest first unless asked otherwise."""
    query, size, anchored = asked.query, desk.kit.store.integrate(), anchored_size(desk)
    if query.session is not None:
        check_session_id(query.session)
    if query.workflow is not None:
        check_workflow_id(query.workflow)
    chosen = AuditQuery(
        query.session,
        (query.type,) if query.type else (),
        _aware(query.since),
        _aware(query.until),
        query.agent,
        query.workflow,
        query.actor,
        query.outcome,
    )
    is_newest = query.order == "newest"
    start = int(query.cursor) if query.cursor is not None else (size if is_newest else 0)
    numbered = _backward(desk, min(start, size)) if is_newest else _forward(desk, start, size)
    rows, position, looked_at = list[AuditRow](), start, 0
    for index, line in numbered:
        looked_at += 1
        position = index if is_newest else index + 1
        if _is_wanted(chosen, line):
            rows.append(row_of(index, line, anchored))
        if len(rows) == query.limit or looked_at == _LOOKED_AT_MAX:
            break
    has_more = position > 0 if is_newest else position < size
    desk.note(AuditType.TRAIL_READ, query.workflow, {"entries": len(rows)})
    cursor = str(position) if has_more and looked_at else None
    return AuditPage(rows, cursor, size, anchored, _total(desk, asked, chosen, size))


def _is_wanted(chosen: AuditQuery, line: bytes) -> bool:
    """Tell whether a line is asked for; one that cannot be read may be."""
    if not any(chosen.candidates([line])):
        return False
    try:
        return chosen.matches(decode_entry(line, None))
    except CheckpointError:
        return True


def _total(desk: Desk, asked: Asked[EntriesQuery, None], chosen: AuditQuery, size: int) -> Total:
    if asked.query.count and chosen == AuditQuery():
        return size
    lines = (line for _, line in _forward(desk, 0, size))
    return total_of((_is_wanted(chosen, line) for line in lines), is_asked=asked.query.count)


def _aware(moment: datetime | None) -> datetime | None:
    """Refuse a moment that could be anywhere in the world."""
    if moment is not None and moment.tzinfo is None:
        raise Refusal(400, "invalid_request", "a moment has a time zone", hint="Write 2026-01-31T12:00:00Z.")
    return moment


def _forward(desk: Desk, first: int, size: int) -> Iterator[tuple[int, bytes]]:
    return enumerate(islice(desk.kit.store.leaves(after=first), max(size - first, 0)), first)


def _backward(desk: Desk, end: int) -> Iterator[tuple[int, bytes]]:
    """Read entries from the last to the first, a portion at a time."""
    while end > 0:
        first = max(end - _PORTION, 0)
        portion = list(enumerate(islice(desk.kit.store.leaves(after=first), end - first), first))
        yield from reversed(portion)
        end = first


def row_of(index: int, line: bytes, anchored: int) -> AuditRow:
    """Read a line; what is damaged is said of it, for it must be seen as such."""
    try:
        entry = decode_entry(line, None)
    except CheckpointError as problem:
        return AuditRow(
            index,
            *("", 0, "", "", "", None, None, None, "unknown", None, {}, False),
            index < anchored,
            problem.message,
        )
    return AuditRow(
        index,
        entry.session_id,
        entry.seq,
        entry.id,
        timestamp_text(entry.timestamp),
        entry.type,
        entry.actor,
        entry.agent,
        entry.workflow_id,
        entry.outcome,
        entry.correlation_id,
        dict(entry.facts),
        bool(entry.payload),
        index < anchored,
    )


def entry(desk: Desk, asked: Asked[None, None]) -> AuditDetail:
    """Answer one entry with its payload, and the bytes that were hashed."""
    index, line = line_at(desk, asked.path["index"])
    row = row_of(index, line, anchored_size(desk))
    desk.note(AuditType.TRAIL_READ, row.workflow_id, {"entries": 1, "index": index})
    text = line.decode("utf-8", "backslashreplace")
    if row.problem:
        return AuditDetail(row, text, None, PayloadState.DAMAGED, "", "")
    found = decode_entry(line, None)
    try:
        state, payload = open_payload(desk.kit, found)
    except CheckpointError as problem:
        row.problem = problem.message
        state, payload = PayloadState.DAMAGED, None
    # Written by what stored it: it may hold what no other writer of JSON knows.
    told = None if payload is None else msgspec.Raw(plainjson.dumps(payload))
    return AuditDetail(row, text, told, state, found.prev_hash, found.hash)


def line_at(desk: Desk, text: str) -> tuple[int, bytes]:
    """Find the entry at an index.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    index = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else -1
    size = desk.kit.store.integrate()
    line = next(iter(desk.kit.store.leaves(after=index)), None) if 0 <= index < size else None
    if line is None:
        raise CheckpointNotFoundError("the log has no such entry", place=text[:40])
    return index, line


def anchored_size(desk: Desk) -> int:
    """Tell how many entries the newest signed head covers; whether it is right is for a verification."""
    note = desk.service.audit.keeper.checkpoint()
    if note is None:
        return 0
    try:
        return parse_head(parse_note(note).text).size
    except CheckpointError:
        return 0


def lines(desk: Desk, asked: Asked[LinesQuery, None]) -> Answer:
    """Answer lines as they were hashed, for whoever verifies them."""
    size = desk.kit.store.integrate()
    found, held = list[bytes](), 0
    for _, line in islice(_forward(desk, asked.query.start, size), asked.query.limit):
        # What is damaged stays one line: those after it would be taken for others.
        found.append(line.rstrip(b"\n").replace(b"\n", b"\0") + b"\n")
        held += len(line)
        if held > _LINES_BYTES_MAX:
            break
    desk.note(AuditType.TRAIL_READ, None, {"entries": len(found), "format": "lines"})
    return Answer(b"".join(found), 200, {"X-Log-Size": str(size)}, _LINES_TYPE)


_NONE_SUCH = {404: "There is no such entry."}

OPERATIONS = (
    Operation(
        "listAuditEntries",
        "GET",
        "/audit/entries",
        Scope.AUDIT_READ,
        "List entries of the trail.",
        entries,
        query=EntriesQuery,
        result=AuditPage,
        tag="audit",
    ),
    Operation(
        "getAuditEntry",
        "GET",
        "/audit/entries/{index}",
        Scope.AUDIT_READ,
        "One entry with its payload.",
        entry,
        result=AuditDetail,
        tag="audit",
        problems=_NONE_SUCH,
    ),
    Operation(
        "readAuditLines",
        "GET",
        "/audit/lines",
        Scope.AUDIT_READ,
        "Entries as they were hashed.",
        lines,
        query=LinesQuery,
        also=(_LINES_TYPE,),
        tag="audit",
    ),
)
