"""Old payloads may go, young ones and held ones stay, and the trail verifies as before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.payload_pruning import prune_payloads
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import ConfigError
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import verify_session
from holdfast.testing import FixedClock


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def service(clock: FixedClock) -> CheckpointService:
    config = Config(session="s-1", background=False)
    service = CheckpointService(build_kit(MemoryStore(), config, clock=clock))
    for workflow_id in ("W", "V"):
        service.record_decision(workflow_id, "go", rationale="old")
    clock.advance(timedelta(days=200))
    service.record_decision("W", "stop", rationale="young")
    return service


def prune(service: CheckpointService, days: int, **options: bool):
    return prune_payloads(service._engine.kit, service._engine.trail, days, **options)


def test_what_is_old_goes_and_every_line_still_verifies(service: CheckpointService) -> None:
    store = service._engine.kit.store
    assert prune(service, 183, dry_run=True).payloads == 2
    done = prune(service, 183)
    assert (done.payloads, done.held, done.dry_run) == (2, 0, False)
    report = verify_session(store.trail("s-1"), "s-1", store.payload)
    assert (report.faults, report.erased, report.payloads) == ((), 2, 1)
    last = decode_entry(list(store.trail("s-1"))[-1], None)
    assert (last.type, last.facts["payloads"]) == (AuditType.PAYLOADS_PRUNED, 2)
    assert prune(service, 183).payloads == 0


def test_nothing_below_the_minimum_can_go(service: CheckpointService) -> None:
    with pytest.raises(ConfigError, match="kept for 183 days at least, not 182"):
        prune(service, 182)


def test_what_is_held_stays(service: CheckpointService) -> None:
    service.holds.place(workflow_id="W", reason="case 17")
    done = prune(service, 183)
    assert (done.payloads, done.held) == (1, 1)
    service.holds.place(subject="alice", reason="claim")
    assert prune(service, 183).held == 1
