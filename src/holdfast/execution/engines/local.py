"""The engine of this process: coroutines on the loop, plain functions in threads."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

from holdfast.execution.engines.failing import as_failure
from holdfast.execution.engines.threads import Threads
from holdfast.execution.stopping import Unwinding

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
    """Await an agent; one that would end the process or the run fails instead, and its run decides."""
    own = asyncio.current_task()
    try:
        return await function(*arguments)
    except (Exception, Unwinding):
        raise
    except BaseException as fault:
        task = asyncio.current_task()
        # Somebody stops the run, closes the coroutine, or has pressed Ctrl-C: that is not the agent's.
        is_stopped = isinstance(fault, asyncio.CancelledError) and (task is None or task.cancelling())
        if is_stopped or task is not own or isinstance(fault, KeyboardInterrupt):
            raise
        raise as_failure(fault) from fault


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call an agent, with the same care; nobody cancels or interrupts a thread."""
    try:
        return function(*arguments)
    except (StopIteration, CancelledError) as fault:
        # No future takes the one, and whoever waits would wait for ever; the other would be the run's own.
        raise as_failure(fault) from fault
    except (Exception, Unwinding):
        raise
    except BaseException as fault:
        raise as_failure(fault) from fault
