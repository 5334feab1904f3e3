"""The safety net under a service: what catches commits that the store cannot take, put together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.application.commands import AppendEvent
from holdfast.application.commit_queue import CommitQueue, Ticket
from holdfast.application.faults.attending import Attendant
from holdfast.application.faults.degrading import Degrading
from holdfast.application.faults.health import Health, Listeners, OnModeChange, OnWritten, Tales
from holdfast.application.kit import Kit
from holdfast.application.telling import Teller
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.errors import CheckpointError, DiskFullError
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.unwritten import Unwritten

if TYPE_CHECKING:
    from holdfast.application.retain import PruneResult

_LOG = logging.getLogger("holdfast")
#: Pruning ends when it gave back so much: nobody waits for a store to be swept as a whole.
_ROOM_BYTES = 16 * 1024 * 1024
#: So often pruning is tried again, keeping twice as many.
_WIDENINGS_MAX = 8


class Safety:
    """Catches what falls, tells, and says how things stand."""

    def __init__(
        self,
        kit: Kit,
        queue: CommitQueue,
        writer: Writer,
        trail: Trail,
        prune: Callable[[str, RetentionPolicy], PruneResult],
        listeners: Listeners,
    ) -> None:
        """Hang the net under a queue; costs nothing before the first fault."""
        self._kit = kit
        self._writer = writer
        self._prune = prune
        self._tales = Tales(self._record, listeners)
        self._shelter = Degrading(kit, Teller(trail), self._tales)
        self._attendant = Attendant(self._shelter, queue, self._tales, kit.faults.retry, self._make_room)
        self._mutex = threading.Lock()
        #: What is to be done once nothing of a workflow waits any more.
        self._later: dict[str, list[Callable[[], None]]] = {}
        self._tales.on_late = self._do_late
        queue.shelter = self._shelter
        writer.held_base = self._shelter.base_of
        writer.blind_base = self._shelter.blind_base

    def receipt(self, ticket: Ticket) -> Any:
        """Answer the result of a commit that fell into the net, once all was tried to make it durable."""
        self._attendant.until_relieved()
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def health(self) -> Health:
        """Tell how things stand."""
        return self._shelter.health()

    def unwritten(self, workflow_id: str) -> Unwritten:
        """Tell what of a workflow the store does not have; at the end, what became of that."""
        return self._attendant.unwritten(workflow_id)

    def forget_refused(self, workflow_id: str) -> None:
        """Tell no more of what the store refused of a workflow: somebody begins with what it has."""
        self._attendant.forget_refused(workflow_id)

    def once_written(self, workflow_id: str, act: Callable[[], None]) -> None:
        """Do something once nothing of a workflow waits any more, in a thread of ours or at the end.

        It is not done if something of it waits to the end.
        """
        with self._mutex:
            self._later.setdefault(workflow_id, []).append(act)
        # It may have been written, and told, just before.
        self._do_late(workflow_id)

    def _do_late(self, workflow_id: str) -> None:
        if self._shelter.base_of(workflow_id) is not None:
            return
        with self._mutex:
            acts = self._later.pop(workflow_id, [])
        for act in acts:
            act()

    def on_mode_change(self, listener: OnModeChange) -> None:
        """Let a function be told of each step, in a thread of ours."""
        self._tales.listeners.on_mode_change.append(listener)

    def on_written(self, listener: OnWritten) -> None:
        """Let a function be told what was written late, in a thread of ours."""
        self._tales.listeners.on_written.append(listener)

    def flush(self) -> None:
        """Write what waits; raises CheckpointWriteError if it still does."""
        self._attendant.flush()

    def close(self) -> None:
        """Write what waits, or save it in the second store. Idempotent."""
        self._attendant.close()

    def _record(self, workflow_id: str, type: str, data: dict[str, Any]) -> None:
        self._writer.append(AppendEvent(workflow_id, type, data), _heard)

    def _make_room(self) -> int:
        """Remove what retention lets go, those workflows first that have to be written; answer the bytes."""
        policy, freed = self._kit.retention, 0
        if policy is None:
            return 0
        for workflow_id in self._by_need():
            freed += self._pruned(workflow_id, policy)
            if freed >= _ROOM_BYTES:
                break
        if freed:
            _LOG.warning("the disk is full: pruning gave back %d bytes", freed)
            # Removed is not gone: a store may take files away later, with other work. The first time it may
            # have no room for that work before the files are gone.
            for _ in range(2):
                try:
                    self._kit.store.settle()
                    break
                except CheckpointError as problem:
                    _LOG.info("what was pruned is not all gone yet: %s", problem)
        return freed

    def _pruned(self, workflow_id: str, policy: RetentionPolicy) -> int:
        """Prune one workflow, and keep more of it while there is no room for what pruning itself writes."""
        for _ in range(_WIDENINGS_MAX):
            try:
                return self._prune(workflow_id, policy).freed_bytes
            except DiskFullError as problem:
                # With more checkpoints kept, the older keyframes among them make a new one unnecessary.
                _LOG.info("%s cannot be pruned to %d: %s", workflow_id, policy.retain_count, problem)
                policy = replace(policy, retain_count=2 * max(policy.retain_count, 1))
            except CheckpointError as problem:
                _LOG.info("%s was not pruned to make room: %s", workflow_id, problem)
                break
        return 0

    def _by_need(self) -> list[str]:
        waiting = self._shelter.waiting.workflows()
        try:
            others = set(self._kit.store.workflows()) - set(waiting)
        except CheckpointError:
            return waiting
        return [*waiting, *sorted(others)]


def _heard(ticket: Ticket) -> None:
    if ticket.error is not None:
        _LOG.warning("an event of the storage ladder is not recorded: %s", ticket.error)
