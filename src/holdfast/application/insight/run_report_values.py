"""What is told of a workflow to people, as values: whoever shows them makes them safe first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from holdfast.application.insight.event_story import Kind
from holdfast.domain.progress_report import ReportSection
from holdfast.domain.time import timestamp_text


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened."""

    seq: int
    at: datetime
    kind: Kind
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AgentLine:
    """What is known of one agent: how often it was begun, how it ended, how long it took."""

    name: str
    begun: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StageLine:
    """A stage, and how far it is."""

    name: str
    status: str
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointCount:
    """The checkpoints of a workflow.

    Attributes:
        kept, removed: how many there are, and how many were removed by retention.
        newest: the name of the newest one, with its moment and checksum; empty where there is none.
        state_bytes: how large its state is.
    """

    kept: int = 0
    removed: int = 0
    newest: str = ""
    newest_at: str = ""
    checksum: str = ""
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RunReport:
    """What is told of a workflow.

    Attributes:
        program: what the program calls it; empty where nothing says so.
        steps_done, steps_total: how far it is; 0 where that is not known.
        moments: what happened, in order; `left_out` more happened before the last `last_told` of them.
        costs: numbers by their names: tokens, cost_usd, and whatever else was counted.
        sections: what the agents reported, as the progress report has it.
        last_event, event_hash: where the journal ends, which a later verification must find again.
        notes: what could not be read.
    """

    workflow_id: str
    status: str
    program: str = ""
    began_at: datetime | None = None
    last_at: datetime | None = None
    steps_done: int = 0
    steps_total: int = 0
    stages: tuple[StageLine, ...] = ()
    agents: tuple[AgentLine, ...] = ()
    moments: tuple[Moment, ...] = ()
    left_out: int = 0
    last_told: int = 0
    costs: Mapping[str, float] = field(default_factory=dict)
    checkpoints: CheckpointCount = field(default_factory=CheckpointCount)
    sections: tuple[ReportSection, ...] = ()
    last_event: int = 0
    event_hash: str = ""
    notes: tuple[str, ...] = ()

    def of(self, *kinds: Kind) -> tuple[Moment, ...]:
        """Answer the moments that are about these."""
        return tuple(moment for moment in self.moments if moment.kind in kinds)


def as_fields(report: RunReport) -> dict[str, Any]:
    """Answer a report for programs: plain values, times as text."""
    fields = asdict(report)
    for name in ("began_at", "last_at"):
        fields[name] = timestamp_text(fields[name]) if fields[name] is not None else None
    for moment in fields["moments"]:
        moment["at"] = timestamp_text(moment["at"])
        moment["kind"] = str(moment["kind"])
    return fields
