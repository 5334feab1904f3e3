"""Why a run ends before its plan does."""

from __future__ import annotations

from holdfast.execution.outcome import RunStatus


class Unwinding(BaseException):
    """Passes through agents: what ends them, and is not theirs."""


class Stopped(Unwinding):
    """Unwinds a run that was asked to stop; no Exception, so that no agent catches it by accident."""

    def __init__(self, status: RunStatus) -> None:
        super().__init__(status)
        self.status = status


class StopSign:
    """Tells everything that is about to begin whether it may."""

    def __init__(self) -> None:
        self.status: RunStatus | None = None

    def set(self, status: RunStatus) -> None:
        """Ask the run to stop; the first reason stays, but for a pause, which everything else outweighs."""
        if self.status in (None, RunStatus.PAUSED):
            self.status = status

    def check(self) -> None:
        """Let nothing begin once the run shall stop.

        Raises:
            Stopped: it shall.
        """
        if self.status is not None:
            raise Stopped(self.status)
