"""Recoveries: how many succeeded, what they started from, and what became of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from statistics import median

from holdfast.application.audit.audit_query import AuditQuery
from holdfast.application.insight.following import AT_WORK
from holdfast.application.insight.sample import (
    WORKFLOWS_MAX,
    Looked,
    Sample,
    end_of_trail,
    is_recovery,
    take_sample,
)
from holdfast.application.insight.trail_counting import recovery_outcome
from holdfast.application.kit import Kit
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import STATUS_EVENT, CheckpointStatus
from holdfast.domain.event import Event
from holdfast.domain.run_events import AGENT_COMPLETED
from holdfast.domain.telemetry import RecoveryOutcome
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import decode_entry


@dataclass(frozen=True, slots=True)
class RecoveryTold:
    """One recovery, as the journal tells it.

    Attributes:
        after: how the run stood before: in_progress means that its process died.
        outcome: `completed`, `went on`, `failed` or `nothing since`.
        is_fallback: newer checkpoints had to be passed over.
    """

    workflow_id: str
    at: str
    mode: str
    checkpoint: int | None
    events_replayed: int
    after: str
    outcome: str
    is_fallback: bool


@dataclass(frozen=True, slots=True)
class Recoveries:
    """Recoveries of the workflows that were looked at, and what the trail tells of those that failed.

    Attributes:
        recovered: recoveries that gave a state, by the journals.
        crashed: how many of them came after a process had died.
        fallbacks: how many had to start from an older checkpoint than the newest.
        completed, went_on, failed_again, idle: what became of the runs.
        median_events_replayed: how many events were usually replayed; None without a recovery.
        told: entries in the trail about recoveries that succeeded; `refused` about those that did not.
        success_rate: the share of those two that succeeded; None where the trail tells of none.
        newest: the last ones, newest first.
    """

    looked_at: int
    total: int
    recovered: int
    crashed: int
    fallbacks: int
    completed: int
    went_on: int
    failed_again: int
    idle: int
    median_events_replayed: float | None
    told: int
    refused: int
    success_rate: float | None
    newest: tuple[RecoveryTold, ...]


def recoveries(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> Recoveries:
    """Tell of recoveries of the newest workflows, or of one."""
    return recoveries_of(kit, take_sample(kit, workflow_id, 0 if workflow_id else limit), workflow_id)


def recoveries_of(kit: Kit, sample: Sample, workflow_id: str | None = None) -> Recoveries:
    """Tell of recoveries of the workflows of a sample."""
    found = sorted(
        (one for looked in sample.looked for one in recovered(looked)), key=lambda one: one.at, reverse=True
    )
    outcomes = Counter(one.outcome for one in found)
    told, refused = _in_trail(kit, workflow_id)
    return Recoveries(
        len(sample.looked),
        sample.total,
        len(found),
        sum(one.after == AT_WORK for one in found),
        sum(one.is_fallback for one in found),
        outcomes["completed"],
        outcomes["went on"],
        outcomes["failed"],
        outcomes["nothing since"],
        median([one.events_replayed for one in found]) if found else None,
        told,
        refused,
        told / (told + refused) if told + refused else None,
        tuple(found[:20]),
    )


def recovered(looked: Looked) -> Iterator[RecoveryTold]:
    """Tell each recovery in the journal of a run."""
    status = AT_WORK
    for place, event in enumerate(looked.events):
        if is_recovery(event):
            yield _told(looked, event, status, _outcome(looked, place))
        told = event.data.get("run_status")
        status = told if isinstance(told, str) else status


def _outcome(looked: Looked, place: int) -> str:
    """Tell what became of the run from a recovery to the next."""
    rest = looked.events[place + 1 :]
    since = list(takewhile(lambda event: not is_recovery(event), rest))
    for event in since:
        if event.data.get("run_status") in ("completed", "failed"):
            return str(event.data["run_status"])
        if event.type == STATUS_EVENT and event.data.get("status") == CheckpointStatus.FAILED:
            return "failed"
    if len(since) == len(rest) and looked.status == "completed":
        return "completed"
    went_on = any(event.type == AGENT_COMPLETED or event.cp_seq is not None for event in since)
    return "went on" if went_on else "nothing since"


def _told(looked: Looked, event: Event, status: str, outcome: str) -> RecoveryTold:
    data = event.data
    replayed = data.get("events_replayed")
    return RecoveryTold(
        looked.workflow_id,
        timestamp_text(event.timestamp),
        str(data.get("mode", "")),
        event.cp_seq,
        replayed if isinstance(replayed, int) else 0,
        status,
        outcome,
        bool(data.get("passed_over")),
    )


def _in_trail(kit: Kit, workflow_id: str | None) -> tuple[int, int]:
    """Count at the end of the trail recoveries that succeeded, and that did not."""
    types = (str(AuditType.WORKFLOW_RECOVERED), str(AuditType.OPERATION_REFUSED))
    query = AuditQuery(event_types=types, workflow=workflow_id)
    entries = (decode_entry(line, None) for line in end_of_trail(kit.store, query))
    told = Counter(
        recovery_outcome(entry.type, entry.outcome, entry.facts) for entry in entries if query.matches(entry)
    )
    return told[RecoveryOutcome.OK] + told[RecoveryOutcome.FALLBACK], told[RecoveryOutcome.FAILED]
