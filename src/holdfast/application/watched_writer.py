"""The writer as it is where somebody counts or traces: each checkpoint is followed until it is decided."""

from __future__ import annotations

import threading

from holdfast.application.base import Base, Slot
from holdfast.application.commands import CreateCheckpoint
from holdfast.application.commit_queue import CommitQueue, OnDone, Ticket
from holdfast.application.housekeeping import Housekeeper
from holdfast.application.kit import Kit
from holdfast.application.observing import CommitWatch, Saving
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer


class _Current(threading.local):
    """The checkpoint that each thread prepares at the moment."""

    saving: Saving | None = None


class WatchedWriter(Writer):
    """Prepares commits as the writer does, and tells of the checkpoints among them."""

    def __init__(
        self, kit: Kit, queue: CommitQueue, housekeeper: Housekeeper, trail: Trail, watch: CommitWatch
    ) -> None:
        super().__init__(kit, queue, housekeeper, trail)
        self._watch = watch
        self._current = _Current()

    def create(self, command: CreateCheckpoint, on_done: OnDone | None = None) -> Ticket:
        """Queue a checkpoint, and tell of it once it is decided."""
        saving = self._current.saving = Saving(self._kit, command)
        try:
            return super().create(command, on_done)
        except BaseException as problem:
            saving.failed(problem)
            raise
        finally:
            self._current.saving = None

    def _submit(self, slot: Slot, ticket: Ticket, following: Base, *, is_urgent: bool = True) -> Ticket:
        saving = self._current.saving
        if saving is None:
            return super()._submit(slot, ticket, following, is_urgent=is_urgent)
        saving.encoded()
        # Before it is queued: another thread may have decided it before this one goes on.
        self._watch.expect(ticket, saving)
        try:
            return super()._submit(slot, ticket, following, is_urgent=is_urgent)
        except BaseException:
            self._watch.forget(ticket)
            raise
