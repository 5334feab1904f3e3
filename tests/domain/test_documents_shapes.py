"""The values that the documents name have the fields they ask for, with the defaults they ask for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime

import pytest

from holdfast.domain.checkpoint import Checkpoint, CheckpointMeta, CheckpointStatus, CheckpointType, Scope
from holdfast.domain.ids import CheckpointID
from holdfast.domain.recovery import RecoveryResult
from holdfast.domain.state import WorkflowState

NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
MADE = CheckpointID("WF-2026-001", 42, NOW, "sha256:a1b2", "u-1")
#: What the five documents keep in the state of a workflow, by the name it has here.
STATE = {
    *("workflow_id", "session_id", "current_step", "total_steps", "status", "started_at", "last_activity"),
    *("agent_states", "pending_events", "context_summary", "metadata", "stage_states", "context"),
    *("decisions", "outputs", "metrics", "confidence", "phase", "resumable", "messages", "tasks"),
    *("dag_structure", "execution_config", "checkpoint_id"),
}


def names(kind: type) -> set[str]:
    return {item.name for item in fields(kind)}


def test_a_checkpoint_id_has_the_fields_that_were_asked_for() -> None:
    asked = {"workflow_id", "sequence", "timestamp", "checksum", "stage_id", "agent_id"}
    assert asked <= names(CheckpointID)
    assert (MADE.workflow_id, MADE.sequence, MADE.timestamp, MADE.checksum) == (
        "WF-2026-001",
        42,
        NOW,
        "sha256:a1b2",
    )
    with pytest.raises(FrozenInstanceError):
        MADE.__setattr__("sequence", 43)


def test_metadata_has_the_fields_that_were_asked_for() -> None:
    assert {"id", "size_bytes", "schema_version", "agent_id", "created_at"} <= names(CheckpointMeta)
    kinds = (CheckpointType.AGENT_START, CheckpointStatus.ACTIVE, Scope.AGENT)
    meta = CheckpointMeta(MADE, 2048, "1.0.0", "orchestrator", NOW, *kinds)
    with pytest.raises(FrozenInstanceError):
        meta.__setattr__("size_bytes", 0)


def test_a_state_has_every_field_that_was_asked_for() -> None:
    assert names(WorkflowState) == {*STATE, "extra"}


def test_a_recovery_tells_everything_that_was_asked_for() -> None:
    first = {"success", "state", "checkpoint_used", "events_replayed", "recovery_time_ms", "warnings"}
    second = {"recovered_checkpoint", "resumed_workflow_id", "validation_errors"}
    assert first | second <= names(RecoveryResult)


def test_a_checkpoint_begins_with_the_defaults_that_were_asked_for() -> None:
    checkpoint = Checkpoint(MADE, CheckpointType.WORKFLOW_START, NOW, NOW)
    assert (checkpoint.status, checkpoint.schema_version) == (CheckpointStatus.ACTIVE, "1.0.0")
    assert (checkpoint.retry_count, checkpoint.max_retries) == (0, 3)
    assert (checkpoint.error_message, checkpoint.error_stacktrace) == (None, None)
    assert checkpoint.dependent_checkpoint_ids == ()
