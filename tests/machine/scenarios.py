"""What a store does in its life, in a fixed order and by one thread: the same calls in every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.domain.errors import CheckpointError
from tests.machine.subjects import (
    DRIVER_OF,
    FILES,
    ROLLBACK,
    WAL,
    Told,
    UnsyncedDisk,
    never_sync_sqlite,
)
from tests.process import children, sqlite_children
from tests.process.child import Report
from tests.process.commits import group_of

STORES = (FILES, ROLLBACK, WAL)
WORKFLOWS = ("WF-0", "WF-1")
RING_BYTES = 16384
_SETTLE_EVERY = 8


@dataclass(frozen=True, slots=True)
class Scenario:
    """Commits, keyframes, erasures, prunes, settling and closing, on one kind of store."""

    store: str
    folder: str
    commits: int
    #: By how much each commit differs from the one before.
    pad_bytes: int = 37

    @property
    def root(self) -> str:
        return f"{self.folder}/store" if self.store == FILES else f"{self.folder}/store.db"

    def sqlite_plan(self) -> sqlite_children.Plan:
        return sqlite_children.Plan(self.root, *DRIVER_OF[self.store])

    def open(self, disk: Disk | None = None) -> Any:
        """Open the store to write, without a thread of its own."""
        if self.store != FILES:
            return sqlite_children.open_store(self.sqlite_plan())
        plan = children.Plan(self.root, journal_bytes=RING_BYTES, background=False)
        return children.open_store(plan, disk)

    def play(self, report: Report, *, lies: bool = False) -> None:
        """Run through it; whatever goes wrong ends it."""
        disk = UnsyncedDisk(self.root) if lies and self.store == FILES else None
        if lies and self.store != FILES:
            never_sync_sqlite()
        store = self.open(disk)
        for count in range(1, self.commits + 1):
            for workflow_id in WORKFLOWS:
                self._step(store, workflow_id, count, report)
            if count % _SETTLE_EVERY == 0:
                store.settle()
        store.close()

    def play_carefully(self, report: Report, *, lies: bool = False) -> None:
        """Run through it as a careful caller does: a fault is noted, the store opened again, life goes on.

        A liar acknowledges what failed.
        """
        store = None
        for count in range(1, self.commits + 1):
            for workflow_id in WORKFLOWS:
                try:
                    store = store or self.open()
                    self._step(store, workflow_id, count, report, early=lies)
                    if count % _SETTLE_EVERY == 0:
                        store.settle()
                except CheckpointError as error:
                    report.say("error", workflow_id, count, type(error).__name__)
                    _close(store, report)
                    store = None
        _close(store, report)

    def _step(self, store: Any, workflow_id: str, count: int, report: Report, *, early: bool = False) -> None:
        head = store.head(workflow_id)
        size = self.pad_bytes * count % 400
        head = children.commit_next(store, workflow_id, head, size, "w", report, early=early)
        if self.store == FILES:
            plan = children.Plan(self.root, keyframes=True, prunes=True, erases=True)
            children._maintain(plan, store, workflow_id, head, report)
        elif head.sequence == group_of(head.sequence):
            sqlite_children._keep_house(store, workflow_id, head, report)

    def go_on(self) -> list[str]:
        """Take the store up and commit more, as the next process does."""
        told = Told()
        try:
            store = self.open()
            for workflow_id in WORKFLOWS:
                children.commit_next(store, workflow_id, store.head(workflow_id), 100, "x", _Kept(told))
            store.close()
        except CheckpointError as error:
            return [f"it cannot be written any more: {error}"]
        return [] if told.count == len(WORKFLOWS) else ["it took no commit"]

    def check(self, told: Told) -> list[str]:
        """Open the store and say what is wrong."""
        if self.store == FILES:
            return children.verify(self.root, told, journal_bytes=RING_BYTES, label=self.store)
        if not told.count:
            # Perhaps not a database yet: to whoever opens it next it is a new one.
            sqlite_children.open_store(self.sqlite_plan()).close()
        return sqlite_children._verify(self.sqlite_plan(), told)


class _Kept(Report):
    """Stands where a report's pipe would be, in the process itself."""

    def __init__(self, told: Told) -> None:
        self._told = told

    def say(self, word: str, workflow_id: str, number: int, rest: str = "") -> None:
        self._told.note(f"{word} {workflow_id} {number} {rest}")


def _close(store: Any, report: Report) -> None:
    try:
        if store is not None:
            store.close()
    except CheckpointError as error:
        report.say("error", "-", 0, type(error).__name__)
