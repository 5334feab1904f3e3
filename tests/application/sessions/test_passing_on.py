"""Workflows are told that they pass on; one that cannot be told is named, and stops nobody."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.application.sessions.passing_on import PassingOn
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.session_context import Agent, SessionContext
from holdfast.domain.session_record import Session, SessionStatus
from holdfast.testing import FailingStore
from tests.application.services import make_service


def passing(service: CheckpointService) -> PassingOn:
    engine = service._engine
    return PassingOn(engine.kit.store, engine.writer, engine.wait)


def session(*workflow_ids: str) -> Session:
    context = SessionContext("s-2", target_agent=Agent("critic"), workflow_ids=workflow_ids)
    return Session("s-2", SessionStatus.OPEN, context, continues="s-1")


@pytest.fixture
def store() -> FailingStore:
    return FailingStore(MemoryStore())


@pytest.fixture
def service(store: FailingStore) -> CheckpointService:
    service = make_service(store)
    service.create_checkpoint("W", {})
    return service


def test_both_sides_are_noted(service):
    assert passing(service).hand_off(session("W")) == ()
    assert passing(service).take_over(session("W")) == ()
    assert [(event.type, dict(event.data)) for event in service.events("W")[-2:]] == [
        ("WORKFLOW_HANDED_OFF", {"session_id": "s-2", "target_agent": "critic"}),
        ("WORKFLOW_TAKEN_OVER", {"session_id": "s-2", "continues": "s-1"}),
    ]


def test_what_ended_and_what_never_began_is_left_alone(service):
    service.create_checkpoint("V", {}, type=CheckpointType.WORKFLOW_COMPLETE)
    assert passing(service).take_over(session("V", "X")) == ()
    assert [event.type for event in service.events("V")] == ["CHECKPOINT_CREATED"]
    assert service.workflows() == ["V", "W"]


def test_a_race_with_another_writer_is_run_again(service, store):
    other = make_service(store.store)
    # This one still believes that its checkpoint was the last word.
    other.append_event("W", "STEP_DONE")
    assert passing(service).take_over(session("W")) == ()
    assert service.events("W")[-1].type == "WORKFLOW_TAKEN_OVER"


def test_a_workflow_that_cannot_be_told_is_named(service, store):
    service.create_checkpoint("V", {})
    store.fail("commit", CheckpointWriteError("no disk"))
    [problem] = passing(service).take_over(session("V", "W"))
    assert problem == "V was not told: no disk"
    assert service.events("W")[-1].type == "WORKFLOW_TAKEN_OVER"
