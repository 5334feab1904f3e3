"""Looking at the bytes first never hides what is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.audit.audit_query import AuditQuery
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.trail import chain, decode_entry

START = datetime(2026, 1, 11, 12, tzinfo=UTC)
names = st.sampled_from(["a", "b", 'q"', "\u00e4", "x\\", "a b"])
moments = st.integers(0, 4).map(lambda seconds: START + timedelta(seconds=seconds))


@st.composite
def entries(draw: st.DrawFn) -> AuditEntry:
    return AuditEntry(
        draw(moments),
        draw(st.sampled_from(["NOTED", "DECIDED"])),
        draw(names),
        draw(st.none() | names),
        draw(st.none() | names),
        draw(st.none() | names),
        draw(st.sampled_from(["success", "failure"])),
        facts={"type": draw(names), "agent": draw(names)},
    )


queries = st.builds(
    AuditQuery,
    session_id=st.none() | names,
    event_types=st.lists(st.sampled_from(["NOTED", "DECIDED", "SESSION_STARTED"])).map(tuple),
    after=st.none() | moments,
    before=st.none() | moments,
    agent=st.none() | names,
    workflow=st.none() | names,
    actor=st.none() | names,
    outcome=st.none() | st.sampled_from(["success", "failure"]),
)


@given(st.lists(entries(), max_size=8), queries)
def test_candidates_hold_everything_that_matches(told: list[AuditEntry], query: AuditQuery) -> None:
    heads: dict[str, TrailHead] = {}
    lines = []
    for entry in told:
        for record in chain([entry], lambda name: heads.get(name) or TrailHead(name)):
            heads[record.head.session_id] = record.head
            lines.append(record.data)
    wanted = [line for line in lines if query.matches(decode_entry(line, None))]
    found = [line for line in query.candidates(lines) if query.matches(decode_entry(line, None))]
    assert found == wanted


def test_no_wish_is_met_by_everything() -> None:
    [start, entry] = chain([AuditEntry(START, "NOTED", "s")], TrailHead)
    assert list(AuditQuery().candidates([start.data, entry.data])) == [start.data, entry.data]


def test_most_lines_are_passed_over_by_their_bytes() -> None:
    [start, entry] = chain([AuditEntry(START, "NOTED", "s", "W")], TrailHead)
    lines = [start.data, entry.data, b"not even a line\n"]
    assert list(AuditQuery(workflow="W").candidates(lines)) == [entry.data]
    assert list(AuditQuery(event_types=("NOTED",)).candidates(lines)) == [entry.data]
