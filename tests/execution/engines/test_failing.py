"""What is no Exception is a failure of the agent that raised it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import AgentFailedError, Retry, Workflow
from holdfast.execution.approvals import Suspended
from holdfast.execution.context import Context
from holdfast.execution.engines.failing import as_failure
from holdfast.execution.outcome import RunStatus
from holdfast.execution.stopping import Stopped
from tests.execution.runs import kinds, opened, run, types


class Own(BaseException):
    """No Exception."""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (SystemExit(3), "the agent called sys.exit(3)"),
        (asyncio.CancelledError(), "the agent was cancelled from within"),
        (Own("why"), "the agent raised Own: why"),
        (GeneratorExit(), "the agent raised GeneratorExit"),
    ],
)
def test_a_failure_is_told_in_words(fault: BaseException, told: str) -> None:
    assert str(as_failure(fault)) == told


STOPPED = Stopped(RunStatus.PAUSED)


@pytest.mark.parametrize(
    ("faults", "ending"),
    [
        ([Suspended()], Suspended),
        ([BaseExceptionGroup("inner", [Suspended()]), Suspended()], Suspended),
        ([Suspended(), STOPPED], Stopped),
        ([ValueError("why"), STOPPED], Stopped),
        ([ValueError("why"), Suspended()], RuntimeError),
        ([Own("why")], RuntimeError),
    ],
)
def test_a_group_that_ends_an_agent_is_no_failure_of_it(
    faults: list[BaseException], ending: type[BaseException]
) -> None:
    assert type(as_failure(BaseExceptionGroup("of a task group", faults))) is ending


def test_questions_asked_in_a_group_of_tasks_are_waited_for() -> None:
    async def agent(ctx: Context) -> list[bool]:
        async with asyncio.TaskGroup() as tasks:
            asked = [tasks.create_task(ctx.approve("Shall we?", name)) for name in ("one", "two")]
        return [bool(task.result()) for task in asked]

    workflow = Workflow("asking")
    workflow.agent(agent)
    with opened() as service:
        assert run(workflow, service, waits=False).waiting == ("agent: one", "agent: two")
        for name, granted in (("one", True), ("two", False)):
            service.requests.put("WF-1", "approval", actor="ann", data={"name": name, "granted": granted})
        assert run(workflow, service).value == [True, False]


@pytest.mark.parametrize("kind", [Own, GeneratorExit, SystemExit, StopIteration, asyncio.CancelledError])
@pytest.mark.parametrize("way", ["plain", "watched", "async", "items"])
def test_an_agent_fails_by_whatever_it_raises_and_is_tried_again(kind: type[BaseException], way: str) -> None:
    workflow = Workflow("raising", retry=Retry(attempts=2, delay_seconds=0))

    def plain(ctx: Context) -> None:
        raise kind("why")

    def of_item(ctx: Context, item: int) -> None:
        raise kind("why")

    async def awaited(ctx: Context) -> None:
        raise kind("why")

    if way == "items":
        workflow.agent(name="agent", each=lambda view: [1, 2])(of_item)
    elif way == "async":
        workflow.agent(name="agent")(awaited)
    else:
        workflow.agent(name="agent", timeout_seconds=60 if way == "watched" else None)(plain)
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        assert types(service).count("AGENT_FAILED") == (4 if way == "items" else 2)
        assert "error_state" in kinds(service)


def test_an_interrupt_that_a_plain_agent_raises_itself_is_its_failure() -> None:
    def agent(ctx: Context) -> None:
        raise KeyboardInterrupt

    workflow = Workflow("raising")
    workflow.agent(agent)
    with opened() as service, pytest.raises(AgentFailedError, match="KeyboardInterrupt"):
        run(workflow, service)
