"""Keeping the leases of running workflows alive, in a thread that no agent can hold up."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from holdfast.application.recording import Recording
from holdfast.domain.errors import LeaseLostError
from holdfast.domain.record import Lease

_RENEWALS_PER_LEASE = 3
_LOG = logging.getLogger("holdfast")


@dataclass(slots=True)
class _Kept:
    recording: Recording
    lease: Lease
    ttl_seconds: float
    on_lost: Callable[[], object]
    due_at: float = 0.0

    def wait(self) -> None:
        """Let it be due again when a part of its time is over."""
        self.due_at = time.monotonic() + self.ttl_seconds / _RENEWALS_PER_LEASE


class LeaseKeeper:
    """Renews leases until they are given up; one thread for all runs of a process on one store."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Keep nothing: at the start, and again in a forked child."""
        self._mutex = threading.Lock()
        self._kept: dict[int, _Kept] = {}
        self._changed = threading.Condition(self._mutex)
        self._thread: threading.Thread | None = None
        #: When the thread looks again by itself.
        self._wakes_at = 0.0

    def keep(
        self, recording: Recording, lease: Lease, ttl_seconds: float, on_lost: Callable[[], object]
    ) -> None:
        """Renew a lease from now on; tell when it is lost, from another thread."""
        kept = _Kept(recording, lease, ttl_seconds, on_lost)
        kept.wait()
        with self._changed:
            # The lease is held here, so no other has its id meanwhile.
            self._kept[id(lease)] = kept
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-leases", daemon=True)
                self._thread.start()
            elif kept.due_at < self._wakes_at:
                self._changed.notify()

    def drop(self, lease: Lease) -> None:
        """Renew it no more."""
        with self._changed:
            self._kept.pop(id(lease), None)
            if not self._kept:
                # As long as there are others it is enough to look when the next one is due.
                self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                if not self._kept:
                    self._thread = None
                    return
                self._wakes_at = min(one.due_at for one in self._kept.values())
                pause_seconds = self._wakes_at - time.monotonic()
                if pause_seconds > 0:
                    self._changed.wait(pause_seconds)
                now = time.monotonic()
                due = [one for one in self._kept.values() if one.due_at <= now]
            for one in due:
                self._renew(one)

    def _renew(self, one: _Kept) -> None:
        one.wait()
        try:
            one.recording.renew(one.lease, one.ttl_seconds)
        except LeaseLostError:
            self._lose(one)
        except Exception as problem:
            # The store may be back for the next one; if not, the lease is over by itself. Whatever it is:
            # the leases of all other runs depend on this thread.
            _LOG.warning("the lease of %s was not renewed: %s", one.lease.workflow_id, problem)

    def _lose(self, one: _Kept) -> None:
        with self._mutex:
            was_kept = self._kept.pop(id(one.lease), None)
        # A loop that is closed has no run any more that could be told.
        with suppress(RuntimeError):
            if was_kept is not None:
                one.on_lost()


class LeaseKeepers:
    """A keeper for each store: one that hangs costs nobody else the lease on a healthy one."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Keep nothing: at the start, and again in a forked child."""
        self._mutex = threading.Lock()
        self._keepers: dict[str, LeaseKeeper] = {}

    def keep(
        self, recording: Recording, lease: Lease, ttl_seconds: float, on_lost: Callable[[], object]
    ) -> None:
        """Renew a lease from now on; tell when it is lost, from another thread."""
        with self._mutex:
            keeper = self._keepers.setdefault(recording.url, LeaseKeeper())
        keeper.keep(recording, lease, ttl_seconds, on_lost)

    def drop(self, recording: Recording, lease: Lease) -> None:
        """Renew it no more."""
        with self._mutex:
            keeper = self._keepers.get(recording.url)
        if keeper is not None:
            keeper.drop(lease)


KEEPER = LeaseKeepers()
# A forked child has neither the thread nor any right to its parent's leases.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=KEEPER.begin)
