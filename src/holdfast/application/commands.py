"""What callers ask to have recorded, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, CheckpointType
from holdfast.domain.state import WorkflowState


@dataclass(frozen=True, slots=True)
class CreateCheckpoint:
    """Record the state of a workflow."""

    workflow_id: str
    state: WorkflowState | Mapping[str, Any]
    type: CheckpointType
    stage_id: str | None = None
    agent_id: str | None = None
    stage_state: Mapping[str, Any] | None = None
    agent_state: Mapping[str, Any] | None = None
    session_id: str | None = None
    agent_version: str | None = None
    resume_handler: str | None = None
    max_retries: int = DEFAULT_MAX_RETRIES
    #: UUIDs.
    parent_uuid: str | None = None
    dependent_uuids: tuple[str, ...] = ()
    force: bool = False
    expected_sequence: int | None = None
    append_only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AppendEvent:
    """Record one fact."""

    workflow_id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    agent_id: str | None = None
    step_id: str | None = None
    parent_id: str | None = None
    cp_seq: int | None = None
    cost: Mapping[str, Any] | None = None
