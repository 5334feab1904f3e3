"""What a run takes in of its workers: questions, words and signs of life."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import CheckpointService, RunOptions
from holdfast.execution.outcome import RunStatus
from holdfast.execution.remote.child import Look
from holdfast.execution.remote.following import is_lost
from tests.execution.engines.elsewhere import Elsewhere, one_agent, run, store_in, taken_over
from tests.execution.engines.team import leave, wait_for

CALLS: list[int] = []


def careful(ctx: Any) -> Any:
    CALLS.append(ctx.attempt)
    answer = ctx.approve("May I?", "permission", cost=7)
    return [answer.granted, answer.by, answer.note, answer.value]


@pytest.fixture(autouse=True)
def nobody_called() -> None:
    CALLS.clear()


@pytest.fixture
def service(tmp_path: Path) -> Any:
    with holdfast.open(store_in(tmp_path)) as service:
        yield service


def asked(service: CheckpointService, workflow_id: str = "WF-1") -> list[Any]:
    return service.events(workflow_id, type="APPROVAL_REQUESTED")


def answer(service: CheckpointService) -> None:
    data = {"granted": True, "name": "permission", "step": "careful", "value": 3}
    service.requests.put("WF-1", "approval", actor="ann", reason="go on", data=data)


async def until_recorded(service: CheckpointService, kind: str = "APPROVAL_REQUESTED") -> None:
    """Wait until the run has recorded something."""

    def wait() -> None:
        while not service.events("WF-1", type=kind):
            threading.Event().wait(0.01)

    await asyncio.to_thread(wait)


def test_a_question_of_a_worker_is_one_of_the_run_and_its_answer_gets_there(
    service: CheckpointService,
) -> None:
    heard, waited_for = [], threading.Event()

    def hear(kind: str, data: Any) -> None:
        heard.append(kind)
        if kind == "approval_requested":
            waited_for.set()

    options = RunOptions(poll_seconds=0.02, subscribers=(hear,))

    async def both() -> Any:
        workflow = one_agent(careful, Elsewhere())
        running = asyncio.ensure_future(workflow.run(service, "WF-1", options=options))
        # Recorded is not enough: an answer that comes before anybody waits is taken without a word.
        await asyncio.to_thread(waited_for.wait)
        answer(service)
        return await running

    assert asyncio.run(both()).value == [True, "ann", "go on", 3]
    assert asked(service)[0].data == asked(service, "WF-1~careful")[0].data
    assert asked(service)[0].data["question"] == "May I?"
    for workflow_id in ("WF-1", "WF-1~careful"):
        granted = service.events(workflow_id, type="APPROVAL_GRANTED")
        assert [event.data["by"] for event in granted] == ["ann"]
    assert service.requests.pending() == []
    assert "approval_requested" in heard and "approval_answered" in heard


def test_a_run_that_does_not_wait_leaves_the_question_and_goes_on_once_it_is_answered(
    service: CheckpointService,
) -> None:
    engine = Elsewhere()
    first = run(one_agent(careful, engine), service, waits=False)
    assert first.status is RunStatus.WAITING
    assert first.waiting == ("careful: permission",)
    answer(service)
    second = run(one_agent(careful, engine), service, waits=False, poll_seconds=0.02)
    if second.status is RunStatus.WAITING:
        # The answer was recorded, and the agent had asked before that.
        second = run(one_agent(careful, engine), service, waits=False)
    assert second.value == [True, "ann", "go on", 3]
    assert len(asked(service)) == len(asked(service, "WF-1~careful")) == 1


def test_a_question_outlives_the_run_in_which_it_was_asked(
    service: CheckpointService, tmp_path: Path
) -> None:
    """The worker waits on, and the next run brings it the answer."""

    async def abandoned() -> None:
        with holdfast.open(store_in(tmp_path)) as own:
            running = asyncio.ensure_future(one_agent(careful, Elsewhere()).run(own, "WF-1"))
            await until_recorded(service)
            await taken_over(running, service)

    asyncio.run(abandoned())
    answer(service)
    later = Elsewhere()
    result = run(one_agent(careful, later), service, poll_seconds=0.02)
    assert (result.value, CALLS, later.errands) == ([True, "ann", "go on", 3], [1], [])
    assert len(asked(service)) == 1


def test_an_answer_that_the_run_has_is_brought_to_a_worker_that_asks(
    service: CheckpointService, tmp_path: Path
) -> None:
    """Answered while the agent ran in the run itself; it asks again on a worker, and nobody else has to."""
    workflow = holdfast.Workflow("alone")
    workflow.agent(careful)
    assert run(workflow, service, waits=False).status is RunStatus.WAITING
    answer(service)
    result = run(one_agent(careful, Elsewhere()), service, poll_seconds=0.02)
    assert result.value == [True, "ann", "go on", 3]


def test_what_was_taken_in_is_not_taken_in_again_by_the_next_run(
    service: CheckpointService, tmp_path: Path
) -> None:
    folder = str(tmp_path)

    def wordy(ctx: Any) -> str:
        ctx.decide("early")
        ctx.milestone("half")
        leave(folder, "at")
        wait_for(folder, "go")
        return "done"

    async def abandoned() -> None:
        with holdfast.open(store_in(tmp_path)) as own:
            running = asyncio.ensure_future(one_agent(wordy, Elsewhere()).run(own, "WF-1"))
            await until_recorded(service, "DECISION_RECORDED")
            await taken_over(running, service)

    asyncio.run(abandoned())
    leave(folder, "go")
    assert run(one_agent(wordy, Elsewhere()), service).value == "done"
    assert len(service.events("WF-1", type="DECISION_RECORDED")) == 1


def test_a_future_that_never_ends_is_no_reason_to_wait_for_ever(service: CheckpointService) -> None:
    """The worker is done, and the wire to it is cut."""
    engine = Elsewhere()
    hangs = asyncio.Event()

    def cut(function: Any) -> Any:
        function()
        asyncio.run(hangs.wait())

    engine.meanwhile = cut
    assert run(one_agent(lambda ctx: 7, engine, name="cut"), service).value == 7


@pytest.mark.parametrize("is_gone", [True, False])
def test_whoever_is_gone_is_lost(is_gone: bool) -> None:
    assert is_lost(Look(not is_gone, is_gone, 1)) is is_gone
