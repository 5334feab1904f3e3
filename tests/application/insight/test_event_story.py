from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.event_story import (
    _TOLD,
    WORDS_MAX,
    Kind,
    duration_text,
    error_words,
    story_of,
    words,
)
from holdfast.domain.event import Event

MOMENT = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def told(kind: str, data: dict[str, Any] | None = None, **more: Any) -> tuple[Kind, str, str]:
    story = story_of(Event(7, MOMENT, kind, "W", data=data or {}, **more))
    return story.kind, story.text, story.detail


@pytest.mark.parametrize(
    ("kind", "data", "more", "expected"),
    [
        ("CHECKPOINT_CREATED", {}, {"cp_seq": 3}, (Kind.CHECKPOINT, "checkpoint 3 was made", "")),
        ("CHECKPOINT_CREATED", {}, {}, (Kind.CHECKPOINT, "a checkpoint was made", "")),
        (
            "CHECKPOINT_STATUS",
            {"status": "failed", "error_message": "no fuel"},
            {"cp_seq": 5},
            (Kind.FAILURE, "checkpoint 5 is failed: no fuel", ""),
        ),
        (
            "CHECKPOINT_STATUS",
            {"status": "completed"},
            {"cp_seq": 5},
            (Kind.CHECKPOINT, "checkpoint 5 is completed", ""),
        ),
        ("AGENT_STARTED", {"attempt": 1}, {"step_id": "plan"}, (Kind.AGENT, "plan began", "")),
        ("AGENT_STARTED", {"attempt": 2}, {"step_id": "plan"}, (Kind.AGENT, "plan began, attempt 2", "")),
        (
            "AGENT_COMPLETED",
            {"duration_seconds": 12},
            {"step_id": "plan"},
            (Kind.AGENT, "plan is done in 12 s", ""),
        ),
        ("AGENT_COMPLETED", {}, {}, (Kind.AGENT, "somebody is done", "")),
        (
            "AGENT_FAILED",
            {"error": {"type": "ValueError", "message": "no fuel"}, "retries": True},
            {"step_id": "plan"},
            (Kind.FAILURE, "plan failed: ValueError: no fuel", "It is tried again."),
        ),
        (
            "AGENT_SKIPPED",
            {"reason": "empty"},
            {"step_id": "plan"},
            (Kind.AGENT, "plan was not needed: empty", ""),
        ),
        (
            "STAGE_UPDATED",
            {"stage": "one", "state": {"status": "completed"}},
            {},
            (Kind.STAGE, "stage one is completed", ""),
        ),
        ("STAGE_UPDATED", {"stage": "one", "state": 3}, {}, (Kind.STAGE, "stage one changed", "")),
        (
            "EFFECT_STARTED",
            {"name": "mail"},
            {"agent": "a"},
            (Kind.AGENT, "a begins to change something outside: mail", ""),
        ),
        (
            "EFFECT_DONE",
            {"name": "mail"},
            {"agent": "a"},
            (Kind.AGENT, "a changed something outside: mail", ""),
        ),
        ("MILESTONE_REACHED", {"name": "half"}, {"agent": "a"}, (Kind.AGENT, "a reached half", "")),
        (
            "APPROVAL_REQUESTED",
            {"name": "publish", "question": "Publish?"},
            {"step_id": "p"},
            (Kind.APPROVAL, "p asks for publish: Publish?", ""),
        ),
        (
            "APPROVAL_DENIED",
            {"name": "publish", "by": "ann", "note": "not yet"},
            {"step_id": "p"},
            (Kind.APPROVAL, "ann denied publish of p", "not yet"),
        ),
        ("RUN_UPDATED", {"fields": {"status": "in_progress"}}, {}, (Kind.RUN, "the run is in progress", "")),
        (
            "RUN_UPDATED",
            {"fields": {"status": "failed"}, "error": "no disk"},
            {},
            (Kind.FAILURE, "the run is failed: no disk", ""),
        ),
        ("RUN_UPDATED", {"fields": {}}, {}, (Kind.RUN, "the run's settings changed", "")),
        (
            "REQUEST_SETTLED",
            {"kind": "pause", "by": "ann"},
            {},
            (Kind.NOTE, "a request (pause) was carried out for ann", ""),
        ),
        (
            "DECISION_RECORDED",
            {"description": "go", "rationale": "why not", "confidence": 0.5},
            {"agent": "a"},
            (Kind.DECISION, "a decided: go", "Why: why not. Confidence: 50%"),
        ),
        ("REPORT_ADDED", {}, {"agent": "a"}, (Kind.FINDING, "a reported: untitled", "")),
        (
            "WORKFLOW_RECOVERED",
            {"checkpoint": "W@3", "events_replayed": 1200, "reason": "a crash"},
            {},
            (Kind.RECOVERY, "recovered from W@3, 1,200 events replayed", "a crash"),
        ),
        ("WORKFLOW_RECOVERED", {}, {}, (Kind.RECOVERY, "recovered from the beginning", "")),
        (
            "AGENT_STATE_UPDATED",
            {"state": {"progress": 0.5, "doing": "reading"}},
            {"agent": "a"},
            (Kind.AGENT, "a reports (50% done): reading", ""),
        ),
        (
            "STORE_DEGRADED",
            {},
            {},
            (Kind.FAILURE, "the store could not be written to, and less was kept than usual", ""),
        ),
        ("TASK_ASSIGNED", {}, {"agent": "a"}, (Kind.NOTE, "TASK_ASSIGNED of a", "")),
        ("TASK_ASSIGNED", {}, {}, (Kind.NOTE, "TASK_ASSIGNED", "")),
    ],
)
def test_each_event_is_told_in_words(kind, data, more, expected):
    assert told(kind, data, **more) == expected


def test_an_erased_event_says_no_more_than_that():
    assert told("AGENT_FAILED", erased=True)[1] == "AGENT_FAILED: what it said was erased"


@given(
    st.sampled_from([*_TOLD, "ANYTHING"]),
    st.dictionaries(
        st.sampled_from(
            [
                "fields",
                "state",
                "error",
                "status",
                "attempt",
                "confidence",
                "name",
                "duration_seconds",
                "events_replayed",
                "citations",
                "title",
                "question",
                "reason",
                "by",
            ]
        ),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    ),
    st.none() | st.text(min_size=1),
)
def test_whatever_an_event_holds_it_is_told_on_one_line(kind, data, agent):
    _, text, detail = told(kind, data, agent=agent, step_id=agent)
    for line in (text, detail):
        assert "\n" not in line and "\r" not in line and len(line) < 10 * WORDS_MAX


def test_long_words_are_cut():
    assert words("a" * 1000) == "a" * WORDS_MAX + " ..."
    assert words(" a\n\tb ") == "a b"
    assert words(None) == "" and words(3) == "3"
    assert words(" " * 5000 + "b") == " ..."


def test_errors_are_told_whatever_their_shape():
    assert error_words({"message": "gone"}) == "gone"
    assert error_words("gone") == "gone"
    assert error_words(None) == ""


def test_times_are_told_as_people_say_them():
    assert [duration_text(seconds) for seconds in (0.44, 12, 185, 7800)] == [
        "0.4 s",
        "12 s",
        "3 min 5 s",
        "2 h 10 min",
    ]
