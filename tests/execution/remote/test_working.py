"""Carrying an errand out in a worker."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService
from holdfast.domain.errors import (
    AgentFailedError,
    AttemptOverError,
    InvalidStateError,
    LeaseHeldError,
    LeaseLostError,
)
from holdfast.execution.frame import Frame
from holdfast.execution.journal import Journal, Save
from holdfast.execution.remote import working
from holdfast.execution.remote.child import Child
from holdfast.execution.remote.errand import Ending, Errand
from holdfast.execution.remote.working import FencedJournal, run_errand
from tests.execution.engines.elsewhere import Elsewhere, one_agent, run, store_in
from tests.execution.engines.odd_errors import Death
from tests.execution.engines.team import leave, wait_for


@pytest.fixture
def service(tmp_path: Path) -> Iterator[CheckpointService]:
    with holdfast.open(store_in(tmp_path)) as service:
        yield service


def sent(service: CheckpointService, tmp_path: Path, function: Any, **more: Any) -> Errand:
    """Send an errand, and answer it; nobody carries it out yet."""
    if not service.recording.exists("WF-1"):
        service.create_checkpoint("WF-1", {})
    frame = Frame("far", "far", "far", attempt=more.pop("attempt", 1))
    number = more.pop("id", "e-1")
    errand = Errand(number, store_in(tmp_path), "WF-1~far", "WF-1", frame, function, False, **more)
    Child(Journal(service.recording, "WF-1", {}), "far").send(errand)
    return errand


def test_an_errand_leaves_its_result_and_the_end_in_the_journal_of_the_step(
    service: CheckpointService, tmp_path: Path
) -> None:
    outcome = run_errand(sent(service, tmp_path, lambda ctx: [ctx.workflow_id, ctx.step_id, ctx.attempt]))
    ended = service.recording.ended("WF-1~far")
    assert outcome.ending is Ending.DONE and ended is not None
    assert ended.tasks[0]["result"] == ["WF-1", "far", 1]
    assert service.lease_of("WF-1~far") is None


def test_an_agent_that_is_kept_from_another_workflow_has_failed_and_its_worker_is_not_lost(
    service: CheckpointService, tmp_path: Path
) -> None:
    def far(ctx: Any) -> None:
        raise LeaseHeldError("somebody has the other one", place="WF-2")

    outcome = run_errand(sent(service, tmp_path, far))
    assert outcome.ending is Ending.FAILED and isinstance(outcome.error, LeaseHeldError)
    assert service.recording.ended("WF-1~far") is None


def test_a_coroutine_is_an_agent_too(service: CheckpointService, tmp_path: Path) -> None:
    async def far(ctx: Any) -> Any:
        await ctx.milestone("half", 1)
        return ctx.resumed_from.state

    assert run_errand(sent(service, tmp_path, far)).ending is Ending.DONE


def test_an_errand_that_another_worker_had_begun_is_left_to_the_run(
    service: CheckpointService, tmp_path: Path
) -> None:
    """As it comes about where an engine starts tasks again on its own."""
    calls = []

    def far(ctx: Any) -> None:
        calls.append(1)
        raise Death

    errand = sent(service, tmp_path, far)
    with pytest.raises(Death):
        run_errand(errand)
    again = run_errand(errand)
    assert (again.ending, again.reason) == (Ending.LOST, "another worker has begun it, and is gone")
    assert calls == [1]


def test_an_errand_that_is_done_is_not_done_again(service: CheckpointService, tmp_path: Path) -> None:
    errand = sent(service, tmp_path, lambda ctx: 7)
    assert [run_errand(errand).ending, run_errand(errand).ending] == [Ending.DONE, Ending.DONE]
    assert len(service.events("WF-1~far", type="AGENT_COMPLETED")) == 1


def test_a_step_that_somebody_else_works_on_is_left_alone(service: CheckpointService, tmp_path: Path) -> None:
    errand = sent(service, tmp_path, lambda ctx: 7)
    service.acquire_lease("WF-1~far", "another", ttl_seconds=60)
    assert run_errand(errand).ending is Ending.LOST


def test_a_worker_with_another_store_says_what_it_lacks(service: CheckpointService, tmp_path: Path) -> None:
    errand = sent(service, tmp_path, lambda ctx: 7)
    other = tmp_path / "other"
    holdfast.open(store_in(other)).close()
    outcome = run_errand(replace(errand, store=store_in(other)))
    assert outcome.ending is Ending.FAILED
    assert "opens the same store" in outcome.reason


def test_what_an_agent_raises_is_recorded_and_told(service: CheckpointService, tmp_path: Path) -> None:
    outcome = run_errand(sent(service, tmp_path, lambda ctx: 1 // 0))
    assert outcome.ending is Ending.FAILED and isinstance(outcome.error, ZeroDivisionError)
    failed = service.events("WF-1~far", type="AGENT_FAILED")
    assert [event.data["error"]["type"] for event in failed] == ["ZeroDivisionError"]


def test_an_agent_that_would_end_its_worker_fails_instead(service: CheckpointService, tmp_path: Path) -> None:
    outcome = run_errand(sent(service, tmp_path, lambda ctx: sys.exit(3)))
    assert (outcome.ending, outcome.reason) == (Ending.FAILED, "the agent called sys.exit(3)")


def test_an_agent_on_a_worker_cannot_spawn(service: CheckpointService, tmp_path: Path) -> None:
    outcome = run_errand(sent(service, tmp_path, lambda ctx: ctx.spawn(lambda other: 1, name="more")))
    assert isinstance(outcome.error, InvalidStateError)
    assert "cannot spawn" in outcome.reason


def test_what_was_not_sent_along_is_not_there(service: CheckpointService, tmp_path: Path) -> None:
    given = {"inputs": {"a": 1}, "config": {"b": 2}, "shared": {"c": 3}, "results": {"plan": 4}}
    shown = sent(
        service,
        tmp_path,
        lambda ctx: [ctx.inputs, ctx.config, ctx.shared, ctx.result("plan"), ctx.result("more")],
        **given,
    )
    assert "the result of 'more' was not sent along" in run_errand(shown).reason


def test_an_agent_asks_for_checkpoints_of_its_own_journal(service: CheckpointService, tmp_path: Path) -> None:
    def far(ctx: Any) -> None:
        ctx.checkpoint("now")
        ctx.breakpoint()

    run_errand(sent(service, tmp_path, far, triggers=frozenset({"user_requested"})))
    assert len(service.list_checkpoints("WF-1~far")) == 3


def test_a_branch_that_was_confirmed_is_not_run_again_by_the_next_attempt(
    service: CheckpointService, tmp_path: Path
) -> None:
    calls = []

    def ahead(ctx: Any) -> int:
        calls.append(ctx.step_id)
        return 21

    def far(ctx: Any) -> int:
        branch = ctx.speculate(ahead)
        branch.confirm()
        if ctx.attempt == 1:
            raise ConnectionError("gone")
        return 2 * int(branch.result)

    assert run_errand(sent(service, tmp_path, far)).ending is Ending.FAILED
    assert run_errand(sent(service, tmp_path, far, attempt=2, id="e-2")).ending is Ending.DONE
    assert calls == ["far>ahead"]


def test_an_attempt_that_was_given_up_leaves_no_trace_in_its_own_process(
    service: CheckpointService, tmp_path: Path
) -> None:
    """Threads cannot be ended: two attempts of one step may be in one process, which shows one lease."""
    folder = str(tmp_path)
    raised: list[BaseException] = []

    def far(ctx: Any) -> str:
        if ctx.attempt > 1:
            leave(folder, "second")
            wait_for(folder, "over")
            return "second"
        leave(folder, "at")
        wait_for(folder, "second")
        try:
            ctx.decide("late")
        except AttemptOverError as over:
            raised.append(over)
        leave(folder, "over")
        return "first"

    outcomes: dict[str, Any] = {}

    def work(name: str, errand: Errand) -> None:
        outcomes[name] = run_errand(errand)

    first = threading.Thread(target=work, args=("first", sent(service, tmp_path, far)))
    first.start()
    wait_for(folder, "at")
    second = threading.Thread(target=work, args=("second", sent(service, tmp_path, far, attempt=2, id="e-2")))
    second.start()
    first.join()
    second.join()
    assert (outcomes["first"].ending, outcomes["second"].ending) == (Ending.LOST, Ending.DONE)
    ended = service.recording.ended("WF-1~far")
    assert ended is not None and [task["result"] for task in ended.tasks] == ["second"]
    assert len(raised) == 1 and ended.decisions == []
    assert working._WORKS == {}


def test_a_journal_that_was_lost_takes_nothing_more(service: CheckpointService) -> None:
    journal = FencedJournal(service.recording, "WF-2", {})
    journal.commit(Save("first"))
    journal.lose()
    with pytest.raises(LeaseLostError, match="belongs to somebody else"):
        journal.commit(Save("second"))
    assert len(service.list_checkpoints("WF-2")) == 1


def test_a_result_that_cannot_be_stored_is_a_failure(service: CheckpointService) -> None:
    with pytest.raises(AgentFailedError, match="UnsupportedTypeError"):
        run(one_agent(lambda ctx: threading.Lock(), Elsewhere(), name="odd"), service)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit])
def test_whatever_an_agent_raises_is_its_failure_and_no_end_of_its_worker(
    service: CheckpointService, tmp_path: Path, kind: type[BaseException]
) -> None:
    def agent(ctx: Any) -> None:
        raise kind

    outcome = run_errand(sent(service, tmp_path, agent))
    assert (outcome.ending, outcome.reason) == (Ending.FAILED, f"the agent raised {kind.__name__}")
