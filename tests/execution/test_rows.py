"""A row is done in its order, in one thread as far as that goes, and nothing of it outlives its run."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest

from holdfast import Retry, RunOptions, Workflow
from holdfast.execution.context import Context
from holdfast.execution.plan import Agent, make_plan
from holdfast.execution.results import Results
from holdfast.execution.rows import Row, stretches
from tests.execution.journals import PATIENCE_SECONDS, begun
from tests.execution.runs import chain, opened, run, told_to, types

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="nobody")


def plain(name: str) -> Agent:
    return Agent(name, lambda ctx: None, "row")


async def on_the_loop(ctx: Context) -> None:
    """Do nothing."""


def test_plain_agents_are_one_stretch_and_those_that_need_the_loop_another() -> None:
    agents = [plain("one"), plain("two"), Agent("three", on_the_loop, "row"), plain("four")]
    found = [
        (is_plain, [(one.name, then and then.name) for one, then in pairs])
        for is_plain, pairs in stretches(agents)
    ]
    assert found == [
        (True, [("one", "two"), ("two", "three")]),
        (False, [("three", "four")]),
        (True, [("four", None)]),
    ]
    assert list(stretches([])) == []


def test_what_is_over_is_left_out_and_nobody_begins_it_again() -> None:
    agents = [plain("one"), plain("two"), plain("three")]
    tasks = [{"id": "two", "agent": "two", "result": 2}]
    with opened() as service:
        results = Results(begun(service, tasks=tasks), make_plan("w", {}))
        [(_, pairs)] = stretches(agents)
        works = list(Row(results).works(pairs))
    assert [(work.frame.step_id, work.then) for work in works] == [("one", None), ("three", None)]
    assert not any(work.is_awaited for work in works)


def test_a_later_round_has_steps_of_its_own_and_knows_what_came_before() -> None:
    agents, history = [plain("one"), plain("two")], [{"iteration": 1, "evaluation": "no"}]
    with opened() as service:
        results = Results(begun(service, tasks=[{"id": "one", "result": 1}]), make_plan("w", {}))
        [(_, pairs)] = stretches(agents)
        [first, second] = Row(results, 2, history).works(pairs)
    assert (first.frame.step_id, first.frame.iteration, first.frame.history) == ("one#2", 2, history)
    assert first.then is not None and first.then.step_id == second.frame.step_id == "two#2"


def test_plain_agents_of_a_row_share_a_thread_that_is_not_the_loops() -> None:
    threads: list[int] = []

    def one(ctx: Context) -> None:
        threads.append(threading.get_ident())

    def two(ctx: Context) -> None:
        threads.append(threading.get_ident())

    with opened() as service:
        run(chain(one, two), service)
    assert len(threads) == 2 and len(set(threads)) == 1 and threading.get_ident() not in threads


def test_what_an_agent_sets_in_its_context_is_not_seen_by_the_next() -> None:
    def one(ctx: Context) -> str:
        NAME.set("kelp")
        return NAME.get()

    def two(ctx: Context) -> str:
        return NAME.get()

    with opened() as service:
        assert run(chain(one, two), service).results == {"one": "kelp", "two": "nobody"}


def test_a_result_is_durable_before_the_next_agent_begins() -> None:
    seen: list[list[str]] = []

    def one(ctx: Context) -> int:
        return 1

    def two(ctx: Context) -> int:
        seen.append(types(service))
        return 2

    with opened() as service:
        run(chain(one, two), service)
    assert seen == [["CHECKPOINT_CREATED", "AGENT_STARTED", "AGENT_COMPLETED"]]


def test_an_agent_that_fails_is_tried_again_and_the_row_goes_on() -> None:
    def one(ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ConnectionError("not yet")
        return ctx.attempt

    def two(ctx: Context) -> Any:
        return ctx.result("one")

    with opened() as service:
        result = run(chain(one, two, retry=Retry(2, delay_seconds=0)), service)
    assert (result.value, result.ran) == (2, 3)


def test_an_agent_that_would_end_the_process_fails_instead() -> None:
    def one(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise SystemExit(3)

    with opened() as service:
        run(chain(one, retry=Retry(2, delay_seconds=0)), service)
        [failed] = service.events("WF-1", type="AGENT_FAILED")
    assert "sys.exit(3)" in failed.data["error"]["message"]


def test_nothing_of_a_row_is_begun_or_recorded_once_its_run_was_stopped() -> None:
    at_work, go_on = threading.Event(), threading.Event()
    entered: list[str] = []
    threads: list[threading.Thread] = []
    told, subscriber = told_to()

    def one(ctx: Context) -> int:
        entered.append("one")
        threads.append(threading.current_thread())
        at_work.set()
        go_on.wait(PATIENCE_SECONDS)
        return 1

    def two(ctx: Context) -> None:
        entered.append("two")

    async def main(workflow: Workflow) -> None:
        running = asyncio.ensure_future(
            workflow.run(service, "WF-1", options=RunOptions(subscribers=(subscriber,)))
        )
        await asyncio.to_thread(at_work.wait, PATIENCE_SECONDS)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with opened() as service:
        asyncio.run(main(chain(one, two)))
        go_on.set()
        threads[0].join(PATIENCE_SECONDS)
        assert entered == ["one"]
        assert types(service) == ["CHECKPOINT_CREATED", "AGENT_STARTED", "RUN_UPDATED", "CHECKPOINT_CREATED"]
    assert [kind for kind, _ in told if kind == "agent_completed"] == []
