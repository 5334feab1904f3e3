"""What the documents ask of a run: triggers, hooks and scenarios, each against the real executor."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import (
    AgentFailedError,
    CheckpointNotFoundError,
    NoValidCheckpointError,
    Retry,
    Triggers,
    Workflow,
)
from holdfast.adapters.memory import MemoryStore
from holdfast.execution.adaptive import AdaptiveInterval
from holdfast.execution.context import Context
from holdfast.execution.driving import Driver, OnLoop
from tests.execution.runs import Told, chain, kinds, opened, run, told_to, types

NOTHING = Triggers(
    phase_completed=False,
    evaluation_completed=False,
    confidence_threshold=None,
    error_encountered=False,
    memory_pressure=None,
    user_requested=False,
    debug_breakpoint=False,
    before_risky_operation=False,
)


def reasons(told: Told) -> list[str]:
    return [data["reason"] for kind, data in told if kind == "checkpoint_saved"]


def judged(*scores: float, triggers: Triggers | None = None) -> Workflow:
    """Declare a loop whose evaluator is that sure, round by round, and content in the last."""
    workflow = Workflow("judged", triggers=triggers)
    loop = workflow.loop("improve", limit=len(scores))

    @loop.agent
    def draft(ctx: Context) -> int:
        return ctx.iteration

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        ctx.confidence(scores[ctx.iteration - 1])
        return {"content": ctx.iteration == len(scores), "score": scores[ctx.iteration - 1]}

    return workflow


def saved_by(workflow: Workflow) -> list[str]:
    """Run a workflow; answer why checkpoints were made between its first and its last."""
    told, subscriber = told_to()
    with opened() as service:
        run(workflow, service, subscribers=(subscriber,))
    assert (reasons(told)[0], reasons(told)[-1]) == ("started", "completed")
    return reasons(told)[1:-1]


def one(ctx: Context) -> int:
    return 1


def two(ctx: Context) -> int:
    return 2


# -- triggers --------------------------------------------------------------------------------


def test_with_every_trigger_switched_off_only_begin_and_end_are_checkpoints() -> None:
    def agent(ctx: Context) -> None:
        ctx.checkpoint()
        ctx.breakpoint()
        ctx.before_risk()

    assert saved_by(chain(agent, one, triggers=NOTHING)) == []
    assert saved_by(judged(0.2, 0.9, triggers=NOTHING)) == []


def test_a_finished_specialist_is_a_checkpoint_where_that_is_asked_for() -> None:
    assert saved_by(chain(one, two, triggers=Triggers(specialist_finished=True))) == [
        "specialist_finished",
        "specialist_finished",
    ]


def test_each_judgement_of_an_evaluator_is_a_checkpoint() -> None:
    assert saved_by(judged(0.8, 0.9)) == ["evaluation_completed", "evaluation_completed"]


def test_a_confidence_that_crosses_the_threshold_from_round_to_round_is_a_checkpoint() -> None:
    triggers = Triggers(confidence_threshold=0.75)
    assert saved_by(judged(0.9, 0.6, 0.5, 0.8, triggers=triggers)) == [
        "evaluation_completed",
        "confidence_threshold_crossed",
        "evaluation_completed",
        "confidence_threshold_crossed",
    ]


def test_high_memory_pressure_is_a_checkpoint_when_the_next_agent_finishes(monkeypatch) -> None:
    monkeypatch.setattr("holdfast.execution.opening._MEMORY", lambda: 0.97)
    assert saved_by(chain(one, two)) == ["memory_pressure_high"]


def test_an_interval_that_has_passed_is_a_checkpoint_when_an_agent_finishes() -> None:
    assert saved_by(chain(one, two, triggers=Triggers(interval_seconds=1e-9))) == ["interval", "interval"]


def test_an_interval_that_was_learnt_is_a_checkpoint_and_what_it_cost_is_learnt(monkeypatch) -> None:
    monkeypatch.setattr(AdaptiveInterval, "interval_seconds", property(lambda interval: 0.0))
    told, subscriber = told_to()
    with opened() as service:
        run(chain(one, two, triggers=Triggers(adaptive=True)), service, subscribers=(subscriber,))
        state = service.load_latest("WF-1")
    assert reasons(told)[1:-1] == ["adaptive", "adaptive"]
    assert state is not None and state.metadata["adaptive"]["cost_seconds"] > 0


# -- hooks of the orchestrator ---------------------------------------------------------------


def test_before_a_phase_starts_there_is_a_checkpoint_with_all_phases_before_it() -> None:
    seen: list[tuple[str, int | None, list[str]]] = []
    workflow = Workflow("phases")

    def look(ctx: Context) -> None:
        newest = service.list_checkpoints("WF-1")[0]
        state = service.load_latest("WF-1")
        assert state is not None
        seen.append((str(newest.type), newest.phase, [task["id"] for task in state.tasks]))

    workflow.agent(name="first")(look)
    workflow.agent(name="second", after="first")(look)
    workflow.agent(name="third", after="second")(look)
    with opened() as service:
        run(workflow, service)
    assert seen == [
        ("workflow_start", 0, []),
        ("stage_complete", 1, ["first"]),
        ("stage_complete", 2, ["first", "second"]),
    ]


def test_a_launched_specialist_is_on_record_before_it_does_anything(tmp_path: Path) -> None:
    place = str(tmp_path / "store")

    def agent(ctx: Context) -> list[str]:
        # Whoever looks from outside sees only what is durable.
        with holdfast.open(place, read_only=True, audit=False) as outside:
            state = outside.restore_checkpoint(f"WF-1@event:{outside.events('WF-1')[-1].seq}")
            return [types(outside)[-1], state.agent_states["agent"]["status"]]

    assert chain(agent).run_sync(place, "WF-1").value == ["AGENT_STARTED", "running"]


def test_a_decision_is_recorded_with_its_reasons_in_the_journal_and_in_the_trail() -> None:
    def agent(ctx: Context) -> None:
        ctx.decide("ask one more", "0.73 is below 0.75", 0.88, ["ask a person", "go on all the same"])

    with opened(session="s-1") as service:
        run(chain(agent), service)
        state = service.load_latest("WF-1")
        [told] = service.audit.query_events(event_types=["AGENT_DECISION"])
    assert state is not None
    [decision] = state.decisions
    assert (decision["agent"], decision["rationale"]) == ("agent", "0.73 is below 0.75")
    assert decision["alternatives"] == ["ask a person", "go on all the same"]
    assert told.data is not None
    assert (told.data["rationale"], told.data["confidence"]) == ("0.73 is below 0.75", 0.88)


def test_decisions_ride_on_the_commit_of_the_result_they_belong_to() -> None:
    def agent(ctx: Context) -> int:
        for number in range(5):
            ctx.decide(f"number {number}")
        return len(service.events("WF-1", type="DECISION_RECORDED"))

    with opened() as service:
        assert run(chain(agent), service).value == 0
        assert len(service.events("WF-1", type="DECISION_RECORDED")) == 5


def test_a_recovered_run_goes_on_in_the_phase_it_was_in_and_says_so() -> None:
    calls: list[str] = []
    workflow, broken = Workflow("phases"), [True]

    @workflow.agent
    def first(ctx: Context) -> str:
        calls.append("first")
        return "done"

    @workflow.agent(after=first)
    def second(ctx: Context) -> str:
        calls.append("second")
        if broken:
            raise RuntimeError("broken")
        return f"after {ctx.result('first')}"

    told, subscriber = told_to()
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        broken.clear()
        result = run(workflow, service, subscribers=(subscriber,))
        assert "WORKFLOW_RECOVERED" in types(service)
    assert calls == ["first", "second", "second"] and result.value == "after done"
    assert result.resumed and (result.kept, result.ran) == (1, 1)
    assert told[0] == (
        "run_started",
        {"workflow_id": "WF-1", "workflow": "phases", "resumed": True, "changes": []},
    )


# -- hooks of specialists --------------------------------------------------------------------


def interrupted(agent: Callable[[Context], Any]) -> tuple[Any, list[Any]]:
    """Run an agent whose first attempt is cut short, by a process that ends; answer the state it left."""
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service)
        result = service.recover_workflow("WF-1")
        assert result.state is not None
        return result.state, service.events("WF-1")


def test_progress_of_a_specialist_is_in_the_state_it_leaves() -> None:
    def agent(ctx: Context) -> None:
        ctx.progress(0.4, "reading page 4 of 10")
        raise RuntimeError("cut short")

    state, _ = interrupted(agent)
    assert (state.agent_states["agent"]["progress"], state.agent_states["agent"]["doing"]) == (
        0.4,
        "reading page 4 of 10",
    )


def test_partial_outputs_of_a_specialist_are_kept_and_are_no_outputs_of_the_workflow() -> None:
    def agent(ctx: Context) -> None:
        ctx.milestone("half", {"page": 5}, partial=["first finding"])
        ctx.output("half a report")
        raise RuntimeError("cut short")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service)
        [error] = [meta for meta in service.list_checkpoints("WF-1") if meta.type == "error_state"]
        found = service.get_by_id(error.id)
        state = service.load_latest("WF-1")
    assert found is not None and found.agent_state["partial"] == {"outputs": ["half a report"]}
    assert state is not None and list(state.outputs) == []
    assert state.agent_states["agent"]["milestone"]["partial"] == ["first finding"]


def test_the_history_of_a_specialists_confidence_is_in_the_journal() -> None:
    def agent(ctx: Context) -> str:
        ctx.confidence(0.5 + ctx.attempt / 10)
        if ctx.attempt < 3:
            raise ConnectionError("not yet")
        return "ok"

    with opened() as service:
        run(chain(agent, retry=Retry(3, delay_seconds=0)), service)
        history = [
            (event.data["attempt"], event.data["confidence"])
            for event in service.events("WF-1")
            if event.type in ("AGENT_FAILED", "AGENT_COMPLETED")
        ]
        state = service.load_latest("WF-1")
    assert [(attempt, round(value, 2)) for attempt, value in history] == [(1, 0.48), (2, 0.56), (3, 0.8)]
    assert state is not None and state.confidence == {"agent": 0.8}


def test_blockers_of_a_specialist_are_in_the_state_it_leaves() -> None:
    def agent(ctx: Context) -> None:
        ctx.blocked("no access to the archive")
        raise RuntimeError("cut short")

    state, _ = interrupted(agent)
    assert state.agent_states["agent"]["blockers"] == ["no access to the archive"]


def test_a_specialist_that_is_restarted_has_its_task_its_progress_and_its_confidence() -> None:
    workflow, broken = Workflow("fan"), [True]

    @workflow.agent(each=lambda run: ["a", "b"], key=str)
    def read(ctx: Context, topic: str) -> dict[str, Any]:
        known = ctx.resumed_from
        pages = known.state["pages"] if known else 0
        if topic == "b" and broken:
            ctx.confidence(0.5)
            ctx.milestone("half", {"pages": 3})
            raise RuntimeError("cut short")
        return {"topic": topic, "from": pages, "attempt": ctx.attempt}

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        recovered = service.recover_workflow("WF-1")
        assert recovered.state is not None and recovered.state.confidence == {"read[b]": 0.4}
        broken.clear()
        result = run(workflow, service)
    assert result.value == [
        {"topic": "a", "from": 0, "attempt": 1},
        {"topic": "b", "from": 3, "attempt": 2},
    ]


# -- hooks of the evaluator ------------------------------------------------------------------


def test_an_evaluation_that_was_cut_short_goes_on_with_its_scores_issues_and_feedback() -> None:
    scored: list[str] = []
    workflow, broken = Workflow("judged"), [True]
    loop = workflow.loop("improve", limit=2)

    @loop.agent
    def draft(ctx: Context) -> str:
        return f"draft {ctx.iteration}"

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        known = ctx.resumed_from
        scores = dict(known.partial["scores"]) if known else {}
        issues = list(known.partial["issues"]) if known else []
        for aspect in ("facts", "style", "length"):
            if aspect not in scores:
                scored.append(f"{aspect} {ctx.iteration}")
                scores[aspect] = 0.5
                issues.append(f"{aspect} could be better")
                ctx.milestone(aspect, partial={"scores": scores, "issues": issues, "feedback": "so far"})
            if aspect == "style" and broken:
                raise RuntimeError("cut short")
        return {"content": ctx.iteration == 2, "scores": scores, "issues": issues}

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        left = service.load_latest("WF-1")
        broken.clear()
        result = run(workflow, service)
    assert left is not None
    assert left.agent_states["judge"]["milestone"]["partial"] == {
        "scores": {"facts": 0.5, "style": 0.5},
        "issues": ["facts could be better", "style could be better"],
        "feedback": "so far",
    }
    # Nothing is scored twice, and the judgement is that of an evaluation nobody cut short.
    assert scored == [f"{aspect} {number}" for number in (1, 2) for aspect in ("facts", "style", "length")]
    assert result.results["judge"]["scores"] == result.results["judge#2"]["scores"]


def test_the_history_of_iterations_is_kept_with_every_evaluation() -> None:
    with opened() as service:
        run(judged(0.6, 0.7, 0.9), service)
        state = service.load_latest("WF-1")
    assert state is not None
    assert [
        (told["iteration"], told["content"], told["evaluation"]["score"])
        for told in state.stage_states["improve"]["iterations"]
    ] == [(1, False, 0.6), (2, False, 0.7), (3, True, 0.9)]


def test_a_judgement_that_was_committed_is_never_made_again() -> None:
    workflow, rounds, broken = Workflow("judged"), [], [True]
    loop = workflow.loop("improve", limit=3)

    @loop.agent
    def draft(ctx: Context) -> int:
        if ctx.iteration == 2 and broken:
            raise RuntimeError("cut short")
        return ctx.iteration

    @loop.evaluator
    def judge(ctx: Context) -> dict[str, Any]:
        rounds.append((ctx.iteration, [told["evaluation"]["score"] for told in ctx.history]))
        return {"content": ctx.iteration == 2, "score": ctx.iteration}

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        broken.clear()
        run(workflow, service)
    assert rounds == [(1, []), (2, [1])]


def test_scores_can_be_computed_anew_on_a_fork() -> None:
    workflow, factor = Workflow("judged"), [1]
    loop = workflow.loop("improve", limit=1)
    loop.agent(one)

    @loop.evaluator
    def judge(ctx: Context) -> int:
        return ctx.result("one") * factor[0]

    with opened() as service:
        assert run(workflow, service).value == 1
        factor[0] = 7
        again = asyncio.run(workflow.rerun_from(service, "WF-1", "judge", new_workflow_id="WF-2"))
        assert again.value == 7 and run(workflow, service).value == 1


# -- scenarios -------------------------------------------------------------------------------


def test_what_fails_for_good_leaves_the_state_before_it_to_go_on_from() -> None:
    def agent(ctx: Context) -> None:
        ctx.message("I am nearly there")
        ctx.remember(key="value")
        ctx.metrics(tokens=10)
        raise RuntimeError("no")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(one, agent, retry=Retry(3, delay_seconds=0)), service)
        before = service.restore_checkpoint("WF-1@1")
        after = service.load_latest("WF-1")
        attempts = [event.data["attempt"] for event in service.events("WF-1", type="AGENT_FAILED")]
    assert after is not None and attempts == [1, 2, 3]
    assert [task["id"] for task in after.tasks] == ["one"]
    assert (after.messages, after.context) == (before.messages, before.context)
    assert "tokens" not in after.metrics and after.resumable is not False


CRASHING = """
import os, sys, holdfast
team = holdfast.Workflow("crash")

@team.agent
def plan(ctx):
    print("plan", flush=True)
    return {"topics": 2}

@team.agent(after=plan)
def write(ctx):
    if ctx.attempt == 1:
        os.kill(os.getpid(), 9)
    return ctx.result("plan")["topics"]

print(team.run_sync(sys.argv[1], "WF-1").value)
"""


def test_a_crash_is_found_at_start_up_verified_recovered_and_told(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CRASHING, str(tmp_path / "store")]
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    assert died.returncode == -9 and died.stdout == "plan\n"
    with holdfast.open(str(tmp_path / "store")) as service:
        [found] = service.incomplete_workflows()
        assert found.workflow_id == "WF-1"
        assert service.validate_checkpoint("WF-1@latest").valid
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == "2\n"
    with holdfast.open(str(tmp_path / "store")) as service:
        assert "WORKFLOW_RECOVERED" in types(service) and service.incomplete_workflows() == []


def test_an_answer_that_comes_before_anybody_waits_for_it_is_not_missed(monkeypatch) -> None:
    answered, met = threading.Event(), Driver._met

    def met_late(driver: Driver, need: Any) -> Any:
        # The question is recorded by now, and nobody waits yet.
        if isinstance(need, OnLoop):
            service.requests.put("WF-1", "approval", actor="ann", data={"granted": True})
            assert answered.wait(60)
        return met(driver, need)

    def notice(kind: str, data: Any) -> None:
        if kind == "approval_answered":
            answered.set()

    def agent(ctx: Context) -> str:
        return str(ctx.approve("Go on?").by)

    monkeypatch.setattr(Driver, "_met", met_late)
    with opened() as service:
        assert run(chain(agent), service, poll_seconds=0.01, subscribers=(notice,)).value == "ann"


# -- acceptance criteria ---------------------------------------------------------------------


def test_a_state_that_is_resumed_is_the_state_that_was_left() -> None:
    broken = [True]

    def talk(ctx: Context) -> tuple[int, ...]:
        ctx.message("hello")
        ctx.decide("be brief")
        ctx.remember(tone={"warm", "short"})
        return (1, 2)

    def stop(ctx: Context) -> Any:
        if broken:
            raise RuntimeError("not yet")
        return ctx.shared["tone"], ctx.result("talk")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(talk, stop), service)
        left = service.load_latest("WF-1")
        back = service.recover_workflow("WF-1").state
        assert left is not None and back is not None
        for name in ("messages", "tasks", "decisions", "context"):
            assert getattr(left, name) == getattr(back, name)
        broken.clear()
        assert run(chain(talk, stop), service).value == ({"warm", "short"}, (1, 2))


def test_every_checkpoint_has_an_id_that_subscribers_hear_and_that_leads_back_to_it() -> None:
    told, subscriber = told_to()
    with opened() as service:
        run(judged(0.6, 0.9), service, subscribers=(subscriber,))
        ids = [data["checkpoint_id"] for kind, data in told if kind == "checkpoint_saved"]
        assert ids == [str(meta.id) for meta in reversed(service.list_checkpoints("WF-1"))]
        assert len({meta.id.uuid for meta in service.list_checkpoints("WF-1")}) == len(ids)
        assert service.restore_checkpoint(ids[1]).current_step == 2


def test_old_checkpoints_of_a_run_are_pruned_and_the_rest_can_be_resumed_from() -> None:
    agents = [_numbered(number) for number in range(12)]
    workflow = chain(*agents, triggers=Triggers(specialist_finished=True))
    with opened() as service:
        run(workflow, service)
        assert len(service.list_checkpoints("WF-1")) == 14
        service.prune_checkpoints("WF-1", retain_count=5, retain_days=0)
        kept = service.list_checkpoints("WF-1")
        assert len(kept) == 5
        assert service.restore_checkpoint(str(kept[-1].id)).current_step == 9


def _numbered(number: int) -> Callable[[Context], int]:
    def agent(ctx: Context) -> int:
        return number

    agent.__name__ = f"agent{number:02d}"
    return agent


def test_a_typical_checkpoint_is_below_100_kilobytes_and_a_save_writes_what_changed(tmp_path: Path) -> None:
    text = "x" * 2_000
    workflow = Workflow("typical", triggers=Triggers(specialist_finished=True))

    @workflow.agent(each=lambda run: range(40), concurrency=1)
    def agent(ctx: Context, number: int) -> str:
        return f"{number} {text}"

    @workflow.agent(after=agent)
    def end(ctx: Context) -> str:
        return "done"

    place = tmp_path / "store"
    workflow.run_sync(str(place), "WF-1")
    with holdfast.open(str(place), read_only=True, audit=False) as service:
        newest = service.list_checkpoints("WF-1")[0]
    lines = [line for path in place.rglob("*.deltas.jsonl") for line in path.read_bytes().splitlines()]
    # A record of an agent that says no type is of its completion.
    written = [len(line) for line in lines if b'"agent":"' in line and b'"type":"' not in line]
    assert 80_000 < newest.size_bytes < 100_000
    assert len(written) > 30 and max(written) < 6_000


# -- error handling --------------------------------------------------------------------------


def test_a_checkpoint_that_cannot_be_saved_is_told_and_stops_nobody(caplog) -> None:
    def large(ctx: Context) -> str:
        return "x" * 60_000

    told, subscriber = told_to()
    with opened(limit_bytes=50_000) as service, caplog.at_level(logging.WARNING, "holdfast"):
        workflow = chain(large, two, triggers=Triggers(specialist_finished=True))
        result = run(workflow, service, subscribers=(subscriber,))
    assert result.value == 2 and result.is_completed
    failed = [data for kind, data in told if kind == "checkpoint_failed"]
    assert failed and "the limit is 50000" in failed[0]["error"]
    assert any("a checkpoint of WF-1 failed" in message for message in caplog.messages)


def test_a_checkpoint_that_is_not_there_is_an_error() -> None:
    with opened() as service:
        run(chain(one), service)
        for name in ("WF-1@99", "WF-9@1"):
            with pytest.raises(CheckpointNotFoundError):
                asyncio.run(chain(one).resume_from_checkpoint(service, name, new_workflow_id="WF-2"))


def damaged_run(place: Path) -> Workflow:
    """Leave a run behind that failed, with each of its checkpoints damaged on disk."""
    workflow = chain(one, _failing)
    with holdfast.open(str(place)) as service, pytest.raises(AgentFailedError):
        run(workflow, service)
    for path in (place / "checkpoints").rglob("*"):
        if path.suffix in (".json", ".jsonl"):
            path.write_bytes(path.read_bytes().replace(b"sha256:", b"sha256:0"))
    return workflow


def _failing(ctx: Context) -> None:
    raise RuntimeError("no")


def test_a_run_of_which_nothing_verifies_is_refused(tmp_path: Path) -> None:
    workflow = damaged_run(tmp_path / "store")
    with holdfast.open(str(tmp_path / "store")) as service, pytest.raises(NoValidCheckpointError):
        run(workflow, service)


def test_a_run_of_which_nothing_verifies_starts_over_where_that_is_configured(tmp_path: Path) -> None:
    damaged_run(tmp_path / "store")
    with holdfast.open(str(tmp_path / "store"), on_no_valid="fresh") as service:
        result = run(chain(one, two), service)
    assert result.value == 2 and result.warnings


# -- three layers of persistence -------------------------------------------------------------


def test_the_log_of_events_tells_every_step_who_took_it_and_what_it_cost(tmp_path: Path) -> None:
    def agent(ctx: Context) -> int:
        ctx.metrics(tokens=120, cost_usd=0.002)
        return ctx.spawn(two)

    place = tmp_path / "store"
    chain(agent).run_sync(str(place), "WF-1")
    [log] = (place / "events").rglob("*.jsonl")
    lines = log.read_text("utf-8").splitlines()
    with holdfast.open(str(place), read_only=True, audit=False) as service:
        events = service.events("WF-1")
    assert len(lines) == len(events)
    told = [event for event in events if event.type.startswith("AGENT")]
    assert [(event.type, event.step_id, event.parent_id) for event in told] == [
        ("AGENT_STARTED", "agent", None),
        ("AGENT_STARTED", "agent>two", "agent"),
        ("AGENT_COMPLETED", "agent>two", "agent"),
        ("AGENT_COMPLETED", "agent", None),
    ]
    assert told[-1].data["metrics"] == {"tokens": 120, "cost_usd": 0.002}


def test_checkpoints_of_a_run_can_be_checked_without_us(tmp_path: Path) -> None:
    chain(one, two).run_sync(str(tmp_path / "store"), "WF-1")
    [sums] = (tmp_path / "store").rglob("SHA256SUMS")
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.name], cwd=sums.parent, check=True)


def test_the_progress_report_is_readable_while_the_run_is_stuck(tmp_path: Path) -> None:
    def research(ctx: Context) -> None:
        ctx.report("Grip", "A holdfast only holds on.", ["the sea"])

    place = tmp_path / "store"
    with pytest.raises(AgentFailedError):
        chain(research, _failing).run_sync(str(place), "WF-1")
    [report] = (place / "progress").glob("*.md")
    assert "## Grip\n\nA holdfast only holds on.\n\n**Sources:**\n- the sea\n" in report.read_text("utf-8")


def test_an_id_that_nobody_ran_is_a_fresh_start() -> None:
    with opened() as service:
        result = run(chain(one), service)
        assert not result.resumed and (result.kept, result.ran) == (0, 1)
        assert kinds(service)[0] == "workflow_start"


# -- what it costs ---------------------------------------------------------------------------


def repeated(count: int, act: Callable[[Context], Any]) -> Workflow:
    """Declare one agent that does something so many times."""

    def agent(ctx: Context) -> None:
        for _ in range(count):
            act(ctx)

    return chain(agent)


def layered(count: int) -> Workflow:
    workflow = Workflow("layers")
    for number in range(count):
        after = f"agent{number - 1:02d}" if number else None
        workflow.agent(after=after)(_numbered(number))
    return workflow


@pytest.mark.parametrize(
    ("declare", "syncs"),
    [
        pytest.param(lambda count: chain(*map(_numbered, range(count))), 1, id="agents in a row"),
        pytest.param(layered, 2, id="agents in layers of their own"),
        pytest.param(
            lambda count: repeated(count, lambda ctx: ctx.effect("send", lambda key: 1)), 2, id="effects"
        ),
        pytest.param(lambda count: repeated(count, lambda ctx: ctx.milestone("half", 1)), 1, id="milestones"),
        pytest.param(lambda count: repeated(count, lambda ctx: ctx.checkpoint()), 1, id="checkpoints"),
        pytest.param(lambda count: repeated(count, lambda ctx: ctx.decide("so")), 0, id="decisions"),
        pytest.param(lambda count: repeated(count, lambda ctx: ctx.report("a", "b")), 0, id="reports"),
    ],
)
def test_everything_costs_as_many_commits_as_the_page_says(declare, syncs, monkeypatch) -> None:
    counted, real = [0], MemoryStore.commit

    def commit(store: MemoryStore, commits: Any) -> Any:
        counted[0] += 1
        return real(store, commits)

    monkeypatch.setattr(MemoryStore, "commit", commit)

    def cost(count: int) -> int:
        with opened(background=False) as service:
            counted[0] = 0
            run(declare(count), service)
            return counted[0]

    assert cost(6) - cost(2) == 4 * syncs
