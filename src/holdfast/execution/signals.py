"""Ending runs well when the process is told to end, and letting it end then."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

#: What a service manager or a person sends to have a process end.
_HEEDED = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Post:
    """The runs of one loop, and the signal that came while they were under way."""

    listeners: list[Callable[[], None]] = field(default_factory=list)
    runs: int = 0
    came: int | None = None
    #: Set once what came was handed on.
    handed: asyncio.Event = field(default_factory=asyncio.Event)

    def leave(self) -> int | None:
        """Count one run less; answer the signal that the last one has to hand on."""
        self.runs -= 1
        if self.runs:
            return None
        came, self.came = self.came, None
        return came


_POSTS: WeakKeyDictionary[asyncio.AbstractEventLoop, _Post] = WeakKeyDictionary()


@asynccontextmanager
async def handed_on(*, enabled: bool) -> AsyncIterator[None]:
    """Give a signal that ended the runs of a loop to whoever had it before, once the last of them is over.

    A run that would begin meanwhile waits for that: most processes end there.
    """
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield
        return
    post = _POSTS.setdefault(asyncio.get_running_loop(), _Post())
    while post.came is not None:
        await post.handed.wait()
    post.runs += 1
    try:
        yield
    finally:
        number = post.leave()
        if number is not None:
            _hand_on(post, number)


def _hand_on(post: _Post, number: int) -> None:
    post.handed.set()
    post.handed.clear()
    # A handler that was given to the loop itself has heard of it when it came.
    if getattr(signal.getsignal(number), "__module__", "") != "asyncio.unix_events":
        signal.raise_signal(number)


@contextmanager
def heeded(on_signal: Callable[[], None], *, enabled: bool) -> Iterator[None]:
    """Call a function when the process is told to end; the signals are taken over while any run listens."""
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    post = _POSTS.setdefault(loop, _Post())
    if not post.listeners:
        _install(loop, post)
    post.listeners.append(on_signal)
    try:
        yield
    finally:
        post.listeners.remove(on_signal)
        if not post.listeners:
            _restore()


_BEFORE: dict[int, Any] = {}


def _install(loop: asyncio.AbstractEventLoop, post: _Post) -> None:
    def tell() -> None:
        for listener in list(post.listeners):
            listener()

    def heed(number: int, frame: FrameType | None) -> None:
        if post.runs:
            post.came = post.came or number
        loop.call_soon_threadsafe(tell)

    for number in _HEEDED:
        before = signal.getsignal(number)
        if before is signal.SIG_IGN or before is None:
            # Whoever started the process wants it to go on; or the handler is none that could be restored.
            continue
        # Not the loop's own way: the application may have a handler there, which would be lost.
        _BEFORE[number] = signal.signal(number, heed)


def _restore() -> None:
    for number in _HEEDED:
        if number in _BEFORE:
            signal.signal(number, _BEFORE.pop(number))
