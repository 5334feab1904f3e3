"""How runs end: by themselves, by request, by a question, by a failure."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import AgentFailedError, CheckpointService, RunOptions, RunResult, Workflow
from holdfast.domain.request import RequestKind
from holdfast.execution.context import Context
from holdfast.execution.outcome import RunStatus
from tests.execution.clocks import AgentClock
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import chain, kinds, opened, run, told_to, types

POLL_SECONDS = 0.01


def ask(ctx: Context) -> Any:
    answer = ctx.approve("Shall we?", amount=100)
    return [answer.granted, answer.by, answer.note, answer.value]


def answer(service: CheckpointService, *, granted: bool = True, **data: Any) -> None:
    service.requests.put(
        "WF-1",
        RequestKind.APPROVAL,
        actor="alice",
        reason="looks good",
        data={"name": "approval", "granted": granted, **data},
    )


def test_a_clean_end_cannot_be_resumed() -> None:
    with opened() as service:
        result = run(chain(lambda_named("a", lambda ctx: 1)), service)
        state = service.load_latest("WF-1")
        assert state is not None and (state.status, state.resumable) == ("completed", False)
        assert kinds(service)[-1] == "workflow_complete" and result.status is RunStatus.COMPLETED
        assert state.metrics["elapsed_seconds"] > 0


def lambda_named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


def test_a_run_that_does_not_wait_ends_with_its_question_open_and_goes_on_with_the_answer() -> None:
    workflow = chain(ask)
    with opened() as service:
        first = run(workflow, service, waits=False)
        assert first.status is RunStatus.WAITING and first.waiting == ("ask: approval",)
        assert run(workflow, service, waits=False).status is RunStatus.WAITING
        answer(service, value={"limit": 50})
        second = run(workflow, service, poll_seconds=POLL_SECONDS)
        assert second.value == [True, "alice", "looks good", {"limit": 50}]
        assert service.requests.pending() == []
        asked = service.events("WF-1", type="APPROVAL_REQUESTED")
        assert len(asked) == 1 and asked[0].data["data"] == {"amount": 100}
        told = [str(entry.type) for entry in service.audit.query_events()]
        assert "APPROVAL_REQUESTED" in told and "APPROVAL_GRANTED" in told


def test_the_others_go_on_while_one_waits_for_an_answer() -> None:
    workflow = Workflow("team")
    stage = workflow.parallel("all")
    stage.agent(ask)
    stage.agent(name="busy")(lambda ctx: "done")
    with opened() as service:
        result = run(workflow, service, waits=False)
        assert result.status is RunStatus.WAITING and result.results == {"busy": "done"}


def test_a_run_waits_for_the_answer_of_another_thread() -> None:
    told, subscriber = told_to()
    asked = threading.Event()

    def notice(kind: str, data: Any) -> None:
        subscriber(kind, data)
        if kind == "approval_requested":
            asked.set()

    with opened() as service:
        results: list[RunResult] = []
        workflow = chain(ask)
        options = RunOptions(poll_seconds=POLL_SECONDS, subscribers=(notice,))
        running = threading.Thread(
            target=lambda: results.append(workflow.run_sync(service, "WF-1", options=options))
        )
        running.start()
        asked.wait()
        answer(service, granted=False)
        running.join()
        assert results[0].value == [False, "alice", "looks good", None]
        assert [data["granted"] for kind, data in told if kind == "approval_answered"] == [False]


def paused_by(service: CheckpointService, kind: RequestKind) -> RunResult:
    """Run two agents, the first of which asks for an end of the run."""

    async def first(ctx: Context) -> int:
        await asyncio.to_thread(service.requests.put, "WF-1", kind, actor="bob", reason="lunch")
        if kind is RequestKind.CANCEL:
            await asyncio.Event().wait()
        else:
            await seen.wait()
        return 1

    async def second(ctx: Context) -> int:
        return 2

    seen = asyncio.Event()

    def notice(what: str, data: Any) -> None:
        if what == "stopping":
            seen.set()

    return run(chain(first, second), service, poll_seconds=POLL_SECONDS, subscribers=(notice,))


def test_a_pause_lets_agents_finish_and_the_run_goes_on_later() -> None:
    with opened() as service:
        result = paused_by(service, RequestKind.PAUSE)
        assert result.status is RunStatus.PAUSED and result.results == {"first": 1}
        state = service.load_latest("WF-1")
        assert state is not None and (state.status, state.resumable) == ("paused", True)
        workflow = chain(lambda_named("first", lambda ctx: 7), lambda_named("second", lambda ctx: 2))
        again = run(workflow, service)
        assert again.results == {"first": 1, "second": 2}


def test_a_cancelled_run_is_over() -> None:
    with opened() as service:
        result = paused_by(service, RequestKind.CANCEL)
        assert result.status is RunStatus.CANCELLED and result.results == {}
        state = service.load_latest("WF-1")
        assert state is not None and (state.status, state.resumable) == ("cancelled", False)
        assert run(chain(lambda_named("first", lambda ctx: 7)), service).status is RunStatus.CANCELLED


@pytest.mark.parametrize("on_failure", ["fail", "skip"])
def test_what_an_agent_raises_while_its_run_is_cancelled_is_no_end_of_its_own(on_failure: Any) -> None:
    async def agent(ctx: Context) -> None:
        service.requests.put("WF-1", RequestKind.CANCEL, actor="alice")
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the connection is gone")

    workflow = Workflow("cleaning")
    workflow.agent(on_failure=on_failure)(agent)
    with opened() as service:
        assert run(workflow, service, poll_seconds=POLL_SECONDS).status is RunStatus.CANCELLED
        assert "AGENT_SKIPPED" not in types(service)


def test_nor_while_its_run_is_stopped_it_begins_again_with_the_next_one() -> None:
    begun = asyncio.Event()

    async def agent(ctx: Context) -> str:
        if ctx.attempt > 1:
            return "done"
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the connection is gone")

    workflow = Workflow("cleaning")
    workflow.agent(on_failure="skip")(agent)

    async def main(service: CheckpointService) -> RunResult:
        running = asyncio.ensure_future(workflow.run(service, "WF-1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await workflow.run(service, "WF-1")

    with opened() as service:
        assert asyncio.run(main(service)).value == "done"


def test_a_paused_run_asks_its_question_again_to_nobody() -> None:
    asked = threading.Event()
    with opened() as service:
        results: list[RunResult] = []
        options = RunOptions(
            poll_seconds=POLL_SECONDS,
            subscribers=(lambda kind, data: asked.set() if kind == "approval_requested" else None,),
        )
        running = threading.Thread(
            target=lambda: results.append(chain(ask).run_sync(service, "WF-1", options=options))
        )
        running.start()
        asked.wait()
        service.requests.put("WF-1", RequestKind.PAUSE, actor="bob")
        running.join()
        assert results[0].status is RunStatus.PAUSED
        assert len(service.events("WF-1", type="APPROVAL_REQUESTED")) == 1


def test_a_checkpoint_can_be_asked_for_from_outside() -> None:
    saved = threading.Event()

    def notice(kind: str, data: Any) -> None:
        if kind == "checkpoint_saved" and data["reason"] == "user_requested":
            saved.set()

    def agent(ctx: Context) -> bool:
        service.requests.put("WF-1", RequestKind.CHECKPOINT, actor="bob", reason="before lunch")
        return saved.wait(60)

    with opened() as service:
        assert run(chain(agent), service, poll_seconds=POLL_SECONDS, subscribers=(notice,)).value
        assert service.requests.pending() == []


def test_a_run_that_is_cancelled_by_its_caller_leaves_a_last_checkpoint() -> None:
    async def main(service: CheckpointService) -> None:
        begun = asyncio.Event()

        async def slow(ctx: Context) -> None:
            begun.set()
            await asyncio.Event().wait()

        running = asyncio.ensure_future(chain(slow).run(service, "WF-1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with opened() as service:
        asyncio.run(main(service))
        state = service.load_latest("WF-1")
        assert state is not None and (state.status, state.resumable) == ("stopped", True)
        assert service.lease_of("WF-1") is None


def test_a_failure_is_recorded_before_it_is_raised() -> None:
    def agent(ctx: Context) -> None:
        raise RuntimeError("broken")

    told, subscriber = told_to()
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service, subscribers=(subscriber,))
        last = service.events("WF-1")[-1]
        assert last.type == "RUN_UPDATED" and last.data["fields"]["status"] == "failed"
    assert told[-1][0] == "run_ended" and told[-1][1]["status"] == "failed"


def test_a_spawned_agent_does_not_outlive_its_run() -> None:
    async def main(service: CheckpointService) -> None:
        begun, gate = asyncio.Event(), asyncio.Event()
        over = threading.Event()

        async def child(ctx: Context) -> str:
            begun.set()
            await gate.wait()
            return "late"

        def parent(ctx: Context) -> Any:
            try:
                return ctx.spawn(child)
            finally:
                over.set()

        running = asyncio.ensure_future(chain(parent).run(service, "WF-1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        gate.set()
        await asyncio.to_thread(over.wait)

    with opened() as service:
        asyncio.run(main(service))
        assert service.events("WF-1", type="AGENT_COMPLETED") == []


def test_nor_does_one_whose_parent_is_slow_to_hear_that_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    hand_over, ended, over = asyncio.run_coroutine_threadsafe, threading.Event(), threading.Event()

    def slowly(*given: Any) -> Any:
        handed = hand_over(*given)
        ended.wait(PATIENCE_SECONDS)
        return handed

    async def main(service: CheckpointService) -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        async def child(ctx: Context) -> str:
            begun.set()
            await gate.wait()
            return "late"

        def parent(ctx: Context) -> Any:
            monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", slowly)
            try:
                return ctx.spawn(child)
            finally:
                over.set()

        running = asyncio.ensure_future(chain(parent).run(service, "WF-1"))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        gate.set()
        if others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        ended.set()
        await asyncio.to_thread(over.wait)

    with opened() as service:
        asyncio.run(main(service))
        assert service.events("WF-1", type="AGENT_COMPLETED") == []


def test_to_wait_for_an_answer_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, workflow = AgentClock(monkeypatch), Workflow("patient")
    workflow.agent(timeout_seconds=0.05)(ask)
    asked = threading.Event()

    def notice(kind: str, data: Any) -> None:
        if kind == "approval_requested":
            asked.set()

    with opened() as service:
        results: list[RunResult] = []
        options = RunOptions(poll_seconds=0.2, subscribers=(notice,))
        running = threading.Thread(
            target=lambda: results.append(workflow.run_sync(service, "WF-1", options=options))
        )
        running.start()
        asked.wait()
        clock.advance(60)
        answer(service)
        running.join()
        assert results[0].value[0] is True and service.events("WF-1", type="AGENT_FAILED") == []


@pytest.mark.parametrize("kind", [RequestKind.CANCEL, RequestKind.PAUSE])
def test_what_was_asked_while_nobody_ran_it_comes_before_anything_is_begun(kind: RequestKind) -> None:
    calls: list[int] = []

    def agent(ctx: Context) -> None:
        calls.append(ctx.attempt)
        raise RuntimeError("broken")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service)
        service.requests.put("WF-1", kind, actor="bob")
        result = run(chain(agent), service)
        assert result.status is (RunStatus.CANCELLED if kind is RequestKind.CANCEL else RunStatus.PAUSED)
        assert calls == [1] and service.requests.pending() == []


def test_the_last_checkpoint_says_how_it_ended() -> None:
    def broken(ctx: Context) -> None:
        raise RuntimeError("broken")

    with opened() as service:
        run(chain(lambda_named("a", lambda ctx: 1)), service)
        assert service.list_checkpoints("WF-1", 1)[0].status == "completed"
        with pytest.raises(AgentFailedError):
            run(chain(broken), service, "WF-2")
        [failed] = [meta for meta in service.list_checkpoints("WF-2") if meta.type == "error_state"]
        assert failed.status == "failed"
