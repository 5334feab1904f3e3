"""What came of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class RunStatus(StrEnum):
    """How a run stands."""

    COMPLETED = "completed"
    FAILED = "failed"
    #: Nothing is left to do until somebody answers.
    WAITING = "waiting"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    #: The process was told to end.
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What came of a run.

    Attributes:
        results: what the agents answered, by step: `plan`, `research[0]`, `draft#2`.
        value: what the last agent of the plan answered.
        resumed: whether it went on with a run that existed.
        kept: how many agents were not run again, because their results were there.
        ran: how many were.
        waiting: approvals that are still to be answered.
        warnings: what is different from an undisturbed run.
    """

    workflow_id: str
    status: RunStatus
    results: Mapping[str, Any] = field(default_factory=dict, repr=False)
    value: Any = None
    outputs: Any = field(default_factory=list, repr=False)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    confidence: Any = None
    resumed: bool = False
    kept: int = 0
    ran: int = 0
    checkpoints: int = 0
    seconds: float = 0.0
    waiting: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def is_completed(self) -> bool:
        """Whether everything is done."""
        return self.status is RunStatus.COMPLETED
