"""What came of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from holdfast.domain.errors import ResultLostError
from holdfast.domain.unwritten import Unwritten


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
        unwritten: what the store does not have of it; told among the warnings, too.
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
    unwritten: Unwritten = field(default_factory=Unwritten)

    @property
    def is_completed(self) -> bool:
        """Whether everything is done."""
        return self.status is RunStatus.COMPLETED

    @property
    def is_durable(self) -> bool:
        """Whether the store has everything that the run recorded."""
        return not self.unwritten.commits

    def with_unwritten(self, unwritten: Unwritten) -> RunResult:
        """Say what the store does not have; what was said of that before is no longer so."""
        others = [text for text in self.warnings if text != self.unwritten.text]
        told = [unwritten.text] if unwritten.commits else []
        return replace(self, unwritten=unwritten, warnings=(*others, *told))


def unless_lost(result: RunResult) -> RunResult:
    """Answer a result that is in the store, or in a place that it tells of.

    Raises:
        ResultLostError: something of it is kept nowhere; the error has it.
    """
    lost = result.unwritten
    if lost.is_lost:
        raise ResultLostError(lost.message, place=result.workflow_id, hint=lost.hint, result=result)
    return result
