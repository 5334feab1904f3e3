"""How long each step of a piece of work takes, and whether all of it takes too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.domain.errors import CheckpointRecoveryError
from holdfast.domain.recovery import Timing


class Stopwatch:
    """Times steps, and ends work that takes longer than it may."""

    def __init__(self, limit_seconds: float, now: Callable[[], float] = time.perf_counter) -> None:
        self._limit_seconds = limit_seconds
        self._now = now
        self._began = now()
        self.steps: list[Timing] = []

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time what is done inside.

        Raises:
            CheckpointRecoveryError: the work as a whole has taken too long.
        """
        began = self._now()
        try:
            yield
        finally:
            self.steps.append(Timing(name, 1000 * (self._now() - began)))
        self.check()

    @property
    def milliseconds(self) -> float:
        """How long it has been."""
        return 1000 * (self._now() - self._began)

    def check(self) -> None:
        """Raise CheckpointRecoveryError if it has been too long."""
        if self.milliseconds > 1000 * self._limit_seconds:
            raise CheckpointRecoveryError(
                f"the recovery took longer than {self._limit_seconds:g} seconds",
                hint="Nothing was lost: try again, with a higher recovery_timeout_seconds.",
            )
