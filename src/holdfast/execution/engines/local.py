"""The engine of this process: coroutines on the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from holdfast.execution.engines.threads import Threads

_THREADS_MAX = 64


class LocalEngine:
    """Runs agents in this process."""

    is_remote = False

    def __init__(self, threads: int = _THREADS_MAX) -> None:
        self._threads = Threads(threads)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Start a function: a coroutine as a task of the loop, any other in a thread."""
        if inspect.iscoroutinefunction(function):
            started: asyncio.Future[Any] = asyncio.ensure_future(_awaited(function, arguments))
            return started
        place = contextvars.copy_context()
        return asyncio.wrap_future(self._threads.submit(partial(place.run, _called, function, arguments)))

    def close(self) -> None:
        """Let the threads end; one that is still at work is not waited for."""
        self._threads.close()


def call_apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a plain agent in this thread: what it sets in its context is seen by nobody after it."""
    return contextvars.copy_context().run(_called, function, arguments)


async def _awaited(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Await an agent; one that would end the process fails instead, and its run decides."""
    try:
        return await function(*arguments)
    except SystemExit as leaving:
        raise _left(leaving) from leaving
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody stops the run: something that the agent waited for was cancelled.
        raise RuntimeError("the agent was cancelled from within") from cancelled


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call an agent, with the same care."""
    try:
        return function(*arguments)
    except SystemExit as leaving:
        raise _left(leaving) from leaving
    except StopIteration as fault:
        # No future takes it: whoever waits for the agent would wait for ever.
        raise RuntimeError("the agent raised StopIteration") from fault
    except asyncio.CancelledError as cancelled:
        # Nobody cancels a thread.
        raise RuntimeError("the agent was cancelled from within") from cancelled


def _left(leaving: SystemExit) -> RuntimeError:
    return RuntimeError(f"the agent called sys.exit({leaving.code!r})")
