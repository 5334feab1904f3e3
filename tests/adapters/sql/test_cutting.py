"""What is cut out of stored bytes comes back from the columns, to the byte; what does not fit stays whole."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.sql import cutting
from holdfast.application.records import Body, build
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.audit_type import Outcome
from holdfast.domain.checkpoint import usual_type
from holdfast.domain.event import Event, encode_event
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Entry, EventRecord, Record
from holdfast.domain.trail import encode_entry

FIELDS: dict[str, Any] = {"stage": "research", "agent": "worker-1", "session": "s-1", "phase": 2}
ODD = ('a"b', "a\\b", "größe", "a\nb", "\U0001f600")


def make(
    workflow_id: str = "W",
    payload: bytes = b"",
    kind: str = "stage_complete",
    *,
    is_old: bool = False,
    **about: Any,
) -> Record:
    """Write a record as a checkpoint does, or did; `about` may have fields that are no columns."""
    columns = {name: about[name] for name in FIELDS if name in about}
    fields = {
        "seq": 7,
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "wf": workflow_id,
        "ts": "2026-01-11T14:30:00.000000Z",
        "type": kind if is_old or kind != usual_type(about.get("agent")) else None,
        "stage": about.get("stage"),
        "agent": about.get("agent"),
        "agent_version": about.get("agent_version"),
        "session": about.get("session"),
        "parent": about.get("parent"),
        "phase": about.get("phase"),
        "size": 20480,
        "events": about.get("events"),
        "event_seq": 31,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    data, checksum = build(plainjson.dumps(given)[:-1], Body(b',"ops":[{"op":"set"}]', payload), GENESIS)
    entry = Entry(
        7,
        fields["id"],
        fields["ts"],
        kind,
        checksum,
        6,
        1,
        len(data),
        20480,
        event_seq=31,
        **columns,
    )
    return Record(entry, data)


def row_of(record: Record, stored: bytes) -> tuple[Any, ...]:
    names = (*cutting.RECORD_NAMES[:-1],)
    return (*(getattr(record.entry, name) for name in names), stored)


def whole(workflow_id: str, record: Record, stored: bytes) -> bytes:
    return cutting.whole_record(workflow_id, row_of(record, stored), stored)


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"session": "s-1"},
        FIELDS,
        {**FIELDS, "agent_version": "2"},
        {**FIELDS, "parent": "sha256:1"},
        {**FIELDS, "events": 3},
        {"payload": b"\x00bytes\n\xff\n"},
        {"kind": "workflow_start"},
        {**FIELDS, "kind": "agent_complete"},
        {**FIELDS, "kind": "agent_complete", "is_old": True},
        *({"session": odd} for odd in ODD),
        *({"stage": odd} for odd in ODD),
    ],
)
def test_a_record_comes_back_as_it_was(about: dict[str, Any]) -> None:
    record = make(**about)
    stored = cutting.cut_record("W", record)
    assert len(stored) < len(record.data) - 150
    assert record.entry.checksum.encode() not in stored
    assert isinstance(json.loads(stored[: stored.find(b"\n")]), dict)
    assert whole("W", record, stored) == record.data


@pytest.mark.parametrize("workflow_id", ODD)
def test_a_record_of_a_workflow_with_an_odd_name_comes_back_too(workflow_id: str) -> None:
    record = make(workflow_id)
    assert whole(workflow_id, record, cutting.cut_record(workflow_id, record)) == record.data


def test_what_is_not_the_record_of_its_entry_is_stored_whole() -> None:
    record = make(**FIELDS)
    for data in (b"", b"no line", b"any\n", b'{"seq":7}\n', record.data[1:], record.data[:-1]):
        other = Record(replace(record.entry, length=len(data)), data)
        assert cutting.cut_record("W", other) == data
        assert whole("W", other, data) == data
    for entry in (replace(record.entry, uuid="other"), replace(record.entry, checksum="sha256:0")):
        assert cutting.cut_record("W", Record(entry, record.data)) == record.data
    assert cutting.cut_record("V", record) == record.data


def test_damage_is_given_as_it_is_stored() -> None:
    record = make(**FIELDS)
    stored = cutting.cut_record("W", record)
    for damaged in (stored + b" ", stored[:-1], b"", b"\n"):
        assert whole("W", record, damaged) == damaged
    # A column that was changed gives other bytes, or no whole ones: the checksum tells.
    for change in (
        {"uuid": "x" * 36},
        {"session": "s-22"},
        {"session": None},
        {"phase": None},
        {"checksum": ""},
    ):
        changed = Record(replace(record.entry, **change), record.data)
        assert whole("W", changed, stored) != record.data


def event(data: bytes | None = None) -> EventRecord:
    digest = "sha256:" + "a" * 64
    line = f'{{"seq":4,"ts":"T","type":"X","wf":"W","data":{{"hash":"b"}},"hash":"{digest}"}}\n'.encode()
    return EventRecord(4, "T", digest, line if data is None else data)


@pytest.mark.parametrize("workflow_id", ["W", *ODD])
@pytest.mark.parametrize(
    "given", [{}, {"agent": "a", "cp_seq": 2}, {"data": {"wf": "W", "hash": "h", "seq": 1}}]
)
@pytest.mark.parametrize("kind", ["NOTED", 'x"y', ""])
def test_any_event_comes_back_as_it_was(workflow_id: str, kind: str, given: dict[str, Any]) -> None:
    at = datetime(2026, 1, 11, 12, tzinfo=UTC)
    one = encode_event(Event(3, at, kind, workflow_id, **given), GENESIS)
    stored = cutting.cut_event(workflow_id, one)
    assert cutting.whole_event(workflow_id, (one.seq, one.timestamp, one.hash, stored), stored) == one.data


def test_an_event_comes_back_as_it_was() -> None:
    one = event()
    stored = cutting.cut_event("W", one)
    assert stored == b'{"type":"X","data":{"hash":"b"}}'
    assert cutting.whole_event("W", (one.seq, one.timestamp, one.hash, stored), stored) == one.data


@pytest.mark.parametrize(
    "data", [b"", b"any", event().data[:-1], event().data.replace(b'"seq":4', b'"seq":5')]
)
def test_other_events_are_stored_whole(data: bytes) -> None:
    one = event(data)
    assert cutting.cut_event("W", one) == data
    assert cutting.whole_event("W", (one.seq, one.timestamp, one.hash, data), data) == data
    # One of before, beside columns that say the same.
    assert cutting.whole_event("W", (4, "T", event().hash, event().data), event().data) == event().data


def entry_of(session_id: str, workflow_id: str | None, *, is_first: bool) -> AuditEntry:
    kind = "SESSION_STARTED" if is_first else "NOTED"
    at = datetime(2026, 1, 11, 12, tzinfo=UTC)
    return AuditEntry(at, kind, session_id, workflow_id, facts={"n": 1})


def line_row(record: AuditRecord, stored: bytes) -> tuple[Any, ...]:
    head = record.head
    return (head.session_id, head.seq, head.timestamp, record.type, record.workflow_id, head.hash, stored)


WORDS: tuple[dict[str, Any], ...] = (
    {},
    {"n": 1},
    {"outcome": "success", "hash": "x", "prev_hash": "y", "correlation": "z"},
)


@pytest.mark.parametrize("workflow_id", [None, "W", *ODD])
@pytest.mark.parametrize("session_id", ["s-1", *ODD])
@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize(
    "given", [{}, {"actor": "ann"}, {"correlation_id": "c"}, {"agent": '"outcome":"success",'}]
)
def test_an_entry_comes_back_as_it_was(
    session_id: str, workflow_id: str | None, outcome: Outcome, given: dict[str, Any]
) -> None:
    head = TrailHead(session_id)
    for facts in WORDS:
        entry = entry_of(session_id, workflow_id, is_first=not head.seq)
        record = encode_entry(replace(entry, outcome=outcome, facts=facts, **given), head)
        stored = cutting.cut_line(record)
        assert cutting.whole_line(line_row(record, stored), stored) == record.data
        head = record.head


def test_of_an_entry_only_what_no_column_says_is_stored() -> None:
    record = encode_entry(entry_of("s-1", "W", is_first=True), TrailHead("s-1"))
    stored = cutting.cut_line(record)
    assert stored == b'{"prev_hash":"GENESIS","data":{"n":1}}\n'
    # One of before is told by its beginning.
    assert cutting.whole_line(line_row(record, record.data), record.data) == record.data


def test_an_entry_with_an_id_of_its_own_is_stored_whole() -> None:
    given = replace(entry_of("s-1", "W", is_first=True), id="AE-550e8400-e29b-41d4-a716-446655440000")
    record = encode_entry(given, TrailHead("s-1"))
    assert cutting.cut_line(record) == record.data
    stepped = encode_entry(
        replace(given, id="", type="SESSION_STARTED"),
        TrailHead("s-1", timestamp="2027-01-11T12:00:00.000000Z"),
    )
    assert b'"clock":' in stepped.data and cutting.cut_line(stepped) == stepped.data


_TEXTS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
_LOOKALIKES = (*ODD, '"hash":"', ',"wf":"W"', '"type":"X"', '"outcome":"success",')
_NAMES = st.one_of(_TEXTS, st.sampled_from(_LOOKALIKES))
_DATA = st.dictionaries(_NAMES, st.one_of(_NAMES, st.integers(), st.none()), max_size=3)


@given(_NAMES, st.fixed_dictionaries({}, optional=dict.fromkeys(("stage", "agent", "session"), _NAMES)))
def test_every_record_comes_back(workflow_id: str, about: dict[str, Any]) -> None:
    record = make(workflow_id, **about)
    assert whole(workflow_id, record, cutting.cut_record(workflow_id, record)) == record.data


@given(_NAMES, _NAMES, st.none() | _NAMES, _DATA)
def test_every_event_comes_back(workflow_id: str, kind: str, agent: str | None, data: dict[str, Any]) -> None:
    moment = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
    one = encode_event(Event(3, moment, kind, workflow_id, agent, data=data), GENESIS)
    stored = cutting.cut_event(workflow_id, one)
    row = (one.seq, one.timestamp, one.hash, stored)
    assert cutting.whole_event(workflow_id, row, stored) == one.data


@given(_NAMES, st.none() | _NAMES, st.none() | _NAMES, st.none() | _NAMES, st.sampled_from(Outcome), _NAMES)
def test_every_entry_comes_back(
    session_id: str,
    workflow_id: str | None,
    agent: str | None,
    correlation: str | None,
    outcome: Outcome,
    fact: str,
) -> None:
    moment = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
    told = AuditEntry(
        moment,
        "SESSION_STARTED",
        session_id,
        workflow_id,
        agent,
        outcome=outcome,
        correlation_id=correlation,
        facts={"fact": fact},
    )
    record = encode_entry(told, TrailHead(session_id))
    stored = cutting.cut_line(record)
    head = record.head
    row = (session_id, head.seq, head.timestamp, record.type, record.workflow_id, head.hash, stored)
    assert cutting.whole_line(row, stored) == record.data
