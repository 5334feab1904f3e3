"""Attempts of one step: retries, timeouts, failures, and what is recorded of each."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AgentFailedError, Retry, Workflow
from holdfast.domain.errors import LeaseLostError
from holdfast.execution.context import Context
from tests.application.services import make_service
from tests.execution.clocks import AgentClock
from tests.execution.journals import recovered
from tests.execution.narrow_stores import LARGE, NarrowStore
from tests.execution.runs import chain, kinds, opened, run, told_to, types


def lambda_named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


def test_an_agent_is_tried_again_and_its_confidence_sinks_by_the_factor() -> None:
    def agent(ctx: Context) -> str:
        ctx.confidence(0.5)
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return "ok"

    told, subscriber = told_to()
    with opened() as service:
        run(chain(agent, retry=Retry(3, delay_seconds=0)), service, subscribers=(subscriber,))
        failed = [event.data for event in service.events("WF-1", type="AGENT_FAILED")]
    assert [one["confidence"] for one in failed] == [0.4, 0.4]
    assert failed[0]["confidence_before"] == 0.5 and "attempt 1 failed" in failed[0]["reason"]
    assert failed[0]["error"]["type"] == "ConnectionError" and "not yet" in failed[0]["error"]["trace"]
    assert [data["retries"] for kind, data in told if kind == "agent_failed"] == [True, True]


@pytest.mark.parametrize("shape", ["row", "parallel"])
def test_an_agent_that_is_kept_from_another_workflow_has_failed_as_by_any_error(shape: str) -> None:
    tries: list[int] = []
    workflow, inner = Workflow("outer"), chain(lambda_named("inside", lambda ctx: 1))
    stage = workflow.sequential("s") if shape == "row" else workflow.parallel("s")

    @stage.agent(retry=Retry(2, delay_seconds=0), on_failure="skip")
    def asks(ctx: Context) -> Any:
        tries.append(ctx.attempt)
        return run(inner, service, "WF-2").value

    @stage.agent(retry=Retry(2, delay_seconds=0))
    async def insists(ctx: Context) -> Any:
        return (await inner.run(service, "WF-2")).value

    with opened() as service:
        lease = service.acquire_lease("WF-2", "somebody")
        with pytest.raises(AgentFailedError, match="LeaseHeldError"):
            run(workflow, service)
        assert tries == [1, 2] and types(service).count("AGENT_FAILED") == 4
        assert recovered(service)["status"] == "failed"
        service.release_lease(lease)
        assert run(workflow, service).results["insists"]


def test_an_agent_whose_own_run_is_lost_is_not_tried_again(tmp_path: Path) -> None:
    tries: list[int] = []

    def agent(ctx: Context) -> None:
        tries.append(ctx.attempt)
        lease = mine.lease_of("WF-1")
        assert lease is not None
        mine.renew_lease(lease, ttl_seconds=0)
        other.acquire_lease("WF-1", "somebody")
        ctx.milestone("is not recorded")

    store = str(tmp_path / "store")
    with holdfast.open(store) as mine, holdfast.open(store) as other:
        with pytest.raises(LeaseLostError):
            run(chain(agent, retry=Retry(3, delay_seconds=0)), mine)
        assert tries == [1] and "AGENT_FAILED" not in types(other)


def test_the_rule_for_confidence_can_be_replaced() -> None:
    def agent(ctx: Context) -> str:
        if ctx.attempt == 1:
            raise ValueError("no")
        return "ok"

    with opened() as service:
        run(
            chain(agent, retry=Retry(2, delay_seconds=0)),
            service,
            confidence_rule=lambda before, attempt, fault: before / 4,
        )
        [failed] = service.events("WF-1", type="AGENT_FAILED")
        assert failed.data["confidence"] == 0.25 and failed.data["confidence_before"] == 1.0


def test_an_error_that_is_not_worth_it_is_not_tried_again() -> None:
    calls = []

    def agent(ctx: Context) -> None:
        calls.append(ctx.attempt)
        raise TypeError("a bug")

    retry = Retry(5, delay_seconds=0, on=(ConnectionError,))
    with opened() as service, pytest.raises(AgentFailedError, match="TypeError: a bug"):
        run(chain(agent, retry=retry), service)
    assert calls == [1]


def test_a_failure_for_good_is_a_checkpoint_with_everything_that_may_help() -> None:
    def agent(ctx: Context) -> None:
        ctx.output("half")
        raise RuntimeError("broken")

    with opened() as service:
        with pytest.raises(AgentFailedError) as caught:
            run(chain(agent), service)
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert kinds(service)[-1] == "error_state"
        state = service.load_latest("WF-1")
        found = service.get_by_id("WF-1@latest")
        assert state is not None and found is not None
        assert found.agent_state["error"]["message"] == "broken"
        assert found.agent_state["partial"] == {"outputs": ["half"]}
        assert state.outputs == [] and state.agent_states["agent"]["status"] == "failed"


def test_a_failed_run_goes_on_where_it_was_once_the_cause_is_mended() -> None:
    calls = []
    broken = [True]

    def first(ctx: Context) -> int:
        calls.append("first")
        return 1

    def second(ctx: Context) -> int:
        calls.append("second")
        if broken:
            raise RuntimeError("broken")
        return ctx.result("first") + 1

    workflow = chain(first, second)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        broken.clear()
        result = run(workflow, service)
    assert result.value == 2 and result.resumed and result.kept == 1 and result.ran == 1
    assert calls == ["first", "second", "second"]


def test_a_workflow_can_go_on_without_an_agent_that_failed() -> None:
    workflow = Workflow("team")

    @workflow.agent(on_failure="skip")
    def optional(ctx: Context) -> None:
        raise RuntimeError("no luck")

    @workflow.agent(after=optional)
    def last(ctx: Context) -> object:
        return ctx.result("optional")

    with opened() as service:
        result = run(workflow, service)
        assert result.is_completed and result.value is None
        state = service.load_latest("WF-1")
        assert state is not None and state.agent_states["optional"]["status"] == "skipped"


def test_an_async_agent_that_shows_no_sign_of_life_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, cancelled = AgentClock(monkeypatch), []

    async def agent(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "ok"
        clock.advance(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "never"

    workflow = Workflow("slow", retry=Retry(2, delay_seconds=0))
    workflow.agent(timeout_seconds=0.05)(agent)
    with opened() as service:
        assert run(workflow, service).value == "ok"
        [failed] = service.events("WF-1", type="AGENT_FAILED")
        assert failed.data["error"]["type"] == "TimeoutError"
    assert cancelled == [True]


def test_a_plain_agent_that_takes_too_long_leaves_no_trace_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, go_on, over = AgentClock(monkeypatch), threading.Event(), threading.Event()
    faults: list[BaseException] = []

    def agent(ctx: Context) -> str:
        if ctx.attempt == 2:
            return "ok"
        clock.advance(1)
        go_on.wait()
        try:
            ctx.decide("too late")
        except BaseException as fault:
            faults.append(fault)
        over.set()
        return "late"

    workflow = Workflow("slow", retry=Retry(2, delay_seconds=0))
    workflow.agent(timeout_seconds=0.05)(agent)
    with opened() as service:
        assert run(workflow, service).value == "ok"
        go_on.set()
        over.wait()
        assert [type(fault).__name__ for fault in faults] == ["AttemptOverError"]
        assert "DECISION_RECORDED" not in types(service)


def test_an_agent_that_shows_itself_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = AgentClock(monkeypatch)

    async def agent(ctx: Context) -> str:
        for _ in range(8):
            clock.advance(0.2)
            # Long enough for the run to look whether it is too late.
            await asyncio.sleep(0.05)
            ctx.heartbeat()
        return "ok"

    workflow = Workflow("alive")
    workflow.agent(timeout_seconds=0.25)(agent)
    with opened() as service:
        assert run(workflow, service).value == "ok"


def test_a_checkpoint_is_made_before_a_risky_agent() -> None:
    told, subscriber = told_to()
    workflow = Workflow("risk")

    @workflow.agent(risky=True)
    def agent(ctx: Context) -> None:
        pass

    with opened() as service:
        run(workflow, service, subscribers=(subscriber,))
    names = [data.get("reason", kind) for kind, data in told]
    assert names.index("before_risky_operation") < names.index("agent_started")


def test_a_result_of_a_type_nobody_registered_fails_the_agent_by_name() -> None:
    def agent(ctx: Context) -> object:
        return object()

    with opened() as service, pytest.raises(AgentFailedError, match="UnsupportedTypeError"):
        run(chain(agent), service)


def test_the_start_of_the_next_in_a_row_is_recorded_with_the_result_before() -> None:
    def first(ctx: Context) -> int:
        return 1

    def second(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise RuntimeError("once")
        return ctx.attempt

    with opened() as service:
        assert run(chain(first, second, retry=Retry(2, delay_seconds=0)), service).value == 2
        events = service.events("WF-1")
        begun = [event.step_id for event in events if event.type == "AGENT_STARTED"]
        [completed] = [event for event in events if event.step_id == "first" and "result" in event.data]
        assert begun == ["first", "second"] and completed.data["next"]["step_id"] == "second"
        assert service.restore_checkpoint(f"WF-1@event:{completed.seq}").agent_states["second"] == {
            "status": "running",
            "attempt": 1,
        }


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_cannot_end_the_process(is_async: bool) -> None:
    def leave(ctx: Context) -> None:
        sys.exit(3)

    async def leave_later(ctx: Context) -> None:
        sys.exit(3)

    agent: Any = leave_later if is_async else leave
    with opened() as service, pytest.raises(AgentFailedError, match=r"sys.exit\(3\)"):
        run(chain(agent), service)


def test_a_failure_says_where_it_was_and_what_cannot_be_stored_is_not_tried_again() -> None:
    calls: list[int] = []

    def agent(ctx: Context) -> object:
        calls.append(1)
        return object()

    def bad(ctx: Context) -> None:
        raise KeyError("missing")

    with opened() as service:
        with pytest.raises(AgentFailedError) as failed:
            run(chain(agent, retry=Retry(3, delay_seconds=0)), service)
        # A place in Holdfast itself would help nobody.
        assert calls == [1] and ".py:" not in failed.value.message
        with pytest.raises(AgentFailedError, match=r"KeyError: 'missing' \(test_steps.py:\d+, in bad\)"):
            run(chain(bad), service, "WF-2")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_result_that_the_store_refuses_fails_its_agent_before_anything_after_it_begins(
    is_async: bool,
) -> None:
    begun: list[str] = []

    def big(ctx: Any) -> str:
        begun.append("big")
        return LARGE

    async def big_async(ctx: Any) -> str:
        return big(ctx)

    def use(ctx: Any) -> None:
        begun.append("use")

    layers = Workflow("layers")
    layers.agent(name="big")(big_async if is_async else big)
    layers.agent(name="use", after="big")(use)
    row = Workflow("row")
    team = row.sequential("row")
    team.agent(name="big")(big_async if is_async else big)
    team.agent(name="use")(use)
    for workflow in (layers, row):
        with make_service(NarrowStore()) as service, pytest.raises(AgentFailedError, match="StateTooLarge"):
            run(workflow, service)
    assert begun == ["big", "big"]


def test_a_run_on_a_full_disk_goes_on_but_for_effects_which_are_tried_again() -> None:
    store, calls, attempts = NarrowStore(), list[str](), list[int]()

    def fill(ctx: Any) -> str:
        store.is_full = True
        return "filled"

    def paid(key: str) -> str:
        calls.append(key)
        return "paid"

    def pay(ctx: Any) -> str:
        attempts.append(ctx.attempt)
        if ctx.attempt == 2:
            store.is_full = False
            service.flush()
        return ctx.effect("pay", paid, unknown="fail")

    with make_service(store, on_fault="degrade") as service:
        workflow = chain(fill, pay, retry=Retry(attempts=2, delay_seconds=0))
        result = run(workflow, service)
    assert result.value == "paid" and len(calls) == 1 and attempts == [1, 2]


@pytest.mark.parametrize("answer", [7, "x", None, ZeroDivisionError("no")])
def test_a_rule_for_confidence_that_is_wrong_hides_no_failure(answer: Any) -> None:
    def rule(before: float, attempt: int, error: BaseException) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    def agent(ctx: Context) -> None:
        raise LookupError("the cause")

    with opened() as service:
        with pytest.raises(AgentFailedError, match="the cause"):
            run(chain(agent), service, confidence_rule=rule)
        [failed] = service.events("WF-1", type="AGENT_FAILED")
        assert failed.data["confidence"] == 0.8


def test_what_cannot_be_stored_keeps_no_checkpoint_of_its_failure_away() -> None:
    def agent(ctx: Context) -> None:
        ctx.output(object())

    with opened() as service:
        with pytest.raises(AgentFailedError, match="object cannot be stored"):
            run(chain(agent), service)
        assert "error_state" in kinds(service)
