"""The engine of this process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import sys
import threading
from functools import partial
from typing import Any

import pytest

import holdfast
from holdfast import Workflow
from holdfast.execution import opening
from holdfast.execution.engines.local import LocalEngine, call_apart

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME")


def test_coroutines_run_on_the_loop_and_functions_in_threads() -> None:
    async def main() -> tuple[int, int]:
        engine = LocalEngine()

        async def here(n: int) -> int:
            assert threading.current_thread() is threading.main_thread()
            return n

        def there(n: int) -> int:
            assert threading.current_thread() is not threading.main_thread()
            return n

        try:
            return await engine.submit(here, 1), await engine.submit(there, 2)
        finally:
            engine.close()

    assert asyncio.run(main()) == (1, 2)
    assert not LocalEngine.is_remote


def test_a_thread_sees_the_variables_of_whoever_asked() -> None:
    async def main() -> str:
        engine = LocalEngine()
        NAME.set("kelp")
        return str(await engine.submit(lambda: NAME.get()))

    assert asyncio.run(main()) == "kelp"


def test_cancelling_ends_a_coroutine() -> None:
    async def main() -> bool:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def endless() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        work = LocalEngine().submit(endless)
        await begun.wait()
        work.cancel()
        await ended.wait()
        return True

    assert asyncio.run(main())


def test_what_is_called_apart_sees_the_variables_of_its_caller_and_keeps_its_own() -> None:
    def renamed() -> str:
        before = NAME.get()
        NAME.set("wrack")
        return before

    def main() -> tuple[str, str]:
        NAME.set("kelp")
        return call_apart(renamed), NAME.get()

    assert contextvars.copy_context().run(main) == ("kelp", "kelp")


def test_what_is_called_apart_cannot_end_the_process() -> None:
    with pytest.raises(RuntimeError, match=r"sys.exit\(3\)"):
        call_apart(sys.exit, 3)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (StopIteration(), "raised StopIteration"),
        (asyncio.CancelledError(), "cancelled from within"),
        (concurrent.futures.CancelledError(), "raised CancelledError"),
    ],
)
def test_what_no_future_takes_or_means_something_else_is_told_as_a_failure(
    fault: BaseException, told: str
) -> None:
    def fails() -> None:
        raise fault

    async def main() -> None:
        with pytest.raises(RuntimeError, match=told):
            await LocalEngine().submit(fails)

    asyncio.run(main())
    with pytest.raises(RuntimeError, match=told):
        call_apart(fails)


def test_a_coroutine_that_waits_for_what_others_cancelled_has_failed() -> None:
    async def main() -> None:
        never = asyncio.ensure_future(asyncio.Event().wait())

        async def waits() -> None:
            never.cancel()
            await never

        with pytest.raises(RuntimeError, match="cancelled from within"):
            await LocalEngine().submit(waits)

    asyncio.run(main())


def test_agents_that_wait_for_what_they_spawned_take_no_thread_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "LocalEngine", partial(LocalEngine, 2))
    workflow = Workflow("spawning")
    at_once = threading.Barrier(2)

    def double(ctx: Any, number: int) -> int:
        return 2 * number

    @workflow.agent(each=lambda run: [1, 2])
    def parent(ctx: Any, number: int) -> int:
        at_once.wait()
        return int(ctx.spawn(double, number))

    with holdfast.open("memory:") as service:
        result = workflow.run_sync(service, "WF-1")
    assert result.value == [2, 4]
