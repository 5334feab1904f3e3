"""Services over stores that stop taking commits on demand, and begin again."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from holdfast.adapters.memory import MemoryStore
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.faults.health import Step
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointWriteError, DiskFullError
from holdfast.domain.ladder import Climb, Mode
from holdfast.domain.record import Commit
from holdfast.domain.retry import FaultSettings
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.application.services import make_kit

#: Nobody wants to wait for trust in a test; who wants to see pauses says so.
QUICK = Climb(successes=1, pause_seconds=60.0, pause_max_seconds=60.0)


class GatedStore(FailingStore):
    """Takes everything, events only, or nothing."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(store)
        self.takes = "everything"
        #: Whether the next commit is carried out, and nobody learns of it.
        self.loses_answer = False
        self.error: Callable[[], Exception] = lambda: DiskFullError("no space left")

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        is_state = any(commit.record is not None for commit in commits)
        writes = any(commit.events or commit.audit or commit.files for commit in commits)
        if writes and (self.takes == "nothing" or (is_state and self.takes == "events")):
            raise self.error()
        outcomes = super().commit(commits)
        if self.loses_answer and writes:
            self.loses_answer = False
            raise CheckpointWriteError("the answer was lost")
        return outcomes


def gated_kit(store: Store | None = None, *, degrade: bool = True, spare: bool = True, **more: Any) -> Kit:
    """Put a kit together over a gated store, with a second store in memory."""
    faults = FaultSettings(
        is_degrading=degrade, climb=more.pop("climb", QUICK), memory_bytes=more.pop("memory_bytes", 1 << 26)
    )
    kit = make_kit(GatedStore(store), **more)
    open_spare = (lambda: replace(make_kit(MemoryStore()), ids=kit.ids, clock=kit.clock)) if spare else None
    return replace(kit, faults=faults, spare=open_spare)


class Gated:
    """A service, the gate of its store, and the steps that it told of."""

    def __init__(self, kit: Kit) -> None:
        self.kit = kit
        assert isinstance(kit.store, GatedStore)
        self.gate = kit.store
        # Told to be anything: tests ask for what they know to be there.
        self.service: Any = CheckpointService(kit)
        self.steps: list[tuple[Mode, Mode]] = []
        self.service.on_mode_change(self._note)

    def _note(self, step: Step) -> None:
        self.steps.append((step.before, step.after))

    @property
    def mode(self) -> Any:
        return self.service.health().mode

    def climb(self, target: Mode = Mode.FULL) -> None:
        """Go up step by step; each flush is a try."""
        for _ in range(10):
            if self.mode is target:
                return
            self.service.flush()
        raise AssertionError(f"stuck at {self.mode}")


class AsyncGated:
    """The same for coroutines."""

    def __init__(self, kit: Kit) -> None:
        assert isinstance(kit.store, GatedStore)
        self.gate = kit.store
        self.service: Any = AsyncCheckpointService(kit)


def waiter() -> tuple[queue.SimpleQueue[Any], Callable[[Any], None]]:
    """Answer a queue and what puts into it, to wait for callbacks without sleeping."""
    told: queue.SimpleQueue[Any] = queue.SimpleQueue()
    return told, told.put
