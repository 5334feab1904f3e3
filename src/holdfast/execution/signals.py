"""Ending runs well when the process is told to end."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

#: What a service manager or a person sends to have a process end.
_HEEDED = (signal.SIGTERM, signal.SIGINT)
_LISTENERS: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Callable[[], None]]] = WeakKeyDictionary()


@contextmanager
def heeded(on_signal: Callable[[], None], *, enabled: bool) -> Iterator[None]:
    """Call a function when the process is told to end; the signals are taken over while any run listens."""
    if not enabled or threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    listeners = _LISTENERS.setdefault(loop, [])
    if not listeners:
        _install(loop, listeners)
    listeners.append(on_signal)
    try:
        yield
    finally:
        listeners.remove(on_signal)
        if not listeners:
            _restore()


_BEFORE: dict[int, Any] = {}


def _install(loop: asyncio.AbstractEventLoop, listeners: list[Callable[[], None]]) -> None:
    def tell() -> None:
        for listener in list(listeners):
            listener()

    def heed(number: int, frame: FrameType | None) -> None:
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
