"""What rides on the commits of a workflow as audit entries."""

from __future__ import annotations

import pytest

from holdfast.application.service import CheckpointService
from holdfast.application.telling import Teller
from holdfast.domain.event import Event
from holdfast.domain.record import Removal
from holdfast.domain.reducers import DECISION_EVENT
from holdfast.testing import FixedClock
from tests.application.services import make_kit


@pytest.fixture
def service():
    with CheckpointService(make_kit()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("type", "kind", "is_whole"),
    [
        ("TICK", "EVENT_RECORDED", False),
        ("TASK_ASSIGNED", "TASK_ASSIGNED", False),
        (DECISION_EVENT, "AGENT_DECISION", True),
        ("STORE_DEGRADED", "STORE_DEGRADED", True),
    ],
)
def test_an_event_is_told_under_its_own_type_where_the_trail_knows_it(service, type, kind, is_whole):
    teller = Teller(service._engine.trail)
    [entry] = teller.event(Event(3, FixedClock().now(), type, "WF", data={"n": 1}), "sha256:x")
    assert entry.type == kind and entry.facts["event_seq"] == 3
    assert bool(entry.stored) is is_whole


def test_a_removal_is_told_in_numbers(service):
    [entry] = Teller(service._engine.trail).removal("WF", Removal((2, 3, 5), groups=(1,)))
    assert entry.facts == {"checkpoints": 3, "groups": 1, "first": 2, "last": 5}


def test_a_checkpoint_is_told_with_its_checksum_and_a_fork_with_where_it_comes_from(service):
    made = service.create_checkpoint("WF", {"n": 1})
    service.fork_workflow(made, "FORK")
    told = {event.type: event for event in service.audit.query_events()}
    assert told["CHECKPOINT_CREATED"].facts["checksum"] == made.checksum
    assert told["CHECKPOINT_CREATED"].timestamp == made.timestamp
    assert told["WORKFLOW_FORKED"].facts["from"] == "WF@1"
