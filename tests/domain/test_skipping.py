"""What is left of an agent is what has no result; states of applications are no graphs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.run_events import open_questions
from holdfast.domain.skipping import (
    agent_of,
    is_freed,
    is_loop_ahead,
    is_skipped,
    known_agents,
    steps_to_skip,
    with_skipped,
)

STATE: dict[str, Any] = {
    "dag_structure": {
        "stages": [
            {"name": "plan", "agents": [{"name": "plan"}]},
            {"name": "research", "agents": [{"name": "research"}]},
            {"name": "polish", "agents": [{"name": "draft"}, {"name": "judge"}]},
            {"name": "write", "agents": [{"name": "write"}]},
        ],
        "limits": {"polish": 3},
    },
    "agent_states": {
        "plan": {"status": "completed"},
        "research[a]": {"status": "failed"},
        "research[a]>look#1": {"status": "running"},
        "research[b]": {"status": "completed"},
        "draft": {"status": "completed"},
        "draft#2": {"status": "running"},
    },
    "stage_states": {"research": {"items": {"research": [{"key": "a"}, {"key": "b"}, {"key": "c"}]}}},
    "tasks": [{"id": "plan", "result": 1}, {"id": "own"}],
}


def test_a_step_is_that_of_its_agent() -> None:
    names = ("write", "write[a]", "write#2", "write[a#b]>look#1")
    assert {agent_of(name) for name in names} == {"write"}


@pytest.mark.parametrize(
    ("agent", "steps"),
    [
        ("plan", ()),
        ("research", ("research[a]", "research[c]")),
        ("draft", ("draft#2",)),
        ("judge", ()),
        ("write", ("write",)),
        ("nobody", ()),
    ],
)
def test_what_has_no_result_is_left(agent: str, steps: tuple[str, ...]) -> None:
    assert steps_to_skip(STATE, agent) == steps


def test_agents_are_known_by_the_graph_or_by_having_been_at_work() -> None:
    assert known_agents(STATE) == ["plan", "research", "draft", "judge", "write"]
    assert known_agents({"agent_states": {"helper#2": {}}}) == ["helper"]


def test_items_that_are_not_settled_are_skipped_as_one() -> None:
    assert steps_to_skip({**STATE, "agent_states": {}, "stage_states": {}}, "research") == ("research",)


@pytest.mark.parametrize("own", [{}, {"dag_structure": 3, "agent_states": [1], "tasks": "x"}, {"tasks": [7]}])
def test_a_state_of_another_kind_knows_no_agent(own: dict[str, Any]) -> None:
    assert known_agents(own) == [] and steps_to_skip(own, "a") == ()
    assert not is_skipped(own, "a") and not is_loop_ahead(own, "a") and not is_freed(own, ())


def test_what_is_skipped_is_nothing_to_do_any_more() -> None:
    steps = steps_to_skip(STATE, "research")
    skipped = with_skipped(STATE, steps, {"reason": "no"})
    assert steps_to_skip(skipped, "research") == () and is_skipped(skipped, "research")
    assert skipped["agent_states"]["research[c]"] == {"status": "skipped", "reason": "no"}
    assert not is_skipped(STATE, "research") and "research[c]" not in STATE["agent_states"]


def test_a_loop_is_ahead_until_one_of_its_agents_begins() -> None:
    assert not is_loop_ahead(STATE, "judge") and not is_loop_ahead(STATE, "write")
    ahead = {**STATE, "agent_states": {"plan": {"status": "completed"}}}
    assert is_loop_ahead(ahead, "judge") and is_loop_ahead(ahead, "draft")
    left = {**ahead, "stage_states": {"polish": {"status": "skipped"}}}
    assert not is_loop_ahead(left, "judge")


def test_a_run_waits_until_its_last_question_is_gone() -> None:
    asked = {"status": "running", "approvals": {"go": {"status": "waiting"}}}
    state = {"status": "waiting", "agent_states": {"a": asked, "b": asked}}
    assert not is_freed(state, ["a"]) and is_freed(state, ["a", "b"])
    assert with_skipped(state, ["a"], {})["status"] == "waiting"
    freed = with_skipped(state, ["a", "b"], {})
    assert freed["status"] == "in_progress" and open_questions(freed) == []
