"""A checkpoint as one row of a listing, for programs."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.domain.record import Entry


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """What a listing knows about one checkpoint without reading its state."""

    id: str
    workflow_id: str
    sequence: int
    uuid: str
    created_at: str
    type: str
    status: str
    stage_id: str | None
    agent_id: str | None
    session_id: str | None
    phase: int | None
    label: str | None
    retry_count: int
    pinned: bool
    pruned: bool
    size_bytes: int
    stored_bytes: int
    parent: str | None
    checksum: str


def checkpoint_row(workflow_id: str, entry: Entry) -> CheckpointRow:
    """Turn what a store lists into a row."""
    return CheckpointRow(
        f"{workflow_id}@{entry.sequence}",
        workflow_id,
        entry.sequence,
        entry.uuid,
        entry.timestamp,
        entry.type,
        entry.status,
        entry.stage,
        entry.agent,
        entry.session,
        entry.phase,
        entry.label,
        entry.retry_count,
        entry.pinned,
        entry.pruned,
        entry.state_bytes,
        entry.length,
        f"{workflow_id}@{entry.parent}" if entry.parent else None,
        entry.checksum,
    )
