"""Speculative branches leave no trace until they are confirmed."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import AgentFailedError, Retry
from holdfast.domain.errors import AttemptOverError
from holdfast.execution.context import Context
from tests.execution.runs import chain, latest, opened, run, types


def guess(ctx: Context, item: int) -> int:
    ctx.decide(f"guessed {item}")
    ctx.output(item)
    return item * 10


def test_only_the_confirmed_branch_is_recorded() -> None:
    def agent(ctx: Context) -> Any:
        left, right = ctx.speculate(guess, 1, name="left"), ctx.speculate(guess, 2, name="right")
        assert left.result == 10 and not left.is_confirmed
        return right.confirm()

    with opened() as service:
        result = run(chain(agent), service)
        assert result.value == 20 and result.outputs == [2]
        assert "agent>left" not in result.results and result.results["agent>right"] == 20
        state = service.load_latest("WF-1")
        assert state is not None and [one["description"] for one in state.decisions] == ["guessed 2"]
        assert types(service).count("DECISION_RECORDED") == 1


def test_an_async_agent_awaits_its_branches() -> None:
    async def later(ctx: Context, item: int) -> int:
        return item + 1

    async def agent(ctx: Context) -> Any:
        branch = await ctx.speculate(later, 1)
        return await branch.confirm()

    with opened() as service:
        assert run(chain(agent), service).value == 2


def test_a_branch_that_was_confirmed_is_not_run_again() -> None:
    calls = []

    def costly(ctx: Context) -> str:
        calls.append(1)
        return "dear"

    def agent(ctx: Context) -> Any:
        branch = ctx.speculate(costly)
        branch.confirm()
        branch.confirm()
        if ctx.attempt == 1:
            raise RuntimeError("after the confirmation")
        assert branch.is_confirmed
        return branch.result

    with opened() as service:
        assert run(chain(agent, retry=Retry(2, delay_seconds=0)), service).value == "dear"
    assert len(calls) == 1


@pytest.mark.parametrize("is_keyed", [False, True])
def test_a_branch_is_no_answer_to_another_item_when_the_agent_runs_again_in_another_order(
    is_keyed: bool,
) -> None:
    def agent(ctx: Context) -> Any:
        found = {}
        for item in (1, 2) if ctx.attempt == 1 else (2, 1):
            branch = ctx.speculate(guess, item, key=str(item) if is_keyed else None)
            found[item] = branch.confirm()
        if ctx.attempt == 1:
            raise RuntimeError("after the confirmations")
        return [found[1], found[2]]

    workflow = chain(agent, retry=Retry(2, delay_seconds=0))
    with opened() as service:
        if is_keyed:
            assert run(workflow, service).value == [10, 20]
        else:
            with pytest.raises(AgentFailedError, match="'agent>guess' was recorded for other arguments"):
                run(workflow, service)
        assert latest(service).outputs == [1, 2]


@pytest.mark.parametrize("is_confirmed_anew", [False, True])
def test_a_branch_of_an_attempt_that_was_given_up_cannot_be_confirmed(is_confirmed_anew: bool) -> None:
    branches: list[Any] = []

    def ahead(ctx: Context) -> int:
        return len(branches)

    def agent(ctx: Context) -> Any:
        branches.append(ctx.speculate(ahead))
        if ctx.attempt == 1:
            raise ConnectionError("given up")
        if is_confirmed_anew:
            branches[1].confirm()
        with pytest.raises(AttemptOverError):
            branches[0].confirm()
        return "done"

    with opened() as service:
        results = run(chain(agent, retry=Retry(2, delay_seconds=0)), service).results
        assert results == {"agent": "done", **({"agent>ahead": 1} if is_confirmed_anew else {})}
        assert types(service).count("AGENT_COMPLETED") == len(results)


def test_a_branch_may_change_nothing_outside() -> None:
    def rash(ctx: Context) -> None:
        ctx.effect("send", print)

    def agent(ctx: Context) -> None:
        ctx.speculate(rash)

    with opened() as service, pytest.raises(AgentFailedError, match="speculative"):
        run(chain(agent), service)


def test_an_async_branch_may_change_nothing_outside_either() -> None:
    async def rash(ctx: Context) -> None:
        await ctx.milestone("half")

    async def agent(ctx: Context) -> None:
        await ctx.speculate(rash)

    with opened() as service, pytest.raises(AgentFailedError, match="speculative"):
        run(chain(agent), service)


def test_a_branch_sees_the_state_of_the_run_and_tells_nobody() -> None:
    def peek(ctx: Context) -> Any:
        ctx.progress(0.5)
        assert ctx.resumed_from is None
        return ctx.shared["inputs"]

    def agent(ctx: Context) -> Any:
        return ctx.speculate(peek).result

    with opened() as service:
        assert run(chain(agent), service, inputs={"q": 1}).value == {"q": 1}
