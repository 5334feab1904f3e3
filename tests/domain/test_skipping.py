"""What is left of an agent is what has no result; states of applications are no graphs."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.skipping import agent_of, known_agents, steps_to_skip

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
