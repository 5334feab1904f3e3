"""Calling a program's own functions: plain ones and coroutines, and not for longer than they may take."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

from holdfast.domain.errors import CheckpointRecoveryError

#: How long a coroutine may take to clean up once its time is over.
_GRACE_SECONDS = 5.0


class OverdueError(CheckpointRecoveryError):
    """A function took longer than it may. A plain one cannot be ended from outside: it was left behind."""


def call(function: Callable[..., Any], *arguments: Any, timeout_seconds: float) -> Any:
    """Call a function in a thread of its own, and wait for what it answers; a coroutine is run there.

    Args:
        function: what to call.
        arguments: what it is given.
        timeout_seconds: a coroutine is cancelled then, a plain function is left to itself.

    Raises:
        OverdueError: it took too long.
    """
    running = _Running(timeout_seconds, is_coroutine=inspect.iscoroutinefunction(function))
    target = copy_context().run
    arguments = (running.carry_out, function, arguments)
    threading.Thread(target=target, args=arguments, name="holdfast-handler", daemon=True).start()
    return running.wait()


class _Running:
    """One call on its way."""

    def __init__(self, timeout_seconds: float, *, is_coroutine: bool) -> None:
        self._timeout_seconds = timeout_seconds
        # Of others it is known once they were called, which may be after their time on a busy machine.
        self._is_coroutine = is_coroutine
        self._outcome: Future[Any] = Future()

    def carry_out(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Call, and keep what comes of it."""
        try:
            answer = function(*arguments)
            if inspect.isawaitable(answer):
                self._is_coroutine = True
                answer = self._run(answer)
        except BaseException as problem:
            self._outcome.set_exception(problem)
        else:
            self._outcome.set_result(answer)

    def wait(self) -> Any:
        """Answer what the function answered; raise what it raised."""
        try:
            return self._outcome.result(self._timeout_seconds)
        except TimeoutError:
            if not self._outcome.done() and not self._is_coroutine:
                raise self._overdue() from None
        try:
            return self._outcome.result(_GRACE_SECONDS)
        except TimeoutError:
            if not self._outcome.done():
                raise self._overdue() from None
            raise

    def _run(self, awaitable: Awaitable[Any]) -> Any:
        # Whoever has no coroutines need not wait for this import.
        import asyncio

        async def bounded() -> Any:
            task = asyncio.ensure_future(awaitable)
            done, _ = await asyncio.wait([task], timeout=self._timeout_seconds)
            if done:
                return task.result()
            task.cancel()
            await asyncio.wait([task], timeout=_GRACE_SECONDS)
            raise self._overdue()

        return asyncio.run(bounded())

    def _overdue(self) -> OverdueError:
        return OverdueError(
            f"it took longer than {self._timeout_seconds:g} seconds",
            hint="Give it more time (recovery_timeout_seconds), or let it do less at a time.",
        )
