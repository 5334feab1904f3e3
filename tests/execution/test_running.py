"""Walking through a plan: order, fan-out, conditions, loops, limits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import AgentFailedError, Retry, Workflow
from holdfast.domain.errors import DeclarationError
from holdfast.execution.context import Context
from tests.execution.runs import kinds, opened, run


def test_layers_run_in_order_and_each_ends_with_a_checkpoint() -> None:
    order: list[str] = []
    workflow = Workflow("layers")

    @workflow.agent
    def a(ctx: Context) -> None:
        order.append("a")

    @workflow.agent(after=a)
    def b(ctx: Context) -> None:
        order.append("b")

    @workflow.agent(after=[a])
    def c(ctx: Context) -> None:
        order.append("c")

    @workflow.agent(after=["b", "c"])
    def d(ctx: Context) -> None:
        order.append("d")

    with opened() as service:
        result = run(workflow, service)
        assert kinds(service) == ["workflow_start", "stage_complete", "stage_complete", "workflow_complete"]
        state = service.load_latest("WF-1")
    assert order[0] == "a" and order[-1] == "d" and result.ran == 4
    assert state is not None and state.status == "completed" and not state.resumable and state.phase == 3
    assert state.current_step == state.total_steps == 4
    assert state.dag_structure["workflow"] == "layers" and state.execution_config["triggers"]


def test_agents_of_a_parallel_stage_work_at_once() -> None:
    together = threading.Barrier(3)
    workflow = Workflow("parallel")
    stage = workflow.parallel("all")
    for name in "abc":
        stage.agent(name=name)(lambda ctx: together.wait())
    with opened() as service:
        assert sorted(run(workflow, service).results.values()) == [0, 1, 2]


def test_a_barrier_parts_what_is_before_from_what_is_after() -> None:
    order: list[str] = []
    workflow = Workflow("barrier")
    workflow.agent(name="a")(lambda ctx: order.append("a"))
    workflow.agent(name="b")(lambda ctx: order.append("b"))
    workflow.barrier("all in")
    workflow.agent(name="c")(lambda ctx: order.append("c"))
    with opened() as service:
        run(workflow, service)
        assert "sync_barrier" in kinds(service)
    assert set(order[:2]) == {"a", "b"} and order[2] == "c"


def test_an_agent_runs_for_each_item_no_more_at_once_than_allowed() -> None:
    now, most = [0], [0]

    async def work(ctx: Context, item: int) -> int:
        now[0] += 1
        most[0] = max(most[0], now[0])
        # As many as may are here together; one more would be counted.
        await meeting.wait()
        now[0] -= 1
        return item * item

    meeting = asyncio.Barrier(3)
    workflow = Workflow("fan-out")
    workflow.agent(each=lambda ctx: range(ctx.inputs["count"]), concurrency=3)(work)

    @workflow.agent(after=work)
    def total(ctx: Context) -> int:
        return sum(ctx.result("work"))

    with opened() as service:
        assert run(workflow, service, inputs={"count": 9}).value == 204
    assert most[0] == 3


def test_the_whole_workflow_has_a_limit_too() -> None:
    now, most = [0], [0]

    async def work(ctx: Context, item: int) -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        await meeting.wait()
        now[0] -= 1

    meeting = asyncio.Barrier(2)
    workflow = Workflow("limited", concurrency=2)
    workflow.agent(each=lambda ctx: range(6))(work)
    with opened() as service:
        run(workflow, service)
    assert most[0] == 2


def test_no_items_are_no_results() -> None:
    workflow = Workflow("none")
    workflow.agent(name="work", each=lambda ctx: [])(lambda ctx, item: item)
    workflow.agent(name="last", after="work")(lambda ctx: ctx.result("work"))
    with opened() as service:
        assert run(workflow, service).value == []


def test_items_are_those_of_the_first_time_however_often_it_is_resumed() -> None:
    offered = [[1, 2], [7, 8, 9]]
    broken = [True]

    def work(ctx: Context, item: int) -> int:
        if item == 2 and broken:
            raise RuntimeError("broken")
        return item

    workflow = Workflow("items")
    workflow.agent(each=lambda ctx: offered.pop(0))(work)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        broken.clear()
        assert run(workflow, service).value == [1, 2]


def test_items_are_known_by_their_key() -> None:
    workflow = Workflow("keys")
    workflow.agent(name="work", each=lambda ctx: ["kelp", "tide"], key=str)(lambda ctx, item: item.upper())
    with opened() as service:
        assert run(workflow, service).results == {"work[kelp]": "KELP", "work[tide]": "TIDE"}


def test_two_items_with_one_key_are_refused() -> None:
    workflow = Workflow("keys")
    workflow.agent(name="work", each=lambda ctx: ["a", "a"], key=str)(lambda ctx, item: item)
    with opened() as service, pytest.raises(DeclarationError, match="one key: a"):
        run(workflow, service)


def test_the_others_finish_before_the_failure_of_one_is_told() -> None:
    def work(ctx: Context, item: int) -> int:
        if item == 0:
            raise RuntimeError("first of all")
        return item

    workflow = Workflow("some")
    workflow.agent(each=lambda ctx: range(4))(work)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        state = service.load_latest("WF-1")
        assert state is not None
        events = service.events("WF-1", type="AGENT_COMPLETED")
        assert sorted(event.step_id or "" for event in events) == ["work[1]", "work[2]", "work[3]"]


def test_a_condition_that_does_not_hold_skips_an_agent_and_is_asked_once() -> None:
    asked: list[int] = []

    def condition(ctx: Any) -> bool:
        asked.append(1)
        return bool(ctx.inputs["wanted"])

    broken = [True]
    workflow = Workflow("maybe")
    workflow.agent(name="extra", when=condition)(lambda ctx: "extra")

    @workflow.agent(after="extra")
    def last(ctx: Context) -> object:
        if broken:
            raise RuntimeError("broken")
        return ctx.result("extra")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service, inputs={"wanted": False})
        broken.clear()
        assert run(workflow, service).value is None
    assert asked == [1]


def test_a_whole_stage_can_be_skipped() -> None:
    workflow = Workflow("maybe")
    stage = workflow.sequential("extra", when=lambda ctx: False)
    stage.agent(name="a")(lambda ctx: 1)
    after = workflow.sequential("then")
    after.agent(name="b")(lambda ctx: 2)
    with opened() as service:
        result = run(workflow, service)
        assert result.results == {"b": 2}
        state = service.load_latest("WF-1")
        assert state is not None and state.stage_states["extra"]["status"] == "skipped"


def test_a_loop_ends_when_its_evaluator_is_content_and_its_rounds_are_kept() -> None:
    workflow = Workflow("loop")
    loop = workflow.loop("improve", until=lambda verdict: verdict["score"] >= 0.8, limit=10)
    loop.agent(name="draft", each=lambda ctx: ["a", "b"])(lambda ctx, item: f"{item}{ctx.iteration}")

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        return {"score": ctx.iteration * 0.3, "of": ctx.result("draft")}

    @workflow.agent(after="improve")
    def last(ctx: Context) -> Any:
        return ctx.result("draft"), ctx.result("judge")["score"]

    with opened() as service:
        result = run(workflow, service)
        assert result.value == (["a3", "b3"], pytest.approx(0.9))
        state = service.load_latest("WF-1")
        assert state is not None
        rounds = state.stage_states["improve"]["iterations"]
        assert [one["content"] for one in rounds] == [False, False, True]
        assert result.results["draft[0]"] == "a1" and result.results["draft[1]#3"] == "b3"


def test_a_loop_that_is_never_content_ends_at_its_limit() -> None:
    workflow = Workflow("loop")
    loop = workflow.loop("improve", limit=2)
    loop.evaluator(name="judge")(lambda ctx: False)
    with opened() as service:
        result = run(workflow, service)
        assert len(result.results) == 2 and result.is_completed
        assert any("ended at its limit" in text for text in result.warnings)


def test_a_loop_goes_on_in_the_round_it_was_in() -> None:
    calls: list[tuple[str, int]] = []
    broken = [True]
    workflow = Workflow("loop")
    loop = workflow.loop("improve", limit=5)

    @loop.agent
    def draft(ctx: Context) -> int:
        calls.append(("draft", ctx.iteration))
        return ctx.iteration

    @loop.evaluator
    def judge(ctx: Context) -> bool:
        calls.append(("judge", ctx.iteration))
        if ctx.iteration == 2 and broken:
            raise RuntimeError("broken")
        return ctx.iteration == 3

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        broken.clear()
        run(workflow, service)
    assert calls == [
        ("draft", 1),
        ("judge", 1),
        ("draft", 2),
        ("judge", 2),
        ("judge", 2),
        ("draft", 3),
        ("judge", 3),
    ]


def test_a_loop_without_an_evaluator_is_refused() -> None:
    workflow = Workflow("loop")
    workflow.loop("improve").agent(name="draft")(lambda ctx: 1)
    with opened() as service, pytest.raises(DeclarationError, match="one evaluator"):
        run(workflow, service)


def test_a_failing_subscriber_stops_nobody() -> None:
    workflow = Workflow("told")
    workflow.agent(name="a", retry=Retry())(lambda ctx: 1)

    def broken(kind: str, data: Any) -> None:
        raise RuntimeError("deaf")

    with opened() as service:
        assert run(workflow, service, subscribers=(broken,)).value == 1


def test_a_key_that_is_no_text_is_refused() -> None:
    workflow = Workflow("keys")
    workflow.agent(name="work", each=lambda ctx: [1, 1], key=lambda item: item)(lambda ctx, item: item)
    with opened() as service, pytest.raises(DeclarationError, match="is a int"):
        run(workflow, service)


def test_what_a_condition_does_to_what_it_sees_changes_nothing() -> None:
    workflow = Workflow("view")
    workflow.agent(name="first")(lambda ctx: [1, 2])

    def items(view: Any) -> list[int]:
        view.inputs["n"].append(2)
        view.shared["inputs"]["n"].append(3)
        found = view.result("first")
        return [found.pop(), found.pop()]

    workflow.agent(name="work", after="first", each=items)(lambda ctx, item: item)
    with opened() as service:
        result = run(workflow, service, inputs={"n": [1]})
        state = service.load_latest("WF-1")
    assert result.results["first"] == [1, 2] and result.value == [2, 1]
    assert state is not None and state.context["inputs"] == {"n": [1]}
