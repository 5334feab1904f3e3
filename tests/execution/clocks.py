"""The time by which agents are too late: it passes when a test says so, and not because a machine is busy."""

from __future__ import annotations

import threading

import pytest

from holdfast.execution import context
from holdfast.execution.remote import working
from holdfast.execution.remote.following import ChildWatch
from tests.execution.journals import PATIENCE_SECONDS


class AgentClock:
    """Stands still until it is moved on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._seconds = 1000.0
        monkeypatch.setattr(context, "time", self)
        monkeypatch.setattr(working, "time", self)

    def monotonic(self) -> float:
        return self._seconds

    def advance(self, seconds: float) -> None:
        self._seconds += seconds


class Looks:
    """Counts how often runs have looked at their workers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        self._changed = threading.Condition()
        look = ChildWatch.look

        async def counted(watch: ChildWatch) -> None:
            await look(watch)
            with self._changed:
                self._count += 1
                self._changed.notify_all()

        monkeypatch.setattr(ChildWatch, "look", counted)

    def wait(self) -> None:
        """Return once a run has seen what is recorded now: the look that is on its way may miss it."""
        with self._changed:
            enough = self._count + 2
            assert self._changed.wait_for(lambda: self._count >= enough, PATIENCE_SECONDS)
