"""What a run records means the same whether it is folded in while it happens or replayed by recovery."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.event import Event
from holdfast.domain.reducers import AGENT_STATE_EVENT, DECISION_EVENT, REDUCERS, reduce
from holdfast.domain.replay import replay
from holdfast.domain.run_events import (
    AGENT_COMPLETED,
    AGENT_FAILED,
    AGENT_SKIPPED,
    AGENT_STARTED,
    APPROVAL_DENIED,
    APPROVAL_GRANTED,
    APPROVAL_REQUESTED,
    EFFECT_DONE,
    EFFECT_STARTED,
    MILESTONE_REACHED,
    REQUEST_SETTLED,
    RUN_REDUCERS,
    RUN_UPDATED,
    STAGE_UPDATED,
    added,
    open_questions,
)

WHEN = datetime(2026, 1, 11, 12, tzinfo=UTC)
ALL = {**REDUCERS, **RUN_REDUCERS}
STEPS = ("plan", "research[0]", "draft#2", "write>calc", "Übersicht")


def event(seq: int, type: str, data: Any, step_id: str | None = "plan", agent: str | None = "plan") -> Event:
    return Event(
        seq, WHEN + timedelta(seconds=seq), type, "W", agent=agent, step_id=step_id, data=copy.deepcopy(data)
    )


def folded(*told: tuple[str, Any], fields: dict[str, Any] | None = None) -> dict[str, Any]:
    events = [event(number, type, data) for number, (type, data) in enumerate(told, 1)]
    return reduce(fields or {}, events, ALL)


scalars = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3))
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from(["a", "b", "effect:a"])
objects = st.dictionaries(st.sampled_from(["x", "y", "status"]), values, max_size=2)
attempts = st.integers(1, 3)
confidences = st.floats(0, 1)
NOTES = {
    "result": values,
    "messages": st.lists(values, max_size=2),
    "outputs": st.lists(values, max_size=2),
    "context": objects,
    "metrics": st.dictionaries(names, st.integers() | st.floats(allow_nan=False) | scalars, max_size=2),
    "artifacts": st.lists(values, max_size=2),
    "confidence": confidences,
    "duration_seconds": confidences,
}
ledgers = st.fixed_dictionaries(
    {"name": names, "key": st.just("k")}, optional={"result": values, "status": st.just("failed")}
)
SHAPES: dict[str, Any] = {
    AGENT_STARTED: st.fixed_dictionaries({"attempt": attempts}),
    AGENT_COMPLETED: st.fixed_dictionaries({"attempt": attempts}, optional=NOTES),
    AGENT_FAILED: st.fixed_dictionaries(
        {"attempt": attempts}, optional={"error": objects, "confidence": confidences}
    ),
    AGENT_SKIPPED: st.fixed_dictionaries({"reason": st.text(max_size=3)}),
    STAGE_UPDATED: st.fixed_dictionaries({"stage": names, "state": objects}, optional={"phase": attempts}),
    EFFECT_STARTED: ledgers,
    EFFECT_DONE: ledgers,
    MILESTONE_REACHED: st.fixed_dictionaries({"name": names, "state": values}, optional={"partial": values}),
    APPROVAL_REQUESTED: st.fixed_dictionaries({"name": names}, optional={"status": scalars}),
    APPROVAL_GRANTED: st.fixed_dictionaries(
        {"name": names}, optional={"value": values, "by": st.just("ann")}
    ),
    APPROVAL_DENIED: st.fixed_dictionaries({"name": names}, optional={"note": values}),
    RUN_UPDATED: st.fixed_dictionaries({"fields": st.fixed_dictionaries({}, optional={"status": names})}),
    REQUEST_SETTLED: st.fixed_dictionaries({"id": names}),
    AGENT_STATE_EVENT: st.fixed_dictionaries({"state": objects}),
    DECISION_EVENT: st.fixed_dictionaries({"description": names}),
}
happenings = st.sampled_from(sorted(SHAPES)).flatmap(
    lambda type: st.tuples(st.just(type), SHAPES[type], st.sampled_from(STEPS))
)
journals = st.lists(happenings, max_size=25).map(
    lambda told: [
        event(seq, type, data, step, agent=step if type == AGENT_STATE_EVENT else "plan")
        for seq, (type, data, step) in enumerate(told, 1)
    ]
)


def one_by_one(fields: dict[str, Any], events: list[Event]) -> dict[str, Any]:
    """What a run does while it happens."""
    for happened in events:
        fields = ALL[happened.type](fields, happened)
    return fields


@given(journals)
def test_folding_while_it_happens_is_what_recovery_replays(events: list[Event]) -> None:
    live = one_by_one({"workflow_id": "W"}, events)
    recovered = replay({"workflow_id": "W"}, events, ALL)
    assert recovered.skipped == ()
    assert recovered.fields == live


@given(journals, st.integers(0, 25))
def test_it_does_not_matter_where_a_checkpoint_was_made(events: list[Event], cut: int) -> None:
    checkpoint = one_by_one({}, events[:cut])
    assert replay(checkpoint, events[cut:], ALL).fields == one_by_one({}, events)


@given(journals)
def test_a_state_that_was_handed_out_never_changes(events: list[Event]) -> None:
    fields: dict[str, Any] = {}
    for happened in events:
        before, data = copy.deepcopy(fields), copy.deepcopy(happened.data)
        after = ALL[happened.type](fields, happened)
        assert (fields, happened.data) == (before, data)
        fields = after


def test_a_result_comes_with_everything_its_agent_said() -> None:
    told = {
        "attempt": 2,
        "result": {"n": 1},
        "duration_seconds": 0.5,
        "messages": ["hello"],
        "outputs": ["out"],
        "context": {"topic": "kelp"},
        "metrics": {"tokens": 3},
        "artifacts": ["file"],
        "confidence": 0.7,
    }
    state = folded(
        (AGENT_STARTED, {"attempt": 2}), (AGENT_COMPLETED, told), fields={"metrics": {"tokens": 1}}
    )
    assert state["tasks"] == [
        {
            "id": "plan",
            "agent": "plan",
            "result": {"n": 1},
            "attempt": 2,
            "ended_at": "2026-01-11T12:00:02.000000Z",
            "duration_seconds": 0.5,
        }
    ]
    assert (state["messages"], state["outputs"]) == (["hello"], ["out"])
    assert (state["context"], state["metrics"]) == ({"topic": "kelp"}, {"tokens": 4})
    assert (state["confidence"], state["current_step"]) == ({"plan": 0.7}, 1)
    assert state["agent_states"]["plan"] == {
        "status": "completed",
        "attempt": 2,
        "artifacts": ["file"],
        "confidence": 0.7,
    }


def test_what_an_agent_needed_on_the_way_is_gone_once_it_is_done() -> None:
    state = folded(
        (AGENT_STARTED, {"attempt": 1}),
        (EFFECT_STARTED, {"name": "send", "key": "k"}),
        (MILESTONE_REACHED, {"name": "half", "state": 1}),
        (AGENT_STATE_EVENT, {"state": {"progress": 0.5, "doing": "reading"}}),
        (AGENT_COMPLETED, {"attempt": 1, "result": None}),
    )
    assert state["agent_states"]["plan"] == {"status": "completed", "attempt": 1, "progress": 0.5}


def test_a_failed_attempt_leaves_its_error_and_its_confidence_only() -> None:
    failed = {
        "attempt": 1,
        "error": {"type": "OSError"},
        "confidence": 0.8,
        "messages": ["lost"],
        "outputs": [1],
    }
    state = folded((AGENT_STARTED, {"attempt": 1}), (AGENT_FAILED, failed))
    assert state == {
        "agent_states": {"plan": {"status": "failed", "attempt": 1, "error": {"type": "OSError"}}},
        "confidence": {"plan": 0.8},
    }


def test_the_next_attempt_finds_what_the_one_before_left() -> None:
    state = folded(
        (AGENT_STARTED, {"attempt": 1}),
        (MILESTONE_REACHED, {"name": "half", "state": {"page": 3}}),
        (AGENT_FAILED, {"attempt": 1}),
        (AGENT_STARTED, {"attempt": 2}),
    )
    known = state["agent_states"]["plan"]
    assert (known["status"], known["attempt"]) == ("running", 2)
    assert known["milestone"] == {"name": "half", "state": {"page": 3}}


def test_one_confidence_for_all_gives_way_to_one_for_each() -> None:
    assert folded((AGENT_FAILED, {"attempt": 1, "confidence": 0.4}), fields={"confidence": 0.9}) == {
        "agent_states": {"plan": {"status": "failed", "attempt": 1}},
        "confidence": {"plan": 0.4},
    }


def test_a_skipped_agent_says_why() -> None:
    state = folded((AGENT_SKIPPED, {"reason": "not needed"}))
    assert state["agent_states"]["plan"] == {"status": "skipped", "reason": "not needed"}


def test_nobody_waits_for_what_a_skipped_agent_asked() -> None:
    asked = {"name": "go", "question": "?"}
    told = [
        event(1, APPROVAL_REQUESTED, {**asked, "name": "before"}),
        event(2, APPROVAL_GRANTED, {"name": "before"}),
        event(3, APPROVAL_REQUESTED, asked),
        event(4, APPROVAL_REQUESTED, asked, step_id="plan>look"),
        event(5, APPROVAL_REQUESTED, asked, step_id="planner"),
    ]
    state = reduce({}, [*told, event(6, AGENT_SKIPPED, {"reason": "no"})], ALL)
    assert [step for step, _, _ in open_questions(state)] == ["planner"]
    assert list(state["agent_states"]["plan"]["approvals"]) == ["before"]
    # What began again asks again, and is heard.
    again = reduce(state, [event(7, APPROVAL_REQUESTED, asked)], ALL)
    assert ("plan", "go") in [question[:2] for question in open_questions(again)]


def test_what_is_known_of_a_stage_grows() -> None:
    state = folded(
        (STAGE_UPDATED, {"stage": "s", "state": {"wanted": True}}),
        (STAGE_UPDATED, {"stage": "s", "state": {"status": "completed"}, "phase": 2}),
        (STAGE_UPDATED, {"stage": "t", "state": {"wanted": False}}),
    )
    assert state["stage_states"] == {"s": {"wanted": True, "status": "completed"}, "t": {"wanted": False}}
    assert state["phase"] == 2


def test_the_ledger_tells_effects_apart() -> None:
    state = folded(
        (EFFECT_STARTED, {"name": "a", "key": "1"}),
        (EFFECT_STARTED, {"name": "b", "key": "2"}),
        (EFFECT_DONE, {"name": "a", "key": "1", "result": 7}),
    )
    assert state["agent_states"]["plan"]["effects"] == {
        "a": {"name": "a", "key": "1", "status": "done", "result": 7},
        "b": {"name": "b", "key": "2", "status": "started"},
    }


@pytest.mark.parametrize(("type", "status"), [(APPROVAL_GRANTED, "granted"), (APPROVAL_DENIED, "denied")])
def test_an_answer_joins_its_question(type: str, status: str) -> None:
    asked = folded((APPROVAL_REQUESTED, {"name": "go", "question": "Go?"}))
    assert asked["agent_states"]["plan"]["approvals"]["go"]["status"] == "waiting"
    state = folded((type, {"name": "go", "by": "ann"}), fields=asked)
    assert state["agent_states"]["plan"]["approvals"]["go"] == {
        "name": "go",
        "question": "Go?",
        "by": "ann",
        "status": status,
        "asked_at": asked["agent_states"]["plan"]["approvals"]["go"]["asked_at"],
    }


def test_no_question_answers_itself() -> None:
    state = folded((APPROVAL_REQUESTED, {"name": "go", "status": "granted"}))
    assert state["agent_states"]["plan"]["approvals"]["go"]["status"] == "waiting"


def test_the_last_hundred_requests_are_remembered() -> None:
    state = folded(*((REQUEST_SETTLED, {"id": f"r{number}"}) for number in range(120)))
    assert state["metadata"]["settled_requests"] == [f"r{number}" for number in range(20, 120)]


def test_the_run_as_a_whole_is_set() -> None:
    assert folded((RUN_UPDATED, {"fields": {"status": "paused"}}), fields={"status": "x", "n": 1}) == {
        "status": "paused",
        "n": 1,
    }


@pytest.mark.parametrize("type", sorted(RUN_REDUCERS))
@pytest.mark.parametrize("step_id", [None, "plan"])
def test_events_of_an_application_under_the_same_type_change_nothing(type: str, step_id: str | None) -> None:
    foreign = event(1, type, {"mine": 1}, step_id)
    assert RUN_REDUCERS[type]({"n": 1}, foreign) == {"n": 1}


def test_numbers_are_added_up_and_everything_else_replaces() -> None:
    known = {"tokens": 2, "model": "a", "ready": True, "cost": 0.5}
    more = {"tokens": 3, "model": "b", "ready": 1, "cost": 0.25, "calls": 1}
    assert added(known, more) == {"tokens": 5, "model": "b", "ready": 1, "cost": 0.75, "calls": 1}
    assert known["tokens"] == 2
