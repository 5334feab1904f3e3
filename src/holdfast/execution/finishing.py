"""What has to come to its end however often its caller is cancelled: a lease taken, a lease given up."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def begun(function: Callable[..., _Value], *arguments: Any) -> asyncio.Future[_Value]:
    """Call a function in a thread; no task, so that a loop that ends does not cancel it before it began."""
    place = contextvars.copy_context()
    return asyncio.get_running_loop().run_in_executor(None, partial(place.run, function, *arguments))


async def settled(future: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for the end of something whatever cancels come meanwhile; answer the last one, to be raised."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as fault:
            cancelled = fault
    if not future.cancelled():
        # Looked at: whoever is cancelled does not ask how it went.
        future.exception()
    return cancelled


async def finished(future: asyncio.Future[_Value]) -> _Value:
    """Answer what came of something, or be cancelled once it has ended."""
    cancelled = await settled(future)
    if cancelled is not None:
        raise cancelled
    return future.result()
