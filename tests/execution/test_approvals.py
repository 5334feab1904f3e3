"""A question is asked once, waits for its answer across restarts, and is answered by somebody."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.domain.run_events import APPROVAL_DENIED, APPROVAL_GRANTED, APPROVAL_REQUESTED
from holdfast.execution.approvals import Approval, Desk, Question, Suspended, answer_fact, ask
from holdfast.execution.driving import Driver
from tests.execution.journals import PATIENCE_SECONDS, begun
from tests.execution.runs import opened, types

YES = Approval(True, "ann", "fine", {"limit": 3})


@pytest.mark.parametrize("granted", [True, False])
def test_an_approval_is_true_if_it_is_granted(granted: bool) -> None:
    assert bool(Approval(granted, "ann")) is granted


@pytest.mark.parametrize("known", [{}, {"status": "waiting"}, {"status": "waiting", "by": "ann"}])
def test_an_open_question_has_no_answer(known: Mapping[str, Any]) -> None:
    assert Approval.of(known) is None


@pytest.mark.parametrize("approval", [YES, Approval(False, "bob"), Approval(True, "")])
def test_an_answer_is_read_back_as_it_was_given(approval: Approval) -> None:
    fact = answer_fact("plan", "go", approval, "r-1")
    assert fact.kind == (APPROVAL_GRANTED if approval else APPROVAL_DENIED)
    assert fact.data["request"] == "r-1"
    with opened() as service:
        journal = begun(service)
        journal.commit(fact)
        assert Approval.of(journal.agent_state("plan")["approvals"]["go"]) == approval


def test_the_desk_brings_an_answer_to_whoever_waits() -> None:
    async def work() -> tuple[Approval, Approval]:
        desk = Desk(waits=True)
        first = asyncio.ensure_future(desk.answer("plan", "go"))
        second = asyncio.ensure_future(desk.answer("write", "go"))
        await asyncio.sleep(0)
        assert set(desk.waiting) == {("plan", "go"), ("write", "go")}
        desk.deliver("plan", "go", YES)
        desk.deliver("plan", "go", Approval(False, "too late"))
        desk.deliver("nobody", "go", YES)
        desk.deliver("write", "go", Approval(False, "bob"))
        answers = await asyncio.wait_for(asyncio.gather(first, second), PATIENCE_SECONDS)
        assert not desk.waiting
        return answers[0], answers[1]

    assert asyncio.run(work()) == (YES, Approval(False, "bob"))


def test_where_a_run_does_not_wait_its_agent_is_suspended() -> None:
    async def work() -> None:
        with pytest.raises(Suspended):
            await Desk(waits=False).answer("plan", "go")

    asyncio.run(work())
    assert not issubclass(Suspended, Exception)


def test_who_is_sent_away_is_suspended_and_so_is_whoever_comes_later() -> None:
    async def work() -> None:
        desk = Desk(waits=True)
        first = asyncio.ensure_future(desk.answer("plan", "go"))
        answered = asyncio.ensure_future(desk.answer("plan", "stop"))
        await asyncio.sleep(0)
        desk.deliver("plan", "stop", YES)
        desk.dismiss()
        with pytest.raises(Suspended):
            await asyncio.wait_for(first, PATIENCE_SECONDS)
        assert await answered == YES
        # The run is about to stop: one who asks now must not keep it from that.
        with pytest.raises(Suspended):
            await asyncio.wait_for(desk.answer("late", "go"), PATIENCE_SECONDS)
        assert desk.waiting == ()

    asyncio.run(work())


def test_who_is_cancelled_waits_no_longer() -> None:
    async def work() -> None:
        desk = Desk(waits=True)
        waiting = asyncio.ensure_future(desk.answer("plan", "go"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert desk.waiting == ()
        desk.deliver("plan", "go", YES)

    asyncio.run(work())


@pytest.mark.parametrize("is_async", [False, True])
def test_a_question_is_recorded_once_and_its_answer_is_known_afterwards(is_async: bool) -> None:
    question = Question("go", "Shall I?", {"cost": 3})
    with opened() as service:
        journal, desk = begun(service), Desk(waits=True)

        def known() -> Mapping[str, Any]:
            return journal.agent_state("plan").get("approvals", {})

        def asking() -> Any:
            return ask(question, "plan", "plan", known, answered)

        waits = asyncio.Event()

        async def answered(step_id: str, name: str) -> Approval:
            waits.set()
            return await desk.answer(step_id, name)

        async def answer() -> None:
            await waits.wait()
            await journal.commit_async(answer_fact("plan", "go", YES, "r-1"))
            desk.deliver("plan", "go", YES)

        async def work() -> list[Approval]:
            driver = Driver(journal, asyncio.get_running_loop())
            answering = asyncio.ensure_future(answer())
            drive = driver.drive_async if is_async else lambda one: asyncio.to_thread(driver.drive, one)
            found = [await asyncio.wait_for(drive(asking()), PATIENCE_SECONDS)]
            await answering
            # The next attempt does not ask again.
            return [*found, await drive(asking())]

        assert asyncio.run(work()) == [YES, YES]
        assert types(service).count(APPROVAL_REQUESTED) == 1
        told = journal.agent_state("plan")["approvals"]["go"]
        assert (told["question"], told["data"], told["status"]) == ("Shall I?", {"cost": 3}, "granted")
