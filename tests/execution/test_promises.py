"""What an async agent has to await, and what happens if it does not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import AgentFailedError
from holdfast.domain.errors import InvalidStateError
from holdfast.execution.context import Context
from holdfast.execution.promises import Promise, check_kept
from tests.execution.runs import chain, opened, run, types


def paid(key: str) -> str:
    raise AssertionError("nobody was asked")


def test_an_approval_that_nobody_awaited_is_none() -> None:
    async def agent(ctx: Context) -> Any:
        if ctx.approve("Pay a million?"):
            return await ctx.effect("pay", paid)
        return "no"

    with opened() as service:
        with pytest.raises(AgentFailedError, match=r"`ctx.approve` was not awaited"):
            run(chain(agent), service)
        assert "EFFECT_STARTED" not in types(service)


@pytest.mark.parametrize("call", ["effect", "milestone", "spawn", "checkpoint", "speculate"])
def test_an_agent_that_forgets_to_await_fails_by_the_name_of_the_call(call: str) -> None:
    async def agent(ctx: Context) -> str:
        given = {"effect": ("pay", paid), "milestone": ("half",), "spawn": (agent,), "speculate": (agent,)}
        getattr(ctx, call)(*given.get(call, ()))
        return "done"

    with opened() as service, pytest.raises(AgentFailedError, match=f"`ctx.{call}` was not awaited"):
        run(chain(agent), service)


def test_a_promise_as_a_result_is_one_that_was_forgotten() -> None:
    async def agent(ctx: Context) -> Any:
        return ctx.effect("pay", paid)

    with opened() as service, pytest.raises(AgentFailedError, match=r"await ctx.effect"):
        run(chain(agent), service)


def test_promises_can_be_gathered_and_made_tasks() -> None:
    async def agent(ctx: Context) -> list[int]:
        first = asyncio.create_task(ctx.effect("one", lambda key: 1))
        others = await asyncio.gather(ctx.effect("two", lambda key: 2), ctx.effect("three", lambda key: 3))
        return [await first, *others]

    with opened() as service:
        assert run(chain(agent), service).value == [1, 2, 3]


def test_a_task_that_fails_fails_as_any_other() -> None:
    def refuse(key: str) -> None:
        raise ValueError("no")

    async def agent(ctx: Context) -> str:
        task = asyncio.create_task(ctx.effect("one", refuse))
        await asyncio.wait({task})
        return str(task.exception())

    with opened() as service:
        assert run(chain(agent), service).value == "no"


def test_a_cancelled_task_is_thrown_out() -> None:
    async def main() -> str:
        async def work() -> None:
            await asyncio.Event().wait()

        promise = Promise("ctx.work", work())
        task = asyncio.create_task(promise)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        check_kept([promise], "agent")
        return "cancelled" if task.cancelled() else "not"

    assert asyncio.run(main()) == "cancelled"


def test_a_promise_has_no_truth() -> None:
    async def work() -> None: ...

    promise = Promise("ctx.approve", work())
    with pytest.raises(InvalidStateError, match=r"ctx\.approve"):
        bool(promise)
    promise.close()
