"""What a run asks the application: answers may be awaited, and errors say whose they are."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import AgentFailedError, Workflow
from holdfast.execution.context import Context
from tests.execution.runs import opened, run


async def no(asked: Any) -> bool:
    return False


async def items(view: Any) -> list[str]:
    return ["a", "b"]


async def key(item: str) -> str:
    return item.upper()


def broken(asked: Any) -> Any:
    raise LookupError("gone")


def test_conditions_may_be_coroutines() -> None:
    workflow = Workflow("asked")
    workflow.agent(name="alone", when=no)(lambda ctx: 1)
    workflow.sequential("stage", when=no).agent(name="inside")(lambda ctx: 2)
    with opened() as service:
        assert run(workflow, service).results == {}


def test_items_and_their_keys_may_come_from_coroutines() -> None:
    workflow = Workflow("asked")

    @workflow.agent(each=items, key=key)
    def work(ctx: Context, item: str) -> str:
        return item

    with opened() as service:
        assert run(workflow, service).results == {"work[A]": "a", "work[B]": "b"}


def test_what_tells_when_a_loop_is_content_may_be_a_coroutine() -> None:
    workflow = Workflow("asked")
    workflow.loop("loop", until=no, limit=3).evaluator(name="judge")(lambda ctx: True)
    with opened() as service:
        result = run(workflow, service)
    assert list(result.results) == ["judge", "judge#2", "judge#3"] and result.warnings


@pytest.mark.parametrize("option", ["when", "each", "key"])
def test_an_error_of_what_is_asked_about_an_agent_names_the_agent(option: str) -> None:
    workflow = Workflow("asked")
    options: Any = {"each": lambda view: [1], option: broken}
    workflow.agent(name="work", **options)(lambda ctx, item: item)
    with opened() as service, pytest.raises(AgentFailedError, match=r"LookupError: gone.*work"):
        run(workflow, service)


def test_an_error_of_until_names_the_loop() -> None:
    workflow = Workflow("asked")
    workflow.loop("improve", until=broken).evaluator(name="judge")(lambda ctx: True)
    with opened() as service, pytest.raises(AgentFailedError, match=r"LookupError: gone.*improve"):
        run(workflow, service)
