"""Events folded onto a state: each type's meaning, nothing changed in place."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.domain.errors import EventReplayFailedError, InvalidStateError
from holdfast.domain.event import Event
from holdfast.domain.reducers import REDUCERS, check_confidence, reduce

WHEN = datetime(2026, 1, 11, 12, tzinfo=UTC)
STATE: dict[str, Any] = {
    "workflow_id": "W",
    "agent_states": {"a": {"status": "busy", "n": 1}},
    "tasks": [{"id": "T-1", "done": False}, "odd"],
    "messages": ["hello"],
    "context": {"k": 1},
}


def event(type: str, data: dict[str, Any], agent: str | None = None) -> Event:
    return Event(7, WHEN, type, "W", agent=agent, data=data)


@pytest.mark.parametrize(
    ("happened", "name", "value"),
    [
        (
            event("DECISION_RECORDED", {"description": "go", "confidence": 0.9}, "lead"),
            "decisions",
            [{"description": "go", "confidence": 0.9, "ts": "2026-01-11T12:00:00.000000Z", "agent": "lead"}],
        ),
        (
            event("AGENT_STATE_UPDATED", {"state": {"n": 2}}, "a"),
            "agent_states",
            {"a": {"status": "busy", "n": 2}},
        ),
        (
            event("AGENT_STATE_UPDATED", {"state": {"n": 2}}, "b"),
            "agent_states",
            {"a": {"status": "busy", "n": 1}, "b": {"n": 2}},
        ),
        (event("MESSAGE_ADDED", {"message": "bye"}), "messages", ["hello", "bye"]),
        (
            event("TASK_UPDATED", {"task": {"id": "T-1", "done": True}}),
            "tasks",
            [{"id": "T-1", "done": True}, "odd"],
        ),
        (
            event("TASK_UPDATED", {"task": {"id": "T-2"}}),
            "tasks",
            [{"id": "T-1", "done": False}, "odd", {"id": "T-2"}],
        ),
        (event("OUTPUT_RECORDED", {"value": 3}), "outputs", [3]),
        (event("CONTEXT_UPDATED", {"context": {"k": 2, "new": True}}), "context", {"k": 2, "new": True}),
    ],
)
def test_each_type_has_its_meaning(happened: Event, name: str, value: Any) -> None:
    before = copy.deepcopy(STATE)
    assert reduce(STATE, [happened]) == {**STATE, name: value}
    assert before == STATE


def test_outputs_that_are_an_object_are_set_by_name() -> None:
    happened = event("OUTPUT_RECORDED", {"name": "report", "value": 3})
    assert reduce({"outputs": {"other": 1}}, [happened]) == {"outputs": {"other": 1, "report": 3}}


def test_other_events_change_nothing() -> None:
    assert reduce(STATE, [event("CHECKPOINT_CREATED", {}), event("ANYTHING", {"x": 1})]) == STATE


def test_events_are_folded_in_order_and_reducers_can_be_replaced() -> None:
    events = [event("MESSAGE_ADDED", {"message": number}) for number in range(3)]
    assert reduce({}, events) == {"messages": [0, 1, 2]}
    assert reduce(
        {}, events, {"MESSAGE_ADDED": lambda fields, happened: {"last": happened.data["message"]}}
    ) == {"last": 2}


@pytest.mark.parametrize("type", sorted(set(REDUCERS) - {"DECISION_RECORDED"}))
def test_an_event_that_does_not_fit_names_itself(type: str) -> None:
    with pytest.raises(EventReplayFailedError, match="event 7"):
        reduce(
            {"agent_states": 1, "tasks": 1, "messages": 1, "outputs": 1, "context": 1}, [event(type, {}, "a")]
        )


def test_a_report_without_its_agent_does_not_fit() -> None:
    with pytest.raises(EventReplayFailedError, match="names no agent"):
        reduce({}, [event("AGENT_STATE_UPDATED", {"state": {}})])


@pytest.mark.parametrize("value", [7, -0.1, float("nan")])
def test_a_confidence_is_from_nought_to_one(value: float) -> None:
    with pytest.raises(InvalidStateError, match="is no confidence"):
        check_confidence(value, "W")
    for known in (None, 0, 0.5, 1):
        check_confidence(known)
