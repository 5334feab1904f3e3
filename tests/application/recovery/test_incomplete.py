"""What crashed is found by its age and by owners that are gone; what ended or is owned is left alone."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.application.kit import Kit
from holdfast.application.recovery.incomplete import (
    Cause,
    incomplete_workflows,
    recover_incomplete,
    start_up,
)
from holdfast.application.recovery.owners import own_name
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointStatus, CheckpointType
from holdfast.domain.errors import NoValidCheckpointError
from holdfast.domain.record import Transition
from holdfast.domain.recovery import RecoveryResult, RecoverySettings
from holdfast.testing import FixedClock
from tests.application.services import make_service
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.conftest import place as place
from tests.recovery.places import Place

START = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def later(service: CheckpointService, **time: float) -> Kit:
    """The same store, looked at later."""
    return replace(service._engine.kit, clock=FixedClock(START + timedelta(**time)))


@pytest.fixture
def service() -> CheckpointService:
    service = make_service(clock=FixedClock(START))
    service.create_checkpoint("W", {"n": 1}, session_id="s-7")
    return service


def crashed(kit: Kit, **more: Any) -> list[str]:
    return [one.workflow_id for one in incomplete_workflows(kit, **more)]


def test_a_workflow_that_was_quiet_for_too_long_has_crashed(service):
    assert crashed(later(service, seconds=299)) == []
    [one] = incomplete_workflows(later(service, seconds=301))
    assert (one.workflow_id, one.sequence, one.status) == ("W", 1, CheckpointStatus.ACTIVE)
    assert (one.cause, one.quiet_seconds, one.session_id, one.owner) == (Cause.QUIET, 301, "s-7", None)
    assert str(one) == "W@1: active, and quiet for 301 seconds"


def test_how_long_is_too_long_can_be_said(service):
    assert crashed(later(service, seconds=11), stale_seconds=10) == ["W"]
    patient = replace(later(service, hours=1), recovery=RecoverySettings(stale_seconds=7200))
    assert crashed(patient) == []


def test_an_event_is_a_sign_of_life(service):
    service._engine.kit.clock.moment = START + timedelta(seconds=200)
    service.append_event("W", "STEP_DONE")
    assert crashed(later(service, seconds=400)) == []
    assert crashed(later(service, seconds=501)) == ["W"]


@pytest.mark.parametrize("end", ["WORKFLOW_COMPLETED", "WORKFLOW_FAILED"])
def test_a_workflow_that_an_event_ended_is_left_out(service, end):
    service.append_event("W", end)
    service.append_event("W", "MAIL_SENT")
    assert crashed(later(service, days=1)) == []


def test_a_workflow_that_a_checkpoint_ended_is_left_out(service):
    service.create_checkpoint("W", {"n": 2}, type=CheckpointType.WORKFLOW_COMPLETE)
    assert crashed(later(service, days=1)) == []


def test_a_workflow_whose_owner_lives_is_left_alone_however_quiet(service):
    service.acquire_lease("W", own_name("test"), ttl_seconds=7 * 24 * 3600)
    assert crashed(later(service, days=1)) == []


def test_a_workflow_whose_owner_is_gone_has_crashed_at_once(service):
    service.acquire_lease("W", "worker-1", ttl_seconds=0)
    [one] = incomplete_workflows(later(service, seconds=1))
    assert (one.cause, one.owner) == (Cause.OWNER_GONE, "worker-1")
    assert str(one) == "W@1: 'worker-1' had it and is gone"


def test_a_process_of_this_machine_that_ended_is_gone_though_its_lease_lives(service):
    name = own_name("test").rsplit(":", 2)[0] + ":999999999:1"
    service.acquire_lease("W", name, ttl_seconds=3600)
    assert crashed(later(service, seconds=1)) == ["W"]


def test_a_lease_that_was_given_back_says_nothing(service):
    service.release_lease(service.acquire_lease("W", "worker-1"))
    assert crashed(later(service, seconds=10)) == []
    assert crashed(later(service, seconds=400)) == ["W"]


def mark(service: CheckpointService, status: CheckpointStatus) -> None:
    event = AppendEvent("W", "CHECKPOINT_STATUS", {"status": str(status)}, cp_seq=1)
    service._engine.wait(service._engine.writer.append(event, transitions=(Transition(1, str(status)),)))


@pytest.mark.parametrize(
    ("status", "is_found"),
    [
        (CheckpointStatus.RECOVERING, True),
        (CheckpointStatus.COMPLETED, False),
        (CheckpointStatus.FAILED, False),
    ],
)
def test_only_what_is_active_or_recovering_counts(service, status, is_found):
    mark(service, status)
    assert crashed(later(service, days=1)) == (["W"] if is_found else [])


def test_a_workflow_without_a_checkpoint_has_nothing_to_be_recovered_from(service):
    service.append_event("V", "STEP_DONE")
    assert crashed(later(service, days=1)) == ["W"]


def test_the_one_that_was_quiet_longest_comes_first(service):
    service._engine.kit.clock.moment = START - timedelta(hours=1)
    service.create_checkpoint("V", {})
    assert crashed(later(service, days=1)) == ["V", "W"]


def test_damage_hides_no_other_workflow(service, caplog, monkeypatch):
    service.create_checkpoint("V", {})
    store = service._engine.kit.store
    sound = store.entries

    def entries(workflow_id: str, **more: Any) -> Any:
        if workflow_id == "V":
            raise NoValidCheckpointError("torn")
        return sound(workflow_id, **more)

    monkeypatch.setattr(store, "entries", entries)
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert crashed(later(service, days=1)) == ["W"]
    assert "cannot be told whether V crashed" in caplog.text


def test_what_cannot_be_recovered_stops_no_other(service):
    service.create_checkpoint("V", {})

    def recover(workflow_id: str) -> RecoveryResult:
        if workflow_id == "V":
            raise NoValidCheckpointError("nothing is left")
        return RecoveryResult(True, workflow_id=workflow_id)

    done = recover_incomplete(later(service, days=1), recover)
    assert {one.incomplete.workflow_id: one.error is None for one in done} == {"V": False, "W": True}
    assert [one.result.workflow_id for one in done if one.result] == ["W"]


def test_at_the_start_only_what_is_configured_is_done(service):
    calls: list[str] = []

    def recover(workflow_id: str) -> RecoveryResult:
        calls.append(workflow_id)
        return RecoveryResult(True)

    kit = later(service, days=1)
    assert start_up(kit, recover) == [] == calls
    [done] = start_up(replace(kit, recovery=RecoverySettings(auto=True)), recover)
    assert calls == ["W"] and done.result is not None


def test_every_store_finds_what_crashed(place: Place):
    with place.open() as service:
        for name in ("A", "B", "C", "D"):
            service.create_checkpoint(name, {"n": 1})
        service.create_checkpoint("B", {"n": 2}, type=CheckpointType.WORKFLOW_COMPLETE)
        service.acquire_lease("C", "worker-1", ttl_seconds=3600)
        service.acquire_lease("D", "worker-2", ttl_seconds=0)
        tomorrow = FixedClock(datetime.now(UTC) + timedelta(days=1))
        kit = replace(service._engine.kit, clock=tomorrow)
        found = {one.workflow_id: one.cause for one in incomplete_workflows(kit)}
    assert found == {"A": Cause.QUIET, "D": Cause.OWNER_GONE}


def test_what_was_refused_at_the_start_is_not_told_as_recovered(service, caplog):
    caplog.set_level(logging.INFO, logger="holdfast")
    refused = RecoveryResult(success=False, validation_errors=("no such handler",))
    [done] = recover_incomplete(later(service, seconds=400), lambda workflow_id: refused)
    assert done.result is refused
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("not recovered at start-up") and "no such handler" in said
