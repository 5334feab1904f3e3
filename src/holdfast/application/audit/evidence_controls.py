"""The controls that an evidence pack answers to, in our own words, and what is looked up for each.

Texts say what is asked of a trail and of the store under it. They are no legal advice, and a pack shows what
the store did, not that an organisation complies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from holdfast.domain.audit_type import AuditType as Type
from holdfast.domain.audit_type import Outcome


class Measure(StrEnum):
    """What is told about the store itself, beside entries."""

    TRAIL = "trail"
    VERIFICATION = "verification"
    RETENTION = "retention"
    ENCRYPTION = "encryption"
    REDACTION = "redaction"
    RECORDING = "recording"
    SIGNING = "signing"
    HOLDS = "holds"
    REGISTER = "register"


@dataclass(frozen=True, slots=True)
class Query:
    """Which entries are evidence; no types and no outcomes stand for any."""

    types: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()

    def matches(self, type: str, outcome: str) -> bool:
        """Tell whether an entry is asked for."""
        return (not self.types or type in self.types) and (not self.outcomes or outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Control:
    """One thing that is asked: by whom, what, and where the answer is found.

    Attributes:
        id: also the name of its file.
        asks: what it asks, in our own words.
        query: which entries answer it; None if the measures do.
        measures: what else is told.
    """

    id: str
    framework: str
    clause: str
    title: str
    asks: str
    query: Query | None = None
    measures: tuple[Measure, ...] = field(default=())


def _of(*types: Type) -> Query:
    return Query(types=tuple(map(str, types)))


_READS = (Type.STATE_READ, Type.STATE_RESTORED, Type.EVENTS_READ, Type.TRAIL_READ)
_KEYS = (Type.KEY_CREATED, Type.KEY_ROTATED, Type.KEY_DESTROYED)
_RECOVERIES = (
    Type.WORKFLOW_RECOVERED,
    Type.STATE_RESTORED,
    Type.SESSION_HANDED_OFF,
    Type.SESSION_RESUMED,
    Type.CHECKPOINT_QUARANTINED,
)
_REMOVALS = (Type.CHECKPOINTS_PRUNED, Type.PAYLOADS_PRUNED, Type.DATA_ERASED, Type.KEY_DESTROYED)
_ALARMS = (
    Type.INTEGRITY_FAILED,
    Type.AUTHENTICATION_FAILED,
    Type.OPERATION_REFUSED,
    Type.STORE_DEGRADED,
    Type.CHECKPOINT_QUARANTINED,
)
_CHECKS = (Type.TRAIL_VERIFIED, Type.CHECKPOINT_VALIDATED)

_SOC2, _GDPR, _AI_ACT = "SOC 2", "GDPR", "EU AI Act"

CONTROLS: tuple[Control, ...] = (
    Control(
        "soc2-cc6.1",
        _SOC2,
        "CC6.1",
        "Access to information is limited and recorded",
        "Only those who may reach stored information do, and it can be told afterwards who did.",
        _of(*_READS, Type.AUTHENTICATION_FAILED, Type.OPERATION_REFUSED, Type.SECRET_REVEALED),
        (Measure.RECORDING, Measure.ENCRYPTION),
    ),
    Control(
        "soc2-cc6.7",
        _SOC2,
        "CC6.7",
        "Information that leaves is limited and recorded",
        "Copies, exports and reveals happen on purpose, by known persons, and leave a record.",
        _of(
            Type.TRAIL_EXPORTED,
            Type.SUBJECT_EXPORTED,
            Type.STORE_COPIED,
            Type.TRAIL_IMPORTED,
            Type.SECRET_REVEALED,
        ),
        (Measure.ENCRYPTION, Measure.REDACTION),
    ),
    Control(
        "soc2-cc7.1",
        _SOC2,
        "CC7.1",
        "Changes of the configuration are noticed",
        "Changes of settings, keys and schemas are detected and can be traced to who made them.",
        _of(Type.CONFIG_CHANGED, Type.SCHEMA_MIGRATED, *_KEYS),
        (Measure.RECORDING,),
    ),
    Control(
        "soc2-cc7.2",
        _SOC2,
        "CC7.2",
        "Anomalies are noticed",
        "Failed integrity checks, refused operations and storage faults become entries, not log lines.",
        _of(*_ALARMS),
        (Measure.VERIFICATION,),
    ),
    Control(
        "soc2-cc7.4",
        _SOC2,
        "CC7.3 to CC7.5",
        "Incidents are kept as evidence and recovered from",
        "What was found damaged is set aside with evidence, and the way back to a good state is recorded.",
        _of(*_RECOVERIES, Type.INTEGRITY_FAILED),
        (Measure.VERIFICATION,),
    ),
    Control(
        "soc2-a1.1",
        _SOC2,
        "A1.1",
        "Capacity is watched",
        "Storage that runs short, or fails, is told before and when it happens.",
        _of(Type.STORE_DEGRADED),
    ),
    Control(
        "soc2-a1.2",
        _SOC2,
        "A1.2 and A1.3",
        "There are copies, and coming back from them is tried",
        "Copies of the store are made, and restoring from them is exercised and recorded.",
        _of(Type.STORE_COPIED, Type.TRAIL_IMPORTED, Type.STATE_RESTORED, Type.WORKFLOW_RECOVERED),
        (Measure.RETENTION,),
    ),
    Control(
        "soc2-c1.1",
        _SOC2,
        "C1.1",
        "Confidential information is protected while it is kept",
        "Stored information is encrypted or free of secrets, and keys are managed.",
        _of(*_KEYS),
        (Measure.ENCRYPTION, Measure.REDACTION, Measure.SIGNING),
    ),
    Control(
        "soc2-c1.2",
        _SOC2,
        "C1.2",
        "Confidential information is disposed of",
        "What is no longer needed goes, by a rule or on demand, and that it went is recorded.",
        _of(*_REMOVALS),
        (Measure.RETENTION, Measure.HOLDS),
    ),
    Control(
        "soc2-pi1.5",
        _SOC2,
        "PI1.4 and PI1.5",
        "What is stored is complete, accurate and in time",
        "Stored records are whole and unchanged since they were made, and that can be shown.",
        _of(*_CHECKS),
        (Measure.VERIFICATION, Measure.SIGNING, Measure.TRAIL),
    ),
    Control(
        "gdpr-art5-1e",
        _GDPR,
        "Art. 5(1)(e)",
        "Data is kept no longer than needed",
        "There are time limits, and what exceeds them is removed.",
        _of(*_REMOVALS),
        (Measure.RETENTION,),
    ),
    Control(
        "gdpr-art15",
        _GDPR,
        "Art. 15 and 20",
        "A person gets a copy of their data",
        "Requests of data subjects for their data are answered, in a form that machines read.",
        _of(Type.SUBJECT_EXPORTED),
    ),
    Control(
        "gdpr-art17",
        _GDPR,
        "Art. 17",
        "A person's data is erased on request",
        "Erasures are carried out and recorded with a reason; where the law demands keeping, a hold says so.",
        _of(Type.DATA_ERASED, Type.KEY_DESTROYED, Type.HOLD_PLACED, Type.HOLD_RELEASED),
        (Measure.HOLDS, Measure.VERIFICATION),
    ),
    Control(
        "gdpr-art30",
        _GDPR,
        "Art. 30",
        "There is a record of processing activities",
        "Purposes, categories, recipients, time limits and measures are written down.",
        None,
        (Measure.REGISTER, Measure.RETENTION),
    ),
    Control(
        "gdpr-art32-1a",
        _GDPR,
        "Art. 32(1)(a)",
        "Data is encrypted and pseudonymised",
        "Stored data cannot be read without keys, and persons go by pseudonyms where that is possible.",
        _of(*_KEYS),
        (Measure.ENCRYPTION, Measure.REDACTION),
    ),
    Control(
        "gdpr-art32-1c",
        _GDPR,
        "Art. 32(1)(b) and (c)",
        "Systems are resilient, and data can be restored",
        "After an incident the data is available again in time.",
        _of(*_RECOVERIES, Type.STORE_COPIED),
        (Measure.VERIFICATION,),
    ),
    Control(
        "gdpr-art32-1d",
        _GDPR,
        "Art. 32(1)(d)",
        "Measures are tested regularly",
        "Whether records are intact is checked again and again, and each check is recorded.",
        _of(*_CHECKS),
        (Measure.VERIFICATION,),
    ),
    Control(
        "ai-act-art12-1",
        _AI_ACT,
        "Art. 12(1)",
        "Events are recorded automatically over the lifetime",
        "The system logs what it does by itself, from its first use on.",
        Query(),
        (Measure.TRAIL, Measure.RECORDING),
    ),
    Control(
        "ai-act-art12-2",
        _AI_ACT,
        "Art. 12(2)",
        "Logs show risks, changes and how the system runs",
        "What failed, what was refused and what was changed can be found for monitoring.",
        Query(outcomes=(str(Outcome.FAILURE), str(Outcome.REFUSED), str(Outcome.UNKNOWN))),
        (Measure.TRAIL,),
    ),
    Control(
        "ai-act-art13",
        _AI_ACT,
        "Art. 13 and 86",
        "Decisions can be explained",
        "What was decided is recorded together with why, with alternatives, and with how sure it was.",
        _of(Type.AGENT_DECISION),
    ),
    Control(
        "ai-act-art14",
        _AI_ACT,
        "Art. 14",
        "People oversee the system",
        "Approvals by people are asked for, granted or denied, and recorded, and so are requests to stop.",
        _of(Type.APPROVAL_REQUESTED, Type.APPROVAL_GRANTED, Type.APPROVAL_DENIED, Type.REQUEST_MADE),
    ),
    Control(
        "ai-act-art19",
        _AI_ACT,
        "Art. 19 and 26(6)",
        "Logs are kept for six months at least",
        "Automatically generated logs are not removed before their time.",
        None,
        (Measure.TRAIL, Measure.RETENTION, Measure.VERIFICATION),
    ),
)
