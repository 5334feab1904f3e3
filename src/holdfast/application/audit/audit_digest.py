"""A trail summed up for a reader: counts, and who decided, approved, restored, removed, erased and read what.

Memory is bounded: of each kind the first entries are kept, all are counted, and what was left out is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.application.audit.audit_event import PayloadState
from holdfast.application.audit.audit_report import Reported
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.time import timestamp_text

SHOWN_MAX = 2_000
BARS = 60


class Topic(StrEnum):
    """What a part of the report is about, in the order of the page."""

    DECISIONS = "Decisions"
    APPROVALS = "Approvals and requests"
    TROUBLE = "Refusals and failures"
    RECOVERIES = "Recoveries and restores"
    PRUNES = "Removed by retention"
    ERASURES = "Erasures and holds"
    READS = "Reads, exports and checks"
    KEYS = "Keys, signatures and settings"


_TYPES: dict[Topic, tuple[AuditType, ...]] = {
    Topic.DECISIONS: (AuditType.AGENT_DECISION,),
    Topic.APPROVALS: (
        AuditType.APPROVAL_REQUESTED,
        AuditType.APPROVAL_GRANTED,
        AuditType.APPROVAL_DENIED,
        AuditType.REQUEST_MADE,
    ),
    Topic.TROUBLE: (
        AuditType.OPERATION_REFUSED,
        AuditType.AUTHENTICATION_FAILED,
        AuditType.INTEGRITY_FAILED,
        AuditType.STORE_DEGRADED,
        AuditType.WORKFLOW_FAILED,
    ),
    Topic.RECOVERIES: (
        AuditType.WORKFLOW_RECOVERED,
        AuditType.WORKFLOW_FORKED,
        AuditType.SESSION_HANDED_OFF,
        AuditType.SESSION_RESUMED,
        AuditType.STATE_RESTORED,
        AuditType.CHECKPOINT_QUARANTINED,
        AuditType.QUARANTINE_RELEASED,
        AuditType.QUARANTINE_DROPPED,
        AuditType.SCHEMA_MIGRATED,
    ),
    Topic.PRUNES: (AuditType.CHECKPOINTS_PRUNED, AuditType.PAYLOADS_PRUNED),
    Topic.ERASURES: (
        AuditType.DATA_ERASED,
        AuditType.KEY_DESTROYED,
        AuditType.HOLD_PLACED,
        AuditType.HOLD_RELEASED,
    ),
    Topic.READS: (
        AuditType.STATE_READ,
        AuditType.EVENTS_READ,
        AuditType.TRAIL_READ,
        AuditType.TRAIL_VERIFIED,
        AuditType.TRAIL_EXPORTED,
        AuditType.TRAIL_IMPORTED,
        AuditType.CHECKPOINT_VALIDATED,
        AuditType.SUBJECT_EXPORTED,
        AuditType.SECRET_REVEALED,
        AuditType.STORE_COPIED,
    ),
    Topic.KEYS: (
        AuditType.KEY_CREATED,
        AuditType.KEY_ROTATED,
        AuditType.HEAD_SIGNED,
        AuditType.HEAD_COSIGNED,
        AuditType.CONFIG_CHANGED,
    ),
}
_TOPICS: dict[str, Topic] = {str(kind): topic for topic, kinds in _TYPES.items() for kind in kinds}
_BAD = frozenset({Outcome.FAILURE, Outcome.REFUSED})


@dataclass(slots=True)
class Section:
    """Entries of one kind: how many there are, and the first of them."""

    total: int = 0
    shown: list[Reported] = field(default_factory=list)

    def add(self, told: Reported, limit: int) -> None:
        self.total += 1
        if len(self.shown) < limit:
            self.shown.append(told)


@dataclass(slots=True)
class Digest:
    """What a trail comes to. Counters count entries."""

    topics: dict[Topic, Section] = field(default_factory=lambda: {topic: Section() for topic in Topic})
    timeline: Section = field(default_factory=Section)
    clock_steps: Section = field(default_factory=Section)
    types: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    actors: Counter[str] = field(default_factory=Counter)
    agents: Counter[str] = field(default_factory=Counter)
    sessions: Counter[str] = field(default_factory=Counter)
    workflows: Counter[str] = field(default_factory=Counter)
    payloads: Counter[PayloadState] = field(default_factory=Counter)
    first: str = ""
    last: str = ""

    @property
    def entries(self) -> int:
        return self.timeline.total

    def bars(self) -> list[int]:
        """Count the entries of the timeline in equal stretches of time, for a picture of it."""
        moments = [told.entry.timestamp.timestamp() for told in self.timeline.shown]
        if not moments:
            return []
        start, span = min(moments), (max(moments) - min(moments)) or 1.0
        counts = Counter(min(int((moment - start) / span * BARS), BARS - 1) for moment in moments)
        return [counts[at] for at in range(BARS)]


def digest(entries: Iterable[Reported], shown_max: int = SHOWN_MAX) -> Digest:
    """Sum entries up in one pass; of each kind the first `shown_max` are kept."""
    result = Digest()
    for told in entries:
        _count(result, told)
        result.timeline.add(told, shown_max)
        if told.entry.clock is not None:
            result.clock_steps.add(told, shown_max)
        for topic in _topics_of(told):
            result.topics[topic].add(told, shown_max)
    return result


def _topics_of(told: Reported) -> set[Topic]:
    """Tell where an entry belongs; what failed is trouble, whatever else it is."""
    topic = _TOPICS.get(str(told.entry.type))
    topics = set() if topic is None else {topic}
    return topics | {Topic.TROUBLE} if told.entry.outcome in _BAD else topics


def _count(result: Digest, told: Reported) -> None:
    entry = told.entry
    moment = timestamp_text(entry.timestamp)
    result.first = min(result.first or moment, moment)
    result.last = max(result.last, moment)
    result.types[str(entry.type)] += 1
    result.outcomes[str(entry.outcome)] += 1
    result.payloads[told.state] += 1
    for counter, name in (
        (result.actors, entry.actor),
        (result.agents, entry.agent),
        (result.sessions, entry.session_id),
        (result.workflows, entry.workflow_id),
    ):
        if name is not None:
            counter[name] += 1
