"""What going back to a point costs, read from real journals."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast
from holdfast.application.insight.repeats import Doubt, EffectAt, Repeats, StepAt, repeats_of
from holdfast.domain.errors import CheckpointNotFoundError


@pytest.fixture(params=["memory:", "sqlite"])
def service(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    url = request.param if request.param == "memory:" else f"sqlite:{tmp_path}/store.db"
    with holdfast.open(url) as service:
        yield service


def told(service: Any, *events: tuple[str, str, dict[str, Any]]) -> None:
    for kind, step, data in events:
        service.append_event("WF", kind, data, step_id=step, agent_id=step)


def test_a_workflow_without_steps_costs_nothing(service: Any) -> None:
    service.create_checkpoint("WF", {"n": 1})
    assert repeats_of(service._engine.kit, "WF") == Repeats()
    assert repeats_of(service._engine.kit, "WF", 1) == Repeats()


def test_what_was_begun_runs_again_and_what_is_unknown_may_happen_twice(service: Any) -> None:
    service.create_checkpoint("WF", {"n": 1})
    told(
        service,
        ("AGENT_STARTED", "pay", {"attempt": 1}),
        ("EFFECT_STARTED", "pay", {"name": "send", "key": "k1"}),
        ("EFFECT_STARTED", "pay", {"name": "mail", "key": "k2"}),
        ("EFFECT_DONE", "pay", {"name": "mail", "key": "k2", "result": 1}),
    )
    cost = repeats_of(service._engine.kit, "WF")
    assert cost.steps_repeated == (StepAt("pay", None),)
    assert cost.effects_at_risk == (EffectAt("pay", "send", "k1", Doubt.UNKNOWN),)
    assert cost.steps_lost == ()


def test_going_back_loses_results_and_forgets_effects_that_were_not_refused(service: Any) -> None:
    service.create_checkpoint("WF", {"n": 1})
    told(
        service,
        ("AGENT_STARTED", "pay", {"attempt": 1}),
        ("EFFECT_STARTED", "pay", {"name": "send", "key": "k1"}),
        ("EFFECT_DONE", "pay", {"name": "send", "key": "k1", "result": 1}),
        ("EFFECT_STARTED", "pay", {"name": "mail", "key": "k2"}),
        ("EFFECT_DONE", "pay", {"name": "mail", "key": "k2", "status": "failed"}),
        ("AGENT_COMPLETED", "pay", {"attempt": 1, "result": 1}),
    )
    cost = repeats_of(service._engine.kit, "WF", 1)
    [lost] = cost.steps_lost
    assert (lost.step_id, lost.agent) == ("pay", "pay") and lost.event_seq
    [effect] = cost.effects_at_risk
    assert (effect.name, effect.doubt) == ("send", Doubt.FORGOTTEN)
    assert repeats_of(service._engine.kit, "WF") == Repeats()


def test_a_state_of_another_shape_is_no_trouble(service: Any) -> None:
    state = holdfast.WorkflowState("WF")
    state.agent_states = {"a": {"status": "running", "effects": [1]}, "b": {"effects": {"x": "odd"}}}
    service.create_checkpoint("WF", state)
    cost = repeats_of(service._engine.kit, "WF")
    assert cost.steps_repeated == (StepAt("a", None),) and cost.effects_at_risk == ()


def test_what_cannot_be_read_is_said(service: Any) -> None:
    service.create_checkpoint("WF", {"n": 1})
    service.quarantine.put("WF", 1, "damaged")
    for target in (None, 1):
        assert "cannot be told" in repeats_of(service._engine.kit, "WF", target).notes[0]


def test_a_checkpoint_that_is_not_there_is_refused(service: Any) -> None:
    service.create_checkpoint("WF", {"n": 1})
    with pytest.raises(CheckpointNotFoundError):
        repeats_of(service._engine.kit, "WF", 9)
