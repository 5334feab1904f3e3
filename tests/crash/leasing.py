"""A scripted run of two processes that take a workflow from each other, and what they were promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    StoreNotFoundError,
)
from holdfast.domain.record import Commit, Lease
from holdfast.testing import FixedClock
from tests.crash.ledger import make_event
from tests.crash.workload import RING_BYTES

OVER_SECONDS = 0.0
LONG_SECONDS = 60.0
WORKFLOW = "WF-leased"


def open_at(disk: Disk, clock: FixedClock, *, read_only: bool = False) -> FilesystemStore:
    return FilesystemStore.open(
        disk.root, disk=disk, background=False, journal_bytes=RING_BYTES, clock=clock, read_only=read_only
    )


def long_after() -> FixedClock:
    """A clock by which every lease of the script has expired."""
    clock = FixedClock()
    clock.advance(timedelta(days=1))
    return clock


@dataclass
class Promises:
    """What callers were told about the workflow's lease."""

    current: Lease | None = None
    #: A call runs, or ended without an answer: the lease may be another one by now.
    in_doubt: bool = False
    highest: int = 0
    #: Tokens after which another was granted, or that were released.
    lost: set[int] = field(default_factory=set)

    def told(self, lease: Lease | None) -> None:
        if self.current is not None and (lease is None or lease.token != self.current.token):
            self.lost.add(self.current.token)
        self.current, self.in_doubt = lease, False
        self.highest = max(self.highest, lease.token if lease else 0)


@dataclass
class LeaseRun:
    """Runs the script and keeps the promises. `door` gives each process its disk."""

    door: Callable[[], Disk]
    promises: Promises = field(default_factory=Promises)
    stores: dict[str, FilesystemStore] = field(default_factory=dict)
    disks: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Lease] = field(default_factory=dict)
    after_step: Callable[[], None] = lambda: None
    errors: list[CheckpointError] = field(default_factory=list)
    clock: FixedClock = field(default_factory=FixedClock)

    def run(self) -> None:
        for step in SCRIPT:
            try:
                step(self)
            except CheckpointConflictError as refused:
                # Nothing changed by this call; what was in doubt before stays so.
                self.errors.append(refused)
            except CheckpointError as error:
                self.errors.append(error)
            self.after_step()

    def store(self, name: str) -> FilesystemStore:
        if name not in self.stores:
            self.disks[name] = self.door()
            self.stores[name] = open_at(self.disks[name], self.clock)
        return self.stores[name]

    def acquire(self, name: str, owner: str, ttl_seconds: float) -> None:
        self._change(name, lambda store: store.acquire(WORKFLOW, owner, ttl_seconds))

    def renew(self, name: str, ttl_seconds: float) -> None:
        if (lease := self.held.get(name)) is not None:
            self._change(name, lambda store: store.renew(lease, ttl_seconds))

    def release(self, name: str) -> None:
        if (lease := self.held.pop(name, None)) is not None:
            store, before = self.store(name), self.promises.in_doubt
            self.promises.in_doubt = True
            store.release(lease)
            if self.promises.current is not None and self.promises.current.token == lease.token:
                self.promises.told(None)
            self.promises.in_doubt = before

    def _change(self, name: str, change: Callable[[FilesystemStore], Lease]) -> None:
        store, before = self.store(name), self.promises.in_doubt
        self.promises.in_doubt = True
        try:
            lease = change(store)
        except CheckpointConflictError:
            self.promises.in_doubt = before
            raise
        self.held[name] = lease
        self.promises.told(lease)

    def commit(self, name: str) -> None:
        outcome = write(self.store(name), self.held[name].token if name in self.held else 0)
        if outcome is not None:
            assert isinstance(outcome, CheckpointError)
            raise outcome

    def close(self, name: str) -> None:
        store = self.stores.pop(name, None)
        if store is not None:
            store.close()


SCRIPT: list[Callable[[LeaseRun], None]] = [
    lambda run: run.acquire("A", "ann", OVER_SECONDS),
    lambda run: run.commit("A"),
    lambda run: run.renew("A", OVER_SECONDS),
    lambda run: run.acquire("B", "bob", OVER_SECONDS),
    lambda run: run.commit("B"),
    lambda run: run.commit("A"),
    lambda run: run.store("B").settle(),
    lambda run: run.release("B"),
    lambda run: run.acquire("A", "ann", LONG_SECONDS),
    lambda run: run.acquire("B", "bob", LONG_SECONDS),
    lambda run: run.renew("A", LONG_SECONDS),
    lambda run: run.store("A").settle(),
    lambda run: run.acquire("B", "ann", LONG_SECONDS),
    lambda run: run.commit("B"),
    lambda run: run.renew("A", LONG_SECONDS),
    lambda run: run.close("A"),
    lambda run: run.release("B"),
    lambda run: run.close("B"),
    lambda run: run.acquire("A", "ann", LONG_SECONDS),
    lambda run: run.close("A"),
]
#: What refuses a commit, an acquisition and a renewal of the script: somebody else has the workflow.
REFUSALS = ("LeaseLostError", "LeaseHeldError", "LeaseLostError")


def write(store: FilesystemStore, token: int) -> Exception | None:
    """Commit one event under a token; answer the outcome."""
    try:
        head = store.head(WORKFLOW)
    except CheckpointCorruptError as error:
        return error
    event = make_event(head, WORKFLOW, "2026-01-11T12:00:00.000000Z", {"token": token})
    return store.commit([Commit(WORKFLOW, head, events=(event,), token=token)])[0]


def broken_promises(disk: Disk, promises: Promises) -> list[str]:
    """Everything in which a recovered store breaks its word; empty if it keeps it."""
    try:
        reader = open_at(disk, long_after(), read_only=True)
    except StoreNotFoundError as error:
        return [repr(error)] if promises.highest else []
    found = wrong_lease(reader, promises)
    reader.close()
    store = open_at(disk, long_after())
    found += wrong_lease(store, promises) + weak_fence(store, promises)
    found += [f"check: {finding}" for finding in store.check()]
    taken = store.acquire(WORKFLOW, "new", LONG_SECONDS)
    if taken.token <= promises.highest:
        found.append(f"token {taken.token} was granted, {promises.highest} was the last")
    return found + weak_fence(store, Promises(taken, lost={*promises.lost, promises.highest} - {0}))


def wrong_lease(store: FilesystemStore, promises: Promises) -> list[str]:
    lease, current = store.lease(WORKFLOW), promises.current
    if promises.in_doubt:
        # Nothing but the last lease that was told, or one that nobody was told of yet.
        is_known = lease is not None and lease.token in promises.lost
        return [f"{lease} is in force, its token was lost"] if is_known else []
    known = [(lease.owner, lease.token, lease.expires_at) if lease else None for lease in (lease, current)]
    return [] if known[0] == known[1] else [f"{lease} is in force, told was {current}"]


def weak_fence(store: FilesystemStore, promises: Promises) -> list[str]:
    found = []
    for token in sorted(promises.lost):
        outcome = write(store, token)
        if not isinstance(outcome, CheckpointConflictError | CheckpointCorruptError):
            found.append(f"token {token} was lost and passed: {outcome!r}")
    if promises.current is not None and not promises.in_doubt:
        outcome = write(store, promises.current.token)
        found += [] if outcome is None else [f"the token in force was refused: {outcome!r}"]
    return found
