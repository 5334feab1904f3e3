"""What a caller asks of the service when work has stopped goes to the rooms that answer it."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.app import App
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointStatus
from tests.application.services import make_service


@pytest.fixture
def service() -> CheckpointService:
    app = App()

    @app.handler("go_on")
    def go_on(context: Any) -> str:
        return "W-next"

    service = make_service(app=app, session="s-1")
    service.create_checkpoint("W", {"n": 1}, resume_handler="go_on")
    return service


def test_a_workflow_is_recovered_and_resumed_in_one_call(service: CheckpointService) -> None:
    result = service.resume_workflow("W", reason="the night shift")
    assert result.success and result.handler == "go_on" and result.resumed_workflow_id == "W-next"
    assert {"find", "replay", "handler"} <= {step.step for step in result.steps}
    assert result.recovered_checkpoint is not None
    assert result.recovered_checkpoint.status is CheckpointStatus.COMPLETED


def test_a_checkpoint_is_resumed_by_the_handler_that_is_named(service: CheckpointService) -> None:
    result = service.recover_from_checkpoint("W@1", override_handler="nobody")
    assert not result and "nobody" in result.validation_errors[0]
    assert service.recover_from_checkpoint("W@1").success


def test_what_is_not_recovered_is_not_resumed(service: CheckpointService) -> None:
    service.create_checkpoint("W", {"n": 2}, type="workflow_complete")
    assert service.resume_workflow("W").handler is None


def test_crashed_workflows_are_found(service: CheckpointService) -> None:
    assert [one.workflow_id for one in service.incomplete_workflows(stale_seconds=0)] == ["W"]
    assert service.incomplete_workflows(stale_seconds=10_000) == []


def test_checkpoints_are_marked_and_pinned(service: CheckpointService) -> None:
    assert service.pin("W@1").pinned and not service.unpin("W@1").pinned
    assert service.mark_failed("W@1", "out of tokens").error_message == "out of tokens"
    service.create_checkpoint("W", {"n": 2})
    assert service.mark_completed("W@2").status is CheckpointStatus.COMPLETED


def test_a_session_is_handed_off_and_resumed(service: CheckpointService) -> None:
    service.open_session("s-2", agent="architect", workflow_ids=["W"])
    handed = service.hand_off("s-2", "critic", "the design is done", {"file": "design.md"})
    assert handed.context.target_agent is not None and handed.context.target_agent.id == "critic"
    state = service.resume_session("s-2", "s-3")
    assert state.context_summary == "the design is done"
    assert service.close_session("s-3").status == "closed"


def test_health_is_told(service: CheckpointService) -> None:
    assert service.health().is_durable
