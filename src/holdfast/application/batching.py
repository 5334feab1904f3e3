"""Events that nobody waits for: they go with the next commit, or by themselves soon after."""

from __future__ import annotations

import threading
from dataclasses import replace

from holdfast.application.commands import AppendEvent
from holdfast.application.commit_queue import CommitQueue, OnDone
from holdfast.application.kit import Kit
from holdfast.application.writer import Writer
from holdfast.domain.event import Event

BATCH_SECONDS = 1.0


class Batch:
    """Lets events wait for company, for a second at most where there are threads."""

    def __init__(self, kit: Kit, queue: CommitQueue, writer: Writer, on_done: OnDone) -> None:
        """Begin empty; `on_done` is told how the commit of each event ended."""
        self._kit = kit
        self._queue = queue
        self._writer = writer
        self._on_done = on_done
        self._mutex = threading.Lock()
        self._timer: threading.Timer | None = None

    def append(self, command: AppendEvent) -> Event:
        """Queue an event for the next commit; answer it as it will be, marked as not durable yet."""
        event: Event = self._writer.append(command, self._on_done, is_urgent=False).result
        if self._kit.background:
            self._set_timer()
        return replace(event, durable=False)

    def close(self) -> None:
        """Wait for nothing any more: whoever closes the queue commits what is in it."""
        with self._mutex:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _set_timer(self) -> None:
        with self._mutex:
            if self._timer is None:
                self._timer = threading.Timer(BATCH_SECONDS, self._bring)
                self._timer.name, self._timer.daemon = "holdfast-batch", True
                self._timer.start()

    def _bring(self) -> None:
        with self._mutex:
            self._timer = None
        self._queue.flush()
