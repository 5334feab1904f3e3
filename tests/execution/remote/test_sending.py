"""Running a step elsewhere: the same outcome as here, whatever becomes of the worker or the run."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Retry, RunOptions, RunResult, Workflow
from holdfast.domain.errors import AgentFailedError, ConfigError, InvalidStateError
from holdfast.domain.record import Lease
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.outcome import RunStatus
from tests.execution.clocks import AgentClock, Looks
from tests.execution.engines.elsewhere import Elsewhere, one_agent, run, store_in, taken_over
from tests.execution.engines.odd_errors import Death
from tests.execution.engines.team import happened, leave, team, wait_for


def told(result: Any) -> tuple[Any, ...]:
    """What of a run must not depend on where it ran."""
    metrics = {name: value for name, value in result.metrics.items() if name != "elapsed_seconds"}
    outputs = sorted(result.outputs, key=str)
    return result.status, result.results, result.value, metrics, outputs, result.confidence


@dataclass(frozen=True, slots=True)
class Both:
    """One run in this process, and one whose agents ran elsewhere."""

    here: Path
    there: Path
    local: RunResult
    remote: RunResult


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    return Both(
        here,
        there,
        run(team(), store_in(here), {"folder": str(here)}),
        run(team(Elsewhere()), store_in(there), {"folder": str(there)}),
    )


def state_of(url: str, workflow_id: str = "WF-1") -> Any:
    with holdfast.open(url, create=False) as service:
        return service.load_latest(workflow_id)


def events_of(url: str, workflow_id: str, kind: str) -> list[Any]:
    with holdfast.open(url, create=False) as service:
        return service.events(workflow_id, type=kind)


def test_a_step_that_runs_elsewhere_has_the_outcome_of_one_that_runs_here(both: Both) -> None:
    assert told(both.remote) == told(both.local)
    one, other = state_of(store_in(both.here)), state_of(store_in(both.there))
    assert sorted(one.messages, key=str) == sorted(other.messages, key=str)
    assert one.agent_states.keys() == other.agent_states.keys()
    assert one.agent_states["research[kelp]"]["artifacts"] == ["kelp.md"]
    assert other.agent_states["research[kelp]"]["artifacts"] == ["kelp.md"]
    said = sorted(decision["description"] for decision in other.decisions)
    assert said == sorted(decision["description"] for decision in one.decisions)


def test_keys_of_effects_are_the_same_wherever_an_agent_runs(both: Both) -> None:
    assert sorted(happened(both.here, "effect")) == sorted(happened(both.there, "effect"))


def test_reports_of_workers_are_in_the_report_of_the_run(both: Both) -> None:
    reports = events_of(store_in(both.there), "WF-1", "REPORT_ADDED")
    assert sorted(report.data["title"] for report in reports) == ["kelp", "sand", "tide"]


def test_an_agent_gets_the_results_it_comes_after_and_no_others(tmp_path: Path) -> None:
    workflow = Workflow("far", engines={"there": Elsewhere()})
    first = workflow.agent(name="first")(lambda ctx: 1)
    second = workflow.agent(name="second", after=first)(lambda ctx: 2)
    workflow.agent(name="third", after=second, engine="there")(
        lambda ctx: (ctx.result("second"), ctx.result("first"))
    )
    with pytest.raises(AgentFailedError, match="the result of 'first' was not sent along"):
        run(workflow, store_in(tmp_path))


def test_an_agent_behind_a_barrier_gets_what_is_before_it(tmp_path: Path) -> None:
    workflow = Workflow("far", engines={"there": Elsewhere()})
    workflow.agent(name="first")(lambda ctx: 1)
    workflow.agent(name="second")(lambda ctx: 2)
    workflow.barrier("all")
    workflow.agent(name="third", engine="there")(lambda ctx: ctx.result("first") + ctx.result("second"))
    assert run(workflow, store_in(tmp_path)).value == 3


def test_a_loop_with_agents_elsewhere_hears_its_evaluator(tmp_path: Path) -> None:
    workflow = Workflow("far", engines={"there": Elsewhere()})
    loop = workflow.loop("improve", limit=5)
    loop.agent(name="draft", engine="there")(lambda ctx: f"{ctx.iteration} after {ctx.feedback}")
    loop.evaluator(_judge)
    result = run(workflow, store_in(tmp_path))
    assert result.results["draft#2"] == "2 after {'content': False, 'of': '1 after None'}"
    assert "draft#3" not in result.results


def _judge(ctx: Any) -> dict[str, Any]:
    return {"content": ctx.iteration > 1, "of": ctx.result("draft")}


def test_what_a_worker_raised_is_what_the_run_retries(tmp_path: Path) -> None:
    calls = []

    def fickle(ctx: Any) -> str:
        calls.append(ctx.attempt)
        if ctx.attempt < 3:
            raise ConnectionError("not now")
        return "well"

    retry = Retry(attempts=3, delay_seconds=0, on=(ConnectionError,))
    result = run(one_agent(fickle, Elsewhere(), retry=retry), store_in(tmp_path))
    assert (result.value, calls) == ("well", [1, 2, 3])
    failures = events_of(store_in(tmp_path), "WF-1", "AGENT_FAILED")
    assert [event.data["error"]["type"] for event in failures] == ["ConnectionError"] * 2
    assert "On a worker" in failures[0].data["error"]["trace"]


def test_what_an_attempt_said_before_it_failed_for_good_is_in_the_journal_of_the_run(tmp_path: Path) -> None:
    def fails(ctx: Any) -> None:
        ctx.decide("to try")
        raise ConnectionError("not now")

    with pytest.raises(AgentFailedError, match="not now"):
        run(one_agent(fails, Elsewhere()), store_in(tmp_path))
    decided = events_of(store_in(tmp_path), "WF-1", "DECISION_RECORDED")
    assert [event.data["description"] for event in decided] == ["to try"]


def test_a_lost_worker_is_followed_by_another_that_goes_on_from_the_milestone(tmp_path: Path) -> None:
    engine = Elsewhere()

    def lose(function: Any) -> Any:
        engine.meanwhile = lambda other: other()
        with suppress(Death):
            function()
        raise WorkerLostError("gone")

    def long(ctx: Any) -> Any:
        if ctx.resumed_from is None:
            ctx.milestone("half", {"n": 21})
            raise Death
        return ctx.resumed_from.state["n"] * 2

    engine.meanwhile = lose
    result = run(one_agent(long, engine), store_in(tmp_path))
    assert result.value == 42
    assert "its worker was lost" in result.warnings[0]


def test_a_worker_that_is_always_lost_is_a_failure_in_the_end(tmp_path: Path) -> None:
    engine = Elsewhere()

    def lose(function: Any) -> Any:
        raise WorkerLostError("gone")

    engine.meanwhile = lose
    with pytest.raises(AgentFailedError, match="gone"):
        run(one_agent(lambda ctx: 1, engine, name="lost"), store_in(tmp_path))


def test_a_finished_step_is_adopted_though_nobody_was_told(tmp_path: Path) -> None:
    """The worker recorded its result, and was lost before it could say so."""
    engine = Elsewhere()

    def lose(function: Any) -> Any:
        function()
        raise WorkerLostError("gone")

    engine.meanwhile = lose
    calls = []

    def count(ctx: Any) -> str:
        calls.append(ctx.attempt)
        ctx.decide("once")
        ctx.output("made")
        return "counted"

    result = run(one_agent(count, engine), store_in(tmp_path))
    assert (result.value, calls, result.outputs) == ("counted", [1], ["made"])
    assert [one["description"] for one in state_of(store_in(tmp_path)).decisions] == ["once"]


def test_a_run_that_comes_later_waits_for_the_worker_of_the_one_before(tmp_path: Path) -> None:
    """The first run is gone without a word, as a killed one is; its worker is at work."""
    folder = str(tmp_path)
    calls = []

    def slow(ctx: Any) -> str:
        calls.append(ctx.attempt)
        ctx.decide("begun")
        leave(folder, "at")
        wait_for(folder, "go")
        return "late"

    async def abandoned() -> None:
        with holdfast.open(store_in(tmp_path)) as service, holdfast.open(store_in(tmp_path)) as other:
            running = asyncio.ensure_future(one_agent(slow, Elsewhere()).run(service, "WF-1"))
            await asyncio.to_thread(wait_for, folder, "at")
            await taken_over(running, other)

    asyncio.run(abandoned())
    later = Elsewhere()
    threading.Timer(0.2, leave, (folder, "go")).start()
    result = run(one_agent(slow, later), store_in(tmp_path))
    assert (result.value, calls, later.errands) == ("late", [1], [])
    assert [one["description"] for one in state_of(store_in(tmp_path)).decisions] == ["begun"]


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_worker_of_the_run_before_that_left_before_it_began_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_killed: bool
) -> None:
    """It has taken the step, and was killed, or heard that its run is gone, before it recorded anything."""
    store, nobody, looks = store_in(tmp_path), Elsewhere(), Looks(monkeypatch)
    sent = threading.Event()

    def never(function: Any) -> None:
        sent.set()
        threading.Event().wait()

    nobody.meanwhile = never

    async def abandoned() -> None:
        with holdfast.open(store) as own:
            running = asyncio.ensure_future(one_agent(lambda ctx: 7, nobody, name="step").run(own, "WF-1"))
            await asyncio.to_thread(sent.wait)
            await taken_over(running, other)

    def leave_it(taken: Lease) -> None:
        looks.wait()
        if is_killed:
            other.renew_lease(taken, ttl_seconds=0)
        else:
            other.release_lease(taken)

    with holdfast.open(store) as other:
        asyncio.run(abandoned())
        taken = other.acquire_lease("WF-1~step", "worker")
        leaving = threading.Thread(target=leave_it, args=(taken,))
        leaving.start()
        assert run(one_agent(lambda ctx: 7, Elsewhere(), name="step"), store).value == 7
        leaving.join()


def test_an_agent_that_takes_too_long_is_fenced_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, clock, looks = str(tmp_path), AgentClock(monkeypatch), Looks(monkeypatch)

    def slow(ctx: Any) -> str:
        if ctx.attempt > 1:
            return "second"
        # To wait for a worker is no silence: the run has to know that this one has begun.
        looks.wait()
        clock.advance(1)
        wait_for(folder, "go")
        ctx.milestone("too late")
        return "first"

    engine = Elsewhere()
    retry = Retry(attempts=2, delay_seconds=0)
    result = run(one_agent(slow, engine, timeout_seconds=0.1, retry=retry), store_in(tmp_path))
    assert (result.value, engine.cancelled) == ("second", 1)
    leave(folder, "go")
    assert events_of(store_in(tmp_path), "WF-1~slow", "MILESTONE_REACHED") == []


def test_an_agent_that_shows_itself_is_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = AgentClock(monkeypatch), Looks(monkeypatch)

    def slow(ctx: Any) -> str:
        for _ in range(12):
            clock.advance(0.08)
            ctx.heartbeat()
            looks.wait()
        return "done"

    assert run(one_agent(slow, Elsewhere(), timeout_seconds=0.1), store_in(tmp_path)).value == "done"


def test_a_cancelled_run_ends_the_journals_of_its_steps(tmp_path: Path) -> None:
    folder = str(tmp_path)

    def slow(ctx: Any) -> None:
        leave(folder, "at")
        wait_for(folder, "go")

    async def cancelled() -> Any:
        with holdfast.open(store_in(tmp_path)) as service:
            running = asyncio.ensure_future(
                one_agent(slow, Elsewhere()).run(service, "WF-1", options=RunOptions(poll_seconds=0.02))
            )
            await asyncio.to_thread(wait_for, folder, "at")
            service.requests.put("WF-1", "cancel", actor="ann")
            result = await running
            leave(folder, "go")
            return result

    assert asyncio.run(cancelled()).status is RunStatus.CANCELLED
    child = state_of(store_in(tmp_path), "WF-1~slow")
    assert (child.status, child.resumable) == ("cancelled", False)


def test_progress_and_blockers_of_a_worker_are_told_to_subscribers(tmp_path: Path) -> None:
    heard = []

    def slow(ctx: Any) -> None:
        ctx.progress(1.0, "all of it")
        ctx.blocked("the tide")
        ctx.blocked(None)

    run(
        one_agent(slow, Elsewhere()),
        store_in(tmp_path),
        subscribers=(lambda kind, data: heard.append((kind, data.get("share"), data.get("reason"))),),
    )
    assert [one for one in heard if one[0] in ("agent_progress", "agent_blocked")] == [
        ("agent_progress", 1.0, None),
        ("agent_blocked", None, "the tide"),
        ("agent_blocked", None, None),
    ]


def test_a_store_in_memory_is_refused(tmp_path: Path) -> None:
    with holdfast.open("memory:") as service, pytest.raises(AgentFailedError) as caught:
        run(one_agent(lambda ctx: 1, Elsewhere(), name="far"), service)
    assert isinstance(caught.value.__cause__, ConfigError)
    assert "cannot open a store in memory" in str(caught.value)


def test_a_workflow_that_has_the_name_of_a_step_is_left_alone(tmp_path: Path) -> None:
    with holdfast.open(store_in(tmp_path)) as service:
        service.create_checkpoint("WF-1~far", {"mine": True})
        with pytest.raises(AgentFailedError) as caught:
            run(one_agent(lambda ctx: 1, Elsewhere(), name="far"), service)
        assert isinstance(caught.value.__cause__, InvalidStateError)
        latest = service.load_latest("WF-1~far")
        assert latest is not None and latest.context == {"mine": True}


def test_what_attempts_in_the_run_itself_have_left_goes_along(tmp_path: Path) -> None:
    """An agent that moves to an engine goes on from its milestone there."""

    def long(ctx: Any) -> Any:
        if ctx.resumed_from is None:
            ctx.milestone("half", 21)
            raise ConnectionError("gone")
        return ctx.resumed_from.state * 2

    workflow = Workflow("alone")
    workflow.agent(long)
    with pytest.raises(AgentFailedError):
        run(workflow, store_in(tmp_path))
    assert run(one_agent(long, Elsewhere()), store_in(tmp_path)).value == 42
