"""Runs that the documents tell of, from their beginning to their end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AgentFailedError, RunOptions, Workflow
from holdfast.domain.time import timestamp_text
from holdfast.execution.context import Context
from tests.execution.runs import chain, kinds, latest, opened, run


def test_a_workflow_of_three_stages_that_fails_in_the_second_is_recovered_and_completes(
    tmp_path: Path,
) -> None:
    calls: list[str] = []
    broken = [True]
    workflow = Workflow("three stages")

    def agent(name: str, *before: str) -> Any:
        def work(ctx: Context) -> str:
            calls.append(name)
            if name == "check" and broken:
                raise RuntimeError("the reviewer is gone")
            return name + "".join(f" after {ctx.result(one)}" for one in before)

        return work

    workflow.sequential("first").agent(name="plan")(agent("plan"))
    second = workflow.parallel("second", after="first")
    second.agent(name="build")(agent("build", "plan"))
    second.agent(name="check")(agent("check", "plan"))
    workflow.sequential("third", after="second").agent(name="publish")(agent("publish", "build", "check"))

    place = str(tmp_path / "store")
    with pytest.raises(AgentFailedError, match="the reviewer is gone"):
        workflow.run_sync(place, "WF-1")
    with holdfast.open(place) as service:
        [failure] = [meta for meta in service.list_checkpoints("WF-1") if meta.type == "error_state"]
        assert (failure.agent_id, failure.status) == ("check", "failed")
    broken.clear()
    result = workflow.run_sync(place, "WF-1")
    assert result.is_completed and result.resumed and (result.kept, result.ran) == (2, 2)
    assert result.value == "publish after build after plan after check after plan"
    assert sorted(calls) == ["build", "check", "check", "plan", "publish"]


def test_a_run_that_stopped_after_its_second_layer_goes_on_with_the_third() -> None:
    calls: list[str] = []
    broken = [True]
    workflow = Workflow("layers")

    def work(ctx: Context) -> str:
        calls.append(ctx.agent)
        if ctx.agent == "third" and broken:
            raise RuntimeError("not yet")
        return ctx.agent

    for name, before in (("first", None), ("second", "first"), ("third", "second")):
        workflow.agent(name=name, after=before)(work)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        left = latest(service)
        assert left.layer_index == 2 and [task["id"] for task in left.tasks] == ["first", "second"]
        broken.clear()
        calls.clear()
        assert run(workflow, service).value == "third"
    assert calls == ["third"]


def test_a_task_of_a_run_has_its_result_its_time_and_its_duration() -> None:
    def agent(ctx: Context) -> dict[str, bool]:
        return {"ok": True}

    with opened() as service:
        run(chain(agent), service)
        [task] = latest(service).tasks
        [done] = service.events("WF-1", type="AGENT_COMPLETED")
    assert (task["id"], task["result"]) == ("agent", {"ok": True})
    assert task["ended_at"] == timestamp_text(done.timestamp) and task["duration_seconds"] >= 0


def test_a_run_that_ended_leaves_its_outputs_and_metrics_in_its_last_checkpoint() -> None:
    def agent(ctx: Context) -> None:
        ctx.output("the report", name="report")
        ctx.metrics(tokens=120, api_calls=3)

    with opened() as service:
        run(chain(agent), service)
        state = latest(service)
        assert kinds(service)[-1] == "workflow_complete"
    assert (state.status, state.resumable) == ("completed", False)
    assert state.outputs == [{"name": "report", "agent": "agent", "value": "the report"}]
    assert (state.metrics["tokens"], state.metrics["api_calls"]) == (120, 3)
    assert state.metrics["elapsed_seconds"] > 0


def test_a_resumed_run_has_the_configuration_that_it_began_with() -> None:
    told: list[Any] = []

    def agent(ctx: Context) -> None:
        told.append(dict(ctx.config))
        if len(told) < 3:
            raise RuntimeError("not yet")

    workflow = chain(agent)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service, config={"tone": "dry", "timeout": 30})
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        run(workflow, service, config={"timeout": 60})
        assert latest(service).execution_config["config"] == {"tone": "dry", "timeout": 30}
    began = {"tone": "dry", "timeout": 30}
    assert told == [began, began, {"tone": "dry", "timeout": 60}]


@pytest.mark.parametrize("odd", [{}, {"execution_config": 7}, {"execution_config": {"config": "mine"}}])
def test_a_state_of_another_shape_tells_agents_nothing(odd: dict[str, Any]) -> None:
    assert RunOptions(config={"a": 1}).told(odd) == {"a": 1}
