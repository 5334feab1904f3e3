"""What steps said is taken back, and what others said stays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast.domain.event import Event
from holdfast.domain.reducers import DECISION_EVENT, add_decision
from holdfast.domain.run_events import AGENT_COMPLETED, complete_agent
from holdfast.domain.unsaid import unsaid

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(seq: int, step: str, type: str = AGENT_COMPLETED, **data: Any) -> Event:
    return Event(seq=seq, workflow_id="w", type=type, timestamp=NOW, data=data, agent=step, step_id=step)


def folded(*events: Event, **fields: Any) -> dict[str, Any]:
    state = dict(fields)
    for one in events:
        state = add_decision(state, one) if one.type == DECISION_EVENT else complete_agent(state, one)
    return state


FIRST = event(
    1,
    "a",
    outputs=["x", "x"],
    messages=["m"],
    metrics={"tokens": 1, "usd": 0.1},
    context={"k": 1},
    confidence=1,
)
DECIDED = event(2, "b", DECISION_EVENT, description="two")
SECOND = event(
    3,
    "b",
    outputs=["x", "y"],
    messages=["n"],
    metrics={"tokens": 2, "usd": 0.2, "model": "m"},
    context={"k": 2, "own": 3},
    confidence=0.5,
)


def test_a_state_is_as_if_some_steps_had_said_nothing() -> None:
    state = unsaid(folded(FIRST, DECIDED, SECOND), [FIRST, DECIDED, SECOND], lambda step: step == "b")
    alone = folded(FIRST)
    names = ("outputs", "messages", "metrics", "context", "confidence")
    assert {name: state[name] for name in names} == {name: alone[name] for name in names}
    assert state["decisions"] == []


def test_what_nobody_of_the_run_said_stays() -> None:
    before = {
        "outputs": ["own"],
        "metrics": {"tokens": 10, "elapsed_seconds": 1.5},
        "context": {"inputs": {"n": 1}},
        "confidence": 0.7,
    }
    folded_again = {**folded(FIRST, **before), "confidence": 0.7, "decisions": {"mine": 1}}
    state = unsaid(folded_again, [FIRST], lambda step: True)
    assert {name: state[name] for name in before} == {
        **before,
        "metrics": {"tokens": 10, "elapsed_seconds": 1.5},
    }
    assert state["decisions"] == {"mine": 1}
