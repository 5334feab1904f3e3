"""Keeping the progress report of a run up to date, beside the run and never in its way."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

from holdfast.application.recording import Recording
from holdfast.domain.event import Event
from holdfast.execution.engines.threads import Threads

_LOG = logging.getLogger("holdfast")
_PAUSE_SECONDS = 0.2


class Scribe:
    """Writes what was committed into the report, in a thread that all runs of a loop share.

    Once in a while, for all that came meanwhile: to write each section at once would cost as much as the
    commit itself.
    """

    def __init__(self, recording: Recording, threads: Threads, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._recording = recording
        self._threads = threads
        self._pause_seconds = pause_seconds
        self._loop = asyncio.get_running_loop()
        self._mutex = threading.Lock()
        self._events: list[Event] = []
        self._is_due = False

    def put(self, events: Sequence[Event]) -> None:
        """Have events written before long; called by whoever committed them, in any thread."""
        with self._mutex:
            self._events += events
            if self._is_due:
                return
            self._is_due = True
        # A loop that is closed has a run no more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.call_later, self._pause_seconds, self._begin)

    async def finish(self) -> None:
        """Return once everything is written."""
        await asyncio.wrap_future(self._threads.submit(self._write))

    def _begin(self) -> None:
        with self._mutex:
            self._is_due = False
        self._threads.submit(self._write)

    def _write(self) -> None:
        with self._mutex:
            events, self._events = self._events, []
        try:
            if events:
                self._recording.report(events)
        except Exception:
            # The journal has it all: the report is made anew from there.
            _LOG.exception("the progress report is behind")
