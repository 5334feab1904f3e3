"""States, events and bounds as the documents write them, through the service."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.domain.errors import StateSizeWarning
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore, FixedClock
from tests.application.services import make_service
from tests.damage import Spoiler

FIRST = WorkflowState(
    workflow_id="WF-2026-001",
    session_id="session-6",
    current_step=5,
    total_steps=12,
    status="in_progress",
    started_at=datetime(2026, 1, 11, 14, 0, tzinfo=UTC),
    last_activity=datetime(2026, 1, 11, 14, 30, tzinfo=UTC),
    agent_states={
        "conductor": {
            "last_decision": "DISPATCH_TO_WORKER",
            "pending_responses": ["worker-1", "worker-2"],
            "context_usage_pct": 45.2,
        },
        "worker-1": {"task_id": "TASK-001", "progress": 0.75, "artifacts": ["design-doc.md"]},
    },
    pending_events=[
        {"event_type": "TASK_COMPLETED", "source": "worker-2", "payload": {"task_id": "TASK-002"}}
    ],
    context_summary="The design is done, the building begins.",
    metadata={"project_id": "PROJ-002", "work_item": "WI-SAO-030", "priority": "high"},
)
THIRD = WorkflowState(
    workflow_id="task_20240102_143022",
    status="in_progress",
    phase=2,
    agent_states={
        "atlas": {"status": "active", "confidence": 0.92, "last_decision": "spawn", "state": b"\x00\xff"},
        "mercury_1": {"status": "completed", "confidence": 0.87, "output_ref": "phase2/output_1.md"},
    },
    decisions=[
        {
            "timestamp": datetime(2024, 1, 2, 14, 33, 10, tzinfo=UTC),
            "agent": "atlas",
            "type": "workflow_adjustment",
            "description": "one more specialist",
            "rationale": "0.73 is below 0.75",
            "confidence": 0.88,
            "alternatives_considered": ["request_human_review", "proceed_with_low_confidence"],
        }
    ],
    outputs=["phase2/output_1.md"],
    metrics={"elapsed_time": 185.4, "api_calls": 42, "tokens_used": 18500, "memory_peak": 512.3},
    confidence={"atlas": 0.92, "mercury_1": 0.87},
)
FOURTH = WorkflowState(
    workflow_id="W",
    phase=2,
    messages=[{"role": "user", "content": "begin"}],
    tasks=[{"taskId": "t-1", "result": {"ok": True}, "timestamp": 1.5, "duration": 0.2}],
    decisions=[{"type": "HIL", "answer": "yes"}],
    context={"rate": 0.5},
    dag_structure={"layers": [["a"], ["b", "c"], ["d"]]},
    execution_config={"speculation": False, "timeout": 30},
)


def comes_back(state: WorkflowState, folder: Path) -> None:
    """Store a state in files, and compare what another opening reads."""
    with holdfast.open(str(folder / "store")) as service:
        made = service.create_checkpoint(state.workflow_id, state)
    with holdfast.open(str(folder / "store"), read_only=True) as service:
        restored = service.restore_checkpoint(str(made))
    restored.checkpoint_id = None
    assert restored == state and repr(restored) == repr(state)


def test_the_state_of_the_first_document_comes_back(tmp_path: Path) -> None:
    comes_back(FIRST, tmp_path)


def test_the_state_of_the_third_document_comes_back(tmp_path: Path) -> None:
    comes_back(THIRD, tmp_path)


def test_the_state_of_the_fourth_document_comes_back(tmp_path: Path) -> None:
    comes_back(FOURTH, tmp_path)
    assert FOURTH.layer_index == 2


def test_the_events_of_the_first_document_come_back() -> None:
    with make_service() as service:
        service.append_event("W", "WORKFLOW_STARTED")
        service.append_event("W", "AGENT_SPAWNED", agent_id="worker-1")
        service.create_checkpoint("W", {"n": 1})
        service.append_event("W", "TASK_ASSIGNED", {"task": "TASK-001"}, agent_id="worker-1")
        events = service.events("W")
    assert [(one.seq, one.type, one.agent, one.cp_seq) for one in events] == [
        (1, "WORKFLOW_STARTED", None, None),
        (2, "AGENT_SPAWNED", "worker-1", None),
        (3, "CHECKPOINT_CREATED", None, 1),
        (4, "TASK_ASSIGNED", "worker-1", None),
    ]
    assert events[3].data == {"task": "TASK-001"}


def test_the_events_of_the_fifth_document_come_back() -> None:
    entered: dict[str, Any] = {"step_id": "scrape-001", "parent_id": "search-001", "agent_id": "scrape"}
    with make_service() as service:
        service.append_event("W", "node_enter", {"urls_count": 8}, **entered)
        service.append_event("W", "node_exit", {"results_count": 8}, cost={"usd": 0.002}, **entered)
        first, second = service.events("W")
    assert (first.type, first.agent, first.data) == ("node_enter", "scrape", {"urls_count": 8})
    assert {(one.step_id, one.parent_id) for one in (first, second)} == {("scrape-001", "search-001")}
    assert second.cost == {"usd": 0.002} and second.timestamp > first.timestamp


def test_at_most_a_hundred_are_listed_unless_more_are_asked_for() -> None:
    with make_service() as service:
        for number in range(105):
            service.create_checkpoint("W", {"n": number})
        assert [meta.id.sequence for meta in service.list_checkpoints("W")] == list(range(105, 5, -1))
        assert len(service.list_checkpoints("W", limit=1000)) == 105


def test_ten_checkpoints_and_thirty_days_are_kept_unless_told_otherwise() -> None:
    # From 50 days ago until today, one a day.
    clock = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    with make_service(clock=clock) as service:
        for number in range(50):
            service.create_checkpoint("W", {"n": number})
            clock.advance(timedelta(days=1))
        young = [
            meta.id.sequence for meta in service.list_checkpoints("W", after=clock.now() - timedelta(30))
        ]
        service.prune_checkpoints("W")
        kept = [meta.id.sequence for meta in service.list_checkpoints("W")]
        assert set(young) <= set(kept) and 15 not in kept
        clock.advance(timedelta(days=365))
        service.prune_checkpoints("W")
        kept = [meta.id.sequence for meta in service.list_checkpoints("W")]
        assert kept[:10] == list(range(50, 40, -1)) and 25 not in kept


def test_the_newest_state_of_a_workflow_that_has_none_is_none() -> None:
    with make_service() as service:
        service.create_checkpoint("V", {"n": 1})
        assert service.load_latest("W") is None
        latest = service.load_latest("V")
    assert latest is not None and latest.context == {"n": 1}


def test_the_newest_state_is_found_without_reading_what_is_before_its_keyframe() -> None:
    store, read = FailingStore(), list[int]()

    def noted(records: Iterable[bytes]) -> list[bytes]:
        found = list(records)
        read.append(len(found))
        return found

    service = make_service(store)
    for number in range(200):
        service.create_checkpoint("W", {"n": number, "text": "x" * 3000})
    newest = store.keyframes("W")[-1].sequence
    assert newest > 100
    store.calls.clear()
    store.alter("records", noted)
    latest = make_service(store).load_latest("W")
    assert latest is not None and latest.context["n"] == 199
    assert store.calls["keyframe"] == 1 and sum(read) <= 200 - newest + 1


def test_a_state_above_500_kilobytes_is_warned_about() -> None:
    with make_service() as service:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            service.create_checkpoint("W", {"text": "x" * 450_000})
        with pytest.warns(StateSizeWarning):
            service.create_checkpoint("W", {"text": "x" * 550_000})


def test_the_sums_of_what_was_pruned_go_with_it(tmp_path: Path) -> None:
    with holdfast.open(str(tmp_path / "store"), retain=False) as service:
        for number in range(120):
            service.create_checkpoint("W", {"n": number, "pad": str(number) * 400})
            service.flush()
        assert int(service.prune_checkpoints("W", retain_count=2, retain_days=0)) > 50
    [sums] = (tmp_path / "store").rglob("SHA256SUMS")
    named = {line.split()[-1] for line in sums.read_text().splitlines()}
    there = {path.name for path in sums.parent.iterdir()}
    assert named and named <= there and "checkpoint_000001.json" not in there
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.name], cwd=sums.parent, check=True)


def test_what_was_set_aside_has_the_committed_hash_and_that_of_what_was_found(tmp_path: Path) -> None:
    spoiler = Spoiler("file", tmp_path)
    spoiler.fill(3)
    with spoiler.opened() as service:
        committed = service.list_checkpoints("WF")[0].id.checksum
    spoiler.spoil_record(3)
    with spoiler.opened() as service:
        service.recover_workflow("WF")
        [report] = service.quarantine.entries()
        assert report.checksum == committed
        assert len(report.sha256) == 64 and report.sha256 not in committed
