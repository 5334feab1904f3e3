"""Recoveries are told with how they ended, and shown as spans."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.application.app import App
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    LeaseHeldError,
    NoValidCheckpointError,
)
from holdfast.domain.recovery import RecoveryMode
from holdfast.domain.telemetry import FoundBy, RecoveryOutcome
from tests.application.watched import Collected, Heard, watched_service
from tests.damage import Spoiler


def outcomes(heard: Heard) -> list[RecoveryOutcome]:
    return [recovered.outcome for recovered in heard.recoveries]


def test_a_recovery_of_the_newest_is_ok() -> None:
    heard, collected = Heard(), Collected()
    with watched_service(heard, collected) as service:
        service.create_checkpoint("W", {"a": 1})
        service.append_event("W", "NOTED", {})
        assert service.recover_workflow("W")
    [told] = heard.recoveries
    assert told.outcome is RecoveryOutcome.OK and told.lost_steps == 0 and told.seconds > 0
    [span] = collected.named("holdfast.recover")
    assert span.attributes is not None
    assert span.attributes["holdfast.outcome"] == "ok" and span.attributes["holdfast.checkpoint"] == "W@1"


def test_an_older_one_that_stands_in_is_a_fallback_with_what_was_lost(tmp_path: Path) -> None:
    spoiler, heard = Spoiler("memory", tmp_path), Heard()
    spoiler.fill(4)
    spoiler.spoil_record(3)
    service = watched_service(heard, store=spoiler.memory)
    assert service.recover_workflow("WF").passed_over == (4, 3)
    [told] = heard.recoveries
    assert (told.outcome, told.lost_steps) == (RecoveryOutcome.FALLBACK, 2) and told.quarantined > 0
    assert heard.failures == [FoundBy.RECOVERY]


def test_where_nothing_verifies_it_failed(tmp_path: Path) -> None:
    spoiler, heard = Spoiler("memory", tmp_path), Heard()
    spoiler.fill(1)
    spoiler.spoil_record(1)
    spoiler.spoil_keyframe(1)
    service = watched_service(heard, store=spoiler.memory)
    with pytest.raises(NoValidCheckpointError):
        service.recover_workflow("WF")
    assert outcomes(heard) == [RecoveryOutcome.FAILED]


def test_what_is_not_there_or_somebody_elses_is_refused() -> None:
    heard = Heard()
    service = watched_service(heard)
    with pytest.raises(CheckpointNotFoundError):
        service.recover_workflow("W")
    service.create_checkpoint("W", {"a": 1})
    service._engine.kit.store.acquire("W", "another", 60)
    with pytest.raises(LeaseHeldError):
        service.recover_workflow("W")
    assert outcomes(heard) == [RecoveryOutcome.REFUSED] * 2


def test_a_fallback_that_is_forbidden_failed(tmp_path: Path) -> None:
    spoiler, heard = Spoiler("memory", tmp_path), Heard()
    spoiler.fill(3)
    spoiler.spoil_record(3)
    service = watched_service(heard, store=spoiler.memory, fallback_to_previous=False)
    with pytest.raises(CheckpointCorruptError):
        service.recover_workflow("WF")
    assert outcomes(heard) == [RecoveryOutcome.FAILED]


def test_a_handler_that_must_not_be_called_is_refused() -> None:
    heard = Heard()
    service = watched_service(heard)
    made = service.create_checkpoint("W", {"a": 1}, resume_handler="nobody")
    assert service.recover_from_checkpoint(made).validation_errors
    assert outcomes(heard) == [RecoveryOutcome.REFUSED]


@pytest.mark.parametrize("is_failing", [False, True])
def test_a_handler_that_resumes_is_part_of_it(is_failing: bool) -> None:
    heard, app = Heard(), App()

    @app.handler("go on")
    def go_on(context: object) -> str:
        if is_failing:
            raise RuntimeError("no")
        return "W"

    with watched_service(heard, app=app) as service:
        made = service.create_checkpoint("W", {"a": 1}, resume_handler="go on")
        result = service.recover_from_checkpoint(made)
    assert bool(result) is not is_failing and result.mode is RecoveryMode.POINT_IN_TIME
    assert outcomes(heard) == [RecoveryOutcome.FAILED if is_failing else RecoveryOutcome.OK]
