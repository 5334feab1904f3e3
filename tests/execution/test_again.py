"""Running again from an earlier point, on a fork."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    AgentFailedError,
    CheckpointService,
    Found,
    RunOptions,
    RunResult,
    Triggers,
    Workflow,
)
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    DeclarationError,
    InvalidStateError,
)
from holdfast.execution.again import agents_from
from holdfast.execution.context import Context
from holdfast.execution.effects import Unknown
from tests.execution.gates import Gates
from tests.execution.runs import chain, opened, run


def team(calls: list[str]) -> Workflow:
    workflow = Workflow("team")

    @workflow.agent
    def plan(ctx: Context) -> int:
        calls.append("plan")
        return int(ctx.inputs["n"])

    @workflow.agent(after=plan)
    def work(ctx: Context) -> int:
        calls.append("work")
        return ctx.result("plan") + int(ctx.inputs["n"])

    @workflow.agent(after=work)
    def sum_up(ctx: Context) -> int:
        calls.append("sum_up")
        return ctx.result("work") * 10

    @workflow.agent(after=plan)
    def aside(ctx: Context) -> str:
        calls.append("aside")
        return "aside"

    return workflow


def again(workflow: Workflow, *given: Any, **named: Any) -> RunResult:
    return asyncio.run(workflow.rerun_from(*given, **named))


def test_a_run_is_repeated_from_an_agent_on_with_other_inputs() -> None:
    calls: list[str] = []
    workflow = team(calls)
    with opened() as service:
        assert run(workflow, service, inputs={"n": 1}).results["sum_up"] == 20
        calls.clear()
        result = again(workflow, service, "WF-1", "work", new_workflow_id="WF-2", inputs={"n": 5})
        assert result.results["sum_up"] == 60 and result.results["plan"] == 1
        assert calls == ["work", "sum_up"] and result.is_completed
        # What happened happened.
        assert run(workflow, service).results["sum_up"] == 20
        state = service.load_latest("WF-2")
        assert state is not None and state.context["inputs"] == {"n": 5}


def test_an_agent_that_is_not_there_is_refused_by_name() -> None:
    workflow = team([])
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        with pytest.raises(DeclarationError, match="nobody"):
            again(workflow, service, "WF-1", "nobody", new_workflow_id="WF-2")


def test_a_fork_takes_no_name_that_is_taken() -> None:
    workflow = team([])
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        with pytest.raises(CheckpointConflictError):
            again(workflow, service, "WF-1", "work", new_workflow_id="WF-1")


def test_a_run_goes_on_from_an_earlier_checkpoint_on_a_fork() -> None:
    calls: list[str] = []
    workflow = team(calls)
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        calls.clear()
        result = asyncio.run(workflow.resume_from_checkpoint(service, "WF-1@2", new_workflow_id="WF-2"))
        assert result.workflow_id == "WF-2" and result.results["sum_up"] == 20
        assert sorted(calls) == ["aside", "sum_up", "work"]


def test_the_newest_checkpoint_of_a_run_that_ended_tells_its_result() -> None:
    workflow = team([])
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        result = asyncio.run(workflow.resume_from_checkpoint(service, "WF-1@latest"))
        assert result.is_completed and result.ran == 0


def test_an_earlier_checkpoint_needs_a_name_for_what_follows() -> None:
    workflow = team([])
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        with pytest.raises(InvalidStateError, match="gone on since"):
            asyncio.run(workflow.resume_from_checkpoint(service, "WF-1@1"))
        with pytest.raises(CheckpointNotFoundError):
            asyncio.run(workflow.resume_from_checkpoint(service, "WF-9@1"))


def test_what_comes_after_an_agent_is_found_through_stages() -> None:
    workflow = Workflow("stages")
    first = workflow.sequential("first")
    for name in "abc":
        first.agent(name=name)(lambda ctx: None)
    both = workflow.parallel("both")
    for name in "de":
        both.agent(name=name)(lambda ctx: None)
    loop = workflow.loop("loop")
    loop.agent(name="f")(lambda ctx: None)
    loop.evaluator(name="g")(lambda ctx: True)
    plan = workflow.plan
    assert agents_from(plan, "b") == set("bcdefg")
    assert agents_from(plan, "d") == set("dfg")
    assert agents_from(plan, "g") == set("fg")


def test_a_fork_forgets_what_its_steps_had_left() -> None:
    calls: list[str] = []
    workflow = Workflow("items")

    @workflow.agent(each=lambda ctx: ["a", "b"])
    def work(ctx: Context, item: str) -> str:
        calls.append(item)
        ctx.milestone("half", item)
        return item + str(ctx.spawn(lambda c: 1, name="part"))

    with opened() as service:
        run(workflow, service)
        calls.clear()
        result = again(workflow, service, "WF-1", "work", new_workflow_id="WF-2")
        assert sorted(calls) == ["a", "b"] and result.ran == 4


def test_what_was_committed_after_the_last_checkpoint_is_not_done_again_on_a_fork() -> None:
    calls: list[str] = []

    def first(ctx: Context) -> str:
        calls.append("first")
        return "kept"

    def second(ctx: Context) -> Any:
        calls.append("second")
        if len(calls) == 2:
            raise RuntimeError("broken")
        return ctx.result("first")

    workflow = chain(first, second, triggers=Triggers(error_encountered=False))
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        result = again(workflow, service, "WF-1", "second", new_workflow_id="WF-2")
        assert result.value == "kept"
    assert calls == ["first", "second", "second"]


def test_a_run_that_is_not_there_cannot_be_repeated() -> None:
    workflow = team([])
    with opened() as service, pytest.raises(CheckpointNotFoundError):
        again(workflow, service, "WF-9", "work", new_workflow_id="WF-2")


def test_a_fork_does_not_have_what_the_forgotten_agents_said() -> None:
    workflow = Workflow("said")

    @workflow.agent
    def first(ctx: Context) -> None:
        ctx.output("first")
        ctx.metrics(tokens=5)
        ctx.remember(k=1)

    @workflow.agent(after=first)
    def second(ctx: Context) -> Any:
        ctx.output(f"second {ctx.inputs['n']}")
        ctx.message("hello")
        ctx.decide("so")
        ctx.metrics(tokens=10)
        ctx.remember(k=ctx.shared["k"] + 1)
        return ctx.shared["k"]

    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        result = again(workflow, service, "WF-1", "second", new_workflow_id="WF-2", inputs={"n": 2})
        state = service.load_latest("WF-2")
    assert result.value == 1 and result.outputs == ["first", "second 2"] and result.metrics["tokens"] == 15
    assert state is not None and len(state.messages) == len(state.decisions) == 1


def test_a_run_is_repeated_from_an_agent_that_has_another_name_now() -> None:
    calls: list[str] = []

    def declared(name: str, fails: bool) -> Workflow:
        workflow = Workflow("renamed")
        workflow.agent(name=name)(lambda ctx: calls.append(ctx.agent))

        @workflow.agent(after=name)
        def last(ctx: Context) -> None:
            if fails:
                raise RuntimeError("broken")

        return workflow

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(declared("old", True), service)
        workflow, options = declared("new", False), RunOptions(renamed={"old": "new"})
        again(workflow, service, "WF-1", "new", new_workflow_id="WF-2", options=options)
        run(workflow, service, renamed={"old": "new"})
        again(workflow, service, "WF-1", "new", new_workflow_id="WF-3")
    assert calls == ["old", "new", "new"]


def test_items_of_agents_that_are_not_repeated_stay_what_they_were() -> None:
    asked: list[str] = []
    workflow = Workflow("beside")
    team = workflow.parallel("team")

    def items(view: Any) -> list[int]:
        asked.append("items")
        return [1, 2]

    team.agent(name="a", each=items)(lambda ctx, item: item)
    team.agent(name="b")(lambda ctx: "b")
    with opened() as service:
        run(workflow, service)
        assert again(workflow, service, "WF-1", "b", new_workflow_id="WF-2").ran == 1
    assert asked == ["items"]


def test_a_fork_says_that_its_name_is_taken() -> None:
    workflow = team([])
    with opened() as service:
        run(workflow, service, inputs={"n": 1})
        with pytest.raises(CheckpointConflictError, match="there is a workflow of that name"):
            again(workflow, service, "WF-1", "work", new_workflow_id="WF-1")


def test_what_a_run_from_an_agent_on_could_not_write_is_told_once_the_store_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = Gates(monkeypatch, tmp_path)

    def last(ctx: Context) -> int:
        if ctx.inputs.get("full"):
            gates.shut()
        return 7

    workflow = chain(last)
    assert workflow.run_sync(gates.url, "W").is_durable
    again = workflow.rerun_from(gates.url, "W", "last", new_workflow_id="W-2", inputs={"full": True})
    result = asyncio.run(again)
    assert result.value == 7 and [result.unwritten.place] == gates.kept
    assert len(result.warnings) == 1


class Bank:
    """Knows keys, and does not answer the first call, which it carries out."""

    def __init__(self) -> None:
        self.paid: dict[str, str] = {}
        self.asked: list[str] = []

    def pay(self, key: str, who: str) -> str:
        self.asked.append(key)
        self.paid.setdefault(key, who)
        if len(self.asked) == 1:
            raise TimeoutError("nobody knows")
        return f"receipt {len(self.paid)}"

    def check(self, key: str) -> Found | None:
        self.asked.append(key)
        return Found("looked up") if key in self.paid else None


def payroll(bank: Bank, unknown: Unknown) -> Workflow:
    def transfer(ctx: Context) -> Any:
        check = bank.check if unknown is Unknown.CHECK else None
        return ctx.effect("pay", bank.pay, "ann", unknown=unknown, check=check)

    def letter(ctx: Context) -> Any:
        return ctx.effect("send", lambda key: key, unknown=unknown, check=check_nothing(unknown))

    return chain(transfer, letter)


def check_nothing(unknown: Unknown) -> Any:
    return (lambda key: None) if unknown is Unknown.CHECK else None


def rerun(workflow: Workflow, service: CheckpointService, options: RunOptions) -> RunResult:
    return again(workflow, service, "WF-1", "letter", new_workflow_id="WF-2", options=options)


def resumed(workflow: Workflow, service: CheckpointService, options: RunOptions) -> RunResult:
    newest = workflow.resume_from_checkpoint(service, "WF-1@latest", new_workflow_id="WF-2", options=options)
    return asyncio.run(newest)


def forked(workflow: Workflow, service: CheckpointService, options: RunOptions) -> RunResult:
    service.fork_workflow("WF-1@latest", "WF-2")
    return workflow.run_sync(service, "WF-2", options=options)


@pytest.mark.parametrize("fork", [rerun, resumed, forked])
@pytest.mark.parametrize("unknown", Unknown)
def test_an_effect_that_may_have_happened_is_known_to_the_other_side_by_one_key_in_forks_too(
    fork: Any, unknown: Unknown
) -> None:
    bank = Bank()
    workflow = payroll(bank, unknown)
    with opened() as service:
        with pytest.raises(AgentFailedError, match="nobody knows"):
            run(workflow, service)
        if unknown is Unknown.FAIL:
            with pytest.raises(AgentFailedError, match=bank.asked[0]):
                fork(workflow, service, RunOptions(waits=False))
        else:
            result = fork(workflow, service, RunOptions(waits=False))
            answer = {Unknown.RETRY: "receipt 1", Unknown.CHECK: "looked up", Unknown.SKIP: None}
            if unknown is Unknown.ASK:
                state = service.load_latest("WF-2")
                assert state is not None and result.waiting == ("transfer: effect:pay",)
                [question] = state.agent_states["transfer"]["approvals"].values()
                assert question["data"]["key"] == bank.asked[0]
            else:
                assert result.results["transfer"] == answer[unknown]
                # What nobody had begun is the fork's own.
                assert result.results["letter"] not in bank.asked
    assert len(bank.paid) == 1 and set(bank.asked) == set(bank.paid)
