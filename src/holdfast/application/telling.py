"""What the trail is told of checkpoints, events and removals, in the commit that makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.application.commands import CreateCheckpoint
from holdfast.application.trailing import Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.entry_rules import FACT_CHARS_MAX
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Removal
from holdfast.domain.reducers import DECISION_EVENT

#: Types of events that have a meaning in the trail, most under the same name.
_TOLD_TYPES = {**{kind.value: kind for kind in AuditType}, DECISION_EVENT: AuditType.AGENT_DECISION}
#: Those whose particulars an auditor will ask for.
_TOLD_WHOLE = frozenset(
    {
        AuditType.AGENT_DECISION,
        AuditType.APPROVAL_REQUESTED,
        AuditType.APPROVAL_GRANTED,
        AuditType.APPROVAL_DENIED,
        AuditType.STORE_DEGRADED,
    }
)


class Teller:
    """Makes the entries that ride on the commits of a workflow."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    def checkpoint(
        self, command: CreateCheckpoint, made: CheckpointID, *, is_new: bool = False
    ) -> tuple[AuditEntry, ...]:
        """Tell of a checkpoint and where it comes from; of one that is new, at the moment it was made."""
        kind, facts = AuditType.CHECKPOINT_CREATED, None
        if command.forked_from is not None:
            kind, facts = AuditType.WORKFLOW_FORKED, {"from": _origin(command.forked_from)}
        elif command.migrated is not None:
            kind = AuditType.SCHEMA_MIGRATED
            facts = {"from": command.migrated.schema_version, "to": command.schema_version or ""}
        return self._trail.told(
            kind,
            # A migration is told in the session of whoever makes it, perhaps years later.
            session_id=command.session_id if command.migrated is None else None,
            workflow_id=command.workflow_id,
            agent=command.agent_id,
            references={"cp_seq": made.sequence, "checksum": made.checksum},
            facts=facts,
            moment=made.timestamp if is_new else None,
        )

    def event(self, event: Event, digest: str) -> tuple[AuditEntry, ...]:
        """Tell of an event under its own type where the trail knows it; a decision is told whole."""
        facts: dict[str, int | str] = {}
        kind = _TOLD_TYPES.get(event.type, AuditType.EVENT_RECORDED)
        if kind is AuditType.EVENT_RECORDED:
            facts["event"] = event.type[:FACT_CHARS_MAX]
        elif kind is AuditType.WORKFLOW_RECOVERED and event.data.get("passed_over"):
            facts["passed_over"] = len(event.data["passed_over"])
        if event.cp_seq is not None:
            facts["cp_seq"] = event.cp_seq
        return self._trail.told(
            kind,
            workflow_id=event.workflow_id,
            agent=event.agent,
            correlation_id=event.step_id,
            references={"event_seq": event.seq, "event_hash": digest},
            facts=facts,
            payload=event.data if kind in _TOLD_WHOLE else None,
        )

    def removal(self, workflow_id: str, removal: Removal) -> tuple[AuditEntry, ...]:
        """Tell what goes."""
        sequences = removal.sequences
        facts: dict[str, int | str] = {"checkpoints": len(sequences), "groups": len(removal.groups)}
        if sequences:
            facts |= {"first": sequences[0], "last": sequences[-1]}
        return self._trail.told(AuditType.CHECKPOINTS_PRUNED, workflow_id=workflow_id, facts=facts)


def _origin(forked_from: Mapping[str, Any]) -> str:
    """Name what a fork starts from: a checkpoint, or a point after one."""
    point = f"event:{forked_from['event_seq']}" if "event_seq" in forked_from else forked_from["seq"]
    return f"{forked_from['wf']}@{point}"
