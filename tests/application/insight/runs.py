"""Workflows whose journals are written event by event, for the tests of this room."""

from __future__ import annotations

from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointType
from tests.application.services import make_kit

HOSTILE = "<script>alert(1)</script> **bold** | [x](javascript:alert(1)) \x1b[31m `c` \u202e &lt; # h"


def whole_run(**settings: Any) -> Kit:
    """Write the run W, with everything that a report tells of: it failed, was recovered, and is done."""
    kit = make_kit(**settings)
    service = CheckpointService(kit)
    structure = {
        "workflow": "team",
        "stages": [
            {"name": "plan", "agents": [{"name": "plan"}]},
            {"name": "write", "agents": [{"name": "write"}]},
            {"name": "check", "agents": [{"name": "check"}]},
        ],
    }
    state = {"dag_structure": structure, "total_steps": 3}
    service.create_checkpoint("W", {})
    add(service, "RUN_UPDATED", {"fields": {**state, "status": "in_progress"}}, "run")
    add(service, "AGENT_STARTED", {"attempt": 1}, "plan")
    add(
        service,
        "DECISION_RECORDED",
        {"description": "use kelp", "rationale": "cheap", "confidence": 0.8},
        "plan",
    )
    add(service, "REPORT_ADDED", {"title": "Offers", "summary": "Three.", "citations": ["a book"]}, "plan")
    metrics = {"tokens": 120, "cost_usd": 0.25}
    done = {"attempt": 1, "result": 1, "duration_seconds": 75.0, "metrics": metrics, "reported": True}
    add(service, "AGENT_COMPLETED", done, "plan")
    add(service, "STAGE_UPDATED", {"stage": "plan", "state": {"status": "completed"}}, "run")
    add(service, "APPROVAL_REQUESTED", {"name": "publish", "question": "Publish it?"}, "write")
    add(service, "APPROVAL_GRANTED", {"name": "publish", "by": "root", "note": "read"}, "write")
    error = {"type": "ValueError", "message": "no fuel"}
    add(service, "AGENT_FAILED", {"attempt": 1, "error": error, "retries": True}, "write")
    add(service, "WORKFLOW_RECOVERED", {"checkpoint": "W@1", "events_replayed": 4, "reason": "a crash"}, None)
    add(service, "AGENT_COMPLETED", {"attempt": 2, "result": "text", "duration_seconds": 3700.0}, "write")
    add(service, "AGENT_SKIPPED", {"reason": "nothing to check"}, "check")
    add(service, "RUN_UPDATED", {"fields": {"status": "completed"}}, "run")
    last = service.restore_checkpoint(f"W@event:{kit.store.head('W').event_seq}")
    service.create_checkpoint("W", last, type=CheckpointType.WORKFLOW_COMPLETE)
    return kit


def hostile_run() -> Kit:
    """Write a run in which every text tries to become more than text."""
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint(HOSTILE.replace("\x1b", ""), {}, agent_id="<i>")
    name = HOSTILE.replace("\x1b", "")
    for kind, data in (
        (
            "RUN_UPDATED",
            {"fields": {"status": HOSTILE, "dag_structure": {"workflow": HOSTILE, "stages": [HOSTILE]}}},
        ),
        ("DECISION_RECORDED", {"description": HOSTILE, "rationale": HOSTILE}),
        ("AGENT_FAILED", {"attempt": 1, "error": {"type": HOSTILE, "message": HOSTILE}}),
        ("AGENT_COMPLETED", {"attempt": 1, "result": HOSTILE, "metrics": {HOSTILE: 3}}),
        ("STAGE_UPDATED", {"stage": HOSTILE, "state": {"status": HOSTILE}}),
        ("APPROVAL_REQUESTED", {"name": HOSTILE, "question": HOSTILE}),
        ("REPORT_ADDED", {"title": HOSTILE, "summary": HOSTILE, "citations": [HOSTILE, ""]}),
        ("WORKFLOW_RECOVERED", {"checkpoint": HOSTILE, "reason": HOSTILE}),
    ):
        service.append_event(name, kind, data, agent_id=HOSTILE.replace("\x1b", ""), step_id="s")
    return kit


def add(service: CheckpointService, kind: str, data: dict[str, Any], step: str | None) -> None:
    """Write one event of W."""
    agent = step if step != "run" else None
    service.append_event("W", kind, data, agent_id=agent, step_id=step)
