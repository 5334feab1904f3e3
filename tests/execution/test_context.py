"""What an agent asks for while it works, and what becomes of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import AgentFailedError, Retry, Workflow
from holdfast.domain.errors import AttemptOverError, InvalidStateError
from holdfast.execution.context import Context
from holdfast.execution.frame import Milestone
from tests.execution.clocks import AgentClock
from tests.execution.runs import chain, kinds, opened, run, told_to, types


@pytest.mark.parametrize("kind", ["effect", "spawn"])
def test_what_would_be_known_by_the_name_of_another_is_refused_before_it_is_done(kind: str) -> None:
    done: list[int] = []

    def work(*given: Any) -> int:
        done.append(len(done))
        return done[-1]

    def agent(ctx: Context) -> None:
        for name in ("item", "item", "item#2"):
            if kind == "effect":
                ctx.effect(name, work)
            else:
                ctx.spawn(work, name=name)

    with opened() as service, pytest.raises(AgentFailedError, match="would be known as 'item#2'"):
        run(chain(agent), service)
    assert done == [0, 1]


def test_everything_an_agent_says_is_in_the_state_once_it_is_done() -> None:
    def agent(ctx: Context) -> str:
        ctx.decide("go on", "it is time", 0.9, ["wait"])
        ctx.output("a page", name="page")
        ctx.output(7)
        ctx.message("done")
        ctx.remember(found=3)
        ctx.artifact("s3://bucket/key")
        ctx.metrics(tokens=10, cost_usd=0.5)
        ctx.metrics(tokens=5)
        ctx.confidence(0.8)
        ctx.progress(1.0, "ready")
        ctx.blocked("the printer")
        ctx.report("Found", "Three things.", ["a book"])
        return "ok"

    with opened() as service:
        result = run(chain(agent), service)
        state = service.load_latest("WF-1")
        assert state is not None
        assert [one["description"] for one in state.decisions] == ["go on"]
        assert state.decisions[0]["alternatives"] == ["wait"]
        assert state.outputs == [{"name": "page", "agent": "agent", "value": "a page"}, 7]
        assert state.messages == [{"role": "agent", "agent": "agent", "content": "done"}]
        assert state.context["found"] == 3
        assert state.metrics["tokens"] == 15 and state.metrics["cost_usd"] == 0.5
        kept = state.agent_states["agent"]
        assert kept["status"] == "completed" and kept["confidence"] == 0.8 and kept["progress"] == 1.0
        assert kept["artifacts"] == ["s3://bucket/key"] and kept["blockers"] == ["the printer"]
        assert result.confidence == {"agent": 0.8}
        assert "REPORT_ADDED" in types(service) and "AGENT_DECISION" in [
            str(entry.type) for entry in service.audit.query_events()
        ]


def test_what_an_agent_is_given_is_its_own_to_change() -> None:
    def first(ctx: Context) -> dict[str, Any]:
        inputs = ctx.inputs
        inputs["n"].append(2)
        assert ctx.inputs == {"n": [1]}
        return {"list": [1]}

    def second(ctx: Context) -> Any:
        ctx.result("first")["list"].append(2)
        ctx.shared["inputs"]["n"].append(9)
        assert ctx.config == {"model": "small"} and ctx.workflow_id == "WF-1" and ctx.attempt == 1
        return ctx.result("first")

    with opened() as service:
        result = run(chain(first, second), service, inputs={"n": [1]}, config={"model": "small"})
        assert result.value == {"list": [1]}
        state = service.load_latest("WF-1")
        assert state is not None and state.context["inputs"] == {"n": [1]}


def test_the_result_of_an_agent_that_has_not_run_is_an_error_that_says_what_to_declare() -> None:
    def agent(ctx: Context) -> Any:
        return ctx.result("nobody")

    with opened() as service, pytest.raises(AgentFailedError, match="no result yet"):
        run(chain(agent), service)


def test_what_a_failed_attempt_said_is_not_in_the_state_but_its_decisions_are_in_the_journal() -> None:
    def agent(ctx: Context) -> str:
        ctx.decide(f"attempt {ctx.attempt}")
        ctx.output("half a page")
        ctx.metrics(tokens=1)
        if ctx.attempt == 1:
            raise RuntimeError("lost the thread")
        return "ok"

    with opened() as service:
        run(chain(agent, retry=Retry(2, delay_seconds=0)), service)
        state = service.load_latest("WF-1")
        assert state is not None
        assert state.outputs == ["half a page"] and state.metrics["tokens"] == 1
        assert [one["description"] for one in state.decisions] == ["attempt 1", "attempt 2"]


def test_a_restarted_agent_goes_on_from_its_last_milestone() -> None:
    seen = []

    def agent(ctx: Context) -> str:
        seen.append(ctx.resumed_from)
        if ctx.resumed_from is None:
            ctx.milestone("read", {"page": 10}, partial=["so far"])
            ctx.milestone("read", {"page": 20}, partial=["so far", "more"])
            raise RuntimeError("tired")
        return f"page {ctx.resumed_from.state['page']}"

    with opened() as service:
        result = run(chain(agent, retry=Retry(2, delay_seconds=0)), service)
        assert result.value == "page 20"
        assert seen == [None, Milestone("read", {"page": 20}, ["so far", "more"])]
        assert kinds(service).count("agent_start") == 2
        milestone = next(meta for meta in service.list_checkpoints("WF-1") if meta.type == "agent_start")
        found = service.get_by_id(milestone.id)
        assert found is not None and found.agent_state["state"] == {"page": 20}


def test_an_async_agent_awaits_the_same_calls() -> None:
    async def agent(ctx: Context) -> Any:
        await ctx.milestone("half", 1)
        made = await ctx.effect("send", lambda key, n: n + 1, 41)
        await ctx.checkpoint()
        return made

    with opened() as service:
        assert run(chain(agent), service).value == 42


def test_checkpoints_that_an_agent_asks_for_name_their_reason() -> None:
    told, subscriber = told_to()

    def agent(ctx: Context) -> None:
        ctx.checkpoint("look here")
        ctx.breakpoint("before the loop")
        ctx.before_risk("delete everything")

    with opened() as service:
        run(chain(agent), service, subscribers=(subscriber,))
    reasons = [data["reason"] for kind, data in told if kind == "checkpoint_saved"]
    assert reasons[1:4] == [
        "user_requested: look here",
        "debug_breakpoint: before the loop",
        "before_risky_operation: delete everything",
    ]


def test_a_confidence_out_of_bounds_is_refused() -> None:
    def agent(ctx: Context) -> None:
        ctx.confidence(1.5)

    with opened() as service, pytest.raises(AgentFailedError, match="no confidence"):
        run(chain(agent), service)


def test_check_and_its_policy_go_together() -> None:
    def agent(ctx: Context) -> None:
        ctx.effect("send", print, unknown="check")

    with opened() as service, pytest.raises(AgentFailedError) as caught:
        run(chain(agent), service)
    assert isinstance(caught.value.__cause__, InvalidStateError)


def test_an_agent_that_goes_on_after_its_attempt_leaves_no_trace() -> None:
    kept: list[Context] = []

    def agent(ctx: Context) -> str:
        kept.append(ctx)
        return "ok"

    with opened() as service:
        run(chain(agent), service)
        with pytest.raises(AttemptOverError):
            kept[0].decide("one more thing")
        with pytest.raises(AttemptOverError):
            kept[0].effect("send", print)


def test_spawned_agents_are_steps_of_their_own() -> None:
    def child(ctx: Context, item: int) -> int:
        ctx.output(item)
        return item * 2

    async def parent(ctx: Context) -> list[int]:
        return [await ctx.spawn(child, 1), await ctx.spawn(child, 2), await ctx.spawn(child, 3, name="other")]

    with opened() as service:
        result = run(chain(parent), service)
        assert result.value == [2, 4, 6]
        assert result.results["parent>child"] == 2 and result.results["parent>child#2"] == 4
        assert result.results["parent>other"] == 6 and result.outputs == [1, 2, 3]


def test_progress_is_told_to_subscribers_each_time_and_recorded_once_in_a_while() -> None:
    told, subscriber = told_to()

    def agent(ctx: Context) -> None:
        for share in range(1, 100):
            ctx.progress(share / 100)

    with opened() as service:
        run(chain(agent), service, subscribers=(subscriber,))
        assert len([kind for kind, _ in told if kind == "agent_progress"]) == 99
        assert types(service).count("AGENT_STATE_UPDATED") < 10


def test_a_blocker_can_be_taken_back() -> None:
    def agent(ctx: Context) -> None:
        ctx.blocked("no paper")
        ctx.blocked(None)

    with opened() as service:
        run(chain(agent), service)
        state = service.load_latest("WF-1")
        assert state is not None and state.agent_states["agent"]["blockers"] == []


def test_history_and_feedback_of_a_loop_are_what_the_evaluator_said() -> None:
    seen = []
    workflow = Workflow("loop")
    loop = workflow.loop("improve", limit=3)

    @loop.agent
    def draft(ctx: Context) -> int:
        seen.append((ctx.iteration, ctx.feedback, [one["iteration"] for one in ctx.history]))
        return ctx.iteration

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        return {"content": ctx.result("draft") == 2, "issues": ["too short"]}

    with opened() as service:
        run(workflow, service)
    assert seen == [(1, None, []), (2, {"content": False, "issues": ["too short"]}, [1])]


def paying(people: list[str], *, keyed: bool, ledger: list[str], fails: bool = False) -> Workflow:
    """Declare an agent that pays people one after another, and may fail after two."""

    def note(ctx: Context, who: str) -> str:
        return f"notes on {who}"

    def pay(ctx: Context) -> dict[str, str]:
        notes = {}
        for number, who in enumerate(people):
            if fails and number == 2:
                raise RuntimeError("after two")
            key = who if keyed else None
            ctx.effect("pay", lambda _, who: ledger.append(who), who, key=key)
            notes[who] = ctx.spawn(note, who, key=key)
        return notes

    return chain(pay)


def test_effects_and_spawned_steps_that_come_in_another_order_are_refused() -> None:
    ledger: list[str] = []
    with opened() as service:
        with pytest.raises(AgentFailedError, match="after two"):
            run(paying(["ann", "bob", "cy"], keyed=False, ledger=ledger, fails=True), service)
        with pytest.raises(AgentFailedError, match="the effect 'pay' was recorded for other arguments"):
            run(paying(["cy", "ann", "bob"], keyed=False, ledger=ledger), service)
        assert ledger == ["ann", "bob"]
        result = run(paying(["ann", "bob", "cy"], keyed=False, ledger=ledger), service)
    assert ledger == ["ann", "bob", "cy"] and result.value["cy"] == "notes on cy"


def test_a_spawned_step_for_another_item_is_refused() -> None:
    def child(ctx: Context, item: str) -> str:
        return item

    def parent(ctx: Context) -> str:
        answer = str(ctx.spawn(child, items[ctx.attempt - 1]))
        if ctx.attempt == 1:
            raise RuntimeError("once")
        return answer

    items = ["a", "b", "a"]
    with opened() as service:
        for why in ("once", "the spawned step 'parent>child' was recorded for other arguments"):
            with pytest.raises(AgentFailedError, match=why):
                run(chain(parent), service)
        assert run(chain(parent), service).value == "a"


def test_effects_and_spawned_steps_with_keys_may_come_in_any_order() -> None:
    ledger: list[str] = []
    with opened() as service:
        with pytest.raises(AgentFailedError, match="after two"):
            run(paying(["ann", "bob", "cy"], keyed=True, ledger=ledger, fails=True), service)
        result = run(paying(["cy", "ann", "bob"], keyed=True, ledger=ledger), service)
    assert ledger == ["ann", "bob", "cy"]
    assert result.value == {who: f"notes on {who}" for who in ("cy", "ann", "bob")}


def test_a_parent_is_as_alive_as_the_agents_it_has_spawned(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = AgentClock(monkeypatch)

    async def child(ctx: Context) -> list[float]:
        silences = []
        for share in range(3):
            clock.advance(5)
            silences.append(parents[0].quiet_seconds)
            ctx.progress(share / 5)
            silences.append(parents[0].quiet_seconds)
        return silences

    async def parent(ctx: Context) -> list[float]:
        parents.append(ctx)
        return list(await ctx.spawn(child))

    parents: list[Context] = []
    with opened() as service:
        assert run(chain(parent), service).value == [5, 0] * 3


def test_a_parent_whose_spawned_agent_is_silent_is_too_late_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = AgentClock(monkeypatch)

    async def child(ctx: Context) -> None:
        clock.advance(2)
        await asyncio.Event().wait()

    async def parent(ctx: Context) -> None:
        await ctx.spawn(child)

    workflow = Workflow("w")
    workflow.agent(timeout_seconds=0.05)(parent)
    with opened() as service, pytest.raises(AgentFailedError, match="TimeoutError"):
        run(workflow, service)


def test_nothing_is_remembered_in_the_place_of_the_inputs() -> None:
    def agent(ctx: Context) -> None:
        ctx.remember(inputs="other")

    with opened() as service, pytest.raises(AgentFailedError, match="another name"):
        run(chain(agent), service, inputs={"n": 1})
