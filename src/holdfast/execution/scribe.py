"""Keeping the progress report of a run up to date, beside the run and never in its way."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from holdfast.application.recording import Recording
from holdfast.domain.event import Event
from holdfast.execution.engines.threads import Threads

_LOG = logging.getLogger("holdfast")


class Scribe:
    """Writes what was committed into the report, in a thread that all runs of a loop share."""

    def __init__(self, recording: Recording, threads: Threads) -> None:
        self._recording = recording
        self._threads = threads
        self._mutex = threading.Lock()
        self._events: list[Event] = []
        self._writing: Future[Any] | None = None

    def put(self, events: Sequence[Event]) -> None:
        """Have events written before long; called by whoever committed them."""
        with self._mutex:
            self._events += events
            if self._writing is None:
                self._writing = self._threads.submit(self._write)

    async def finish(self) -> None:
        """Return once everything is written."""
        writing = self._writing
        if writing is not None:
            await asyncio.wrap_future(writing)

    def _write(self) -> None:
        while True:
            with self._mutex:
                events, self._events = self._events, []
                if not events:
                    self._writing = None
                    return
            try:
                self._recording.report(events)
            except Exception:
                # The journal has it all: the report is made anew from there.
                _LOG.exception("the progress report is behind")
