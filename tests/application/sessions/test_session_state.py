"""What a new session finds: states as they stand, what is open, and a briefing that says all of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from holdfast.application.service import CheckpointService
from holdfast.application.sessions.session_state import Gathering, SessionState, SessionWorkflow, decisions_of
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.session_context import Agent, SessionContext
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.services import make_service


@pytest.fixture
def service() -> CheckpointService:
    return make_service(session="s-1")


def gather(service: CheckpointService, workflow_id: str = "W", session_id: str = "") -> SessionWorkflow:
    return Gathering(service._engine.kit, service._engine.reader).workflow(workflow_id, session_id)


def test_events_since_the_checkpoint_are_folded_in(service):
    service.create_checkpoint("W", WorkflowState(messages=["a"]))
    service.append_event("W", "MESSAGE_ADDED", {"message": "b"})
    service.record_decision("W", "go on")
    found = gather(service, session_id="s-2")
    assert found.state is not None
    assert found.state.messages == ["a", "b"]
    assert [one["description"] for one in found.state.decisions] == ["go on"]
    assert (found.events_replayed, found.state.session_id, str(found.checkpoint_id)) == (2, "s-2", "W@1")


def test_an_event_that_fits_nowhere_is_skipped_and_told(service):
    service.create_checkpoint("W", WorkflowState(messages=["a"]))
    service.append_event("W", "MESSAGE_ADDED", {"text": "b"})
    found = gather(service)
    assert found.state is not None and found.state.messages == ["a"]
    assert any("event 2 (MESSAGE_ADDED) was skipped" in warning for warning in found.warnings)


def test_events_that_nobody_takes_are_pending_unless_they_are_ours(service):
    service.create_checkpoint("W", WorkflowState(pending_events=[{"event_type": "EARLIER"}, "note"]))
    service.append_event("W", "TASK_ASSIGNED", {"task": 1}, agent_id="worker-1")
    service.append_event("W", "AGENT_SPAWNED", {})
    pending = gather(service).pending_events
    assert pending == (
        {"workflow_id": "W", "event_type": "EARLIER"},
        {"workflow_id": "W", "value": "note"},
        {
            "workflow_id": "W",
            "event_type": "TASK_ASSIGNED",
            "source": "worker-1",
            "payload": {"task": 1},
            "seq": 2,
        },
    )


def test_a_workflow_that_ended_says_so(service):
    service.create_checkpoint("W", {}, type=CheckpointType.WORKFLOW_COMPLETE)
    assert gather(service).has_ended


def test_before_the_first_checkpoint_the_events_give_the_state(service):
    service.append_event("V", "MAIL_CAME", {"n": 1})
    service.record_decision("V", "answer it")
    events_only = gather(service, "V")
    assert events_only.checkpoint_id is None and "no checkpoint yet" in events_only.warnings[0]
    assert events_only.state is not None
    assert [one["description"] for one in events_only.state.decisions] == ["answer it"]
    assert [one["event_type"] for one in events_only.pending_events] == ["MAIL_CAME"]
    assert "V, no checkpoint yet, in_progress" in state(workflows=(events_only,)).briefing()


def test_what_cannot_be_restored_is_said_with_what_to_do():
    store = FailingStore()
    make_service(store).create_checkpoint("V", {"n": 1})
    service = make_service(store)
    service.append_event("V", "MAIL_CAME", {"n": 1})
    store.fail("keyframe", CheckpointCorruptError("damaged"), times=9)
    found = gather(service, "V")
    assert found.state is None and "no checkpoint that verifies" in found.warnings[0]
    assert [one["event_type"] for one in found.pending_events] == ["MAIL_CAME"]


@pytest.mark.parametrize("is_damaged", [True, False])
def test_events_are_folded_in_as_far_as_they_verify(is_damaged):
    store = FailingStore()
    service = make_service(store)
    service.create_checkpoint("W", {"n": 1})
    for number in (2, 3, 4):
        service.append_event("W", "CONTEXT_UPDATED", {"context": {"n": number}})

    def cut(lines):
        *whole, last, _ = lines
        return [*whole, last.replace(b'"n":3', b'"n":9')] if is_damaged else [*whole, last]

    store.alter("events", lambda lines: cut(list(lines)))
    found = gather(service)
    assert found.state is not None
    assert found.state.context == ({"n": 2} if is_damaged else {"n": 3})
    assert "later ones are damaged or gone" in found.warnings[0]


@dataclass
class Offer:
    price: int


def test_a_program_without_the_types_of_a_state_gets_them_as_stored_and_is_told():
    registry = TypeRegistry()
    registry.register(Offer)
    service = make_service(registry=registry)
    service.create_checkpoint("W", {"offer": Offer(7), "n": 1})
    service.append_event("W", "CONTEXT_UPDATED", {"context": {"best": Offer(5)}})
    service.sessions.hand_off(service._engine.kit.session_id, payload={"offer": Offer(9)})
    stranger = make_service(service._engine.kit.store, session="s-9")
    resumed = stranger.sessions.resume_session(service._engine.kit.session_id)
    assert "types that this program does not know" in resumed.warnings[0]
    told = stranger.sessions.fields(resumed)
    [workflow] = told["workflows"]
    assert workflow["state"]["context"]["n"] == 1
    assert [workflow["state"]["context"][name]["t"] for name in ("offer", "best")] == ["Offer", "Offer"]
    assert told["session_context"]["payload"]["offer"]["t"] == "Offer"
    # Whoever knows them gets values.
    stranger.sessions.hand_off("s-9")
    known = make_service(service._engine.kit.store, registry, session="s-10").sessions.resume_session("s-9")
    assert known.payload == {"offer": Offer(9)}
    assert known.state("W").context == {"offer": Offer(7), "best": Offer(5), "n": 1}


def state(**more) -> SessionState:
    defaults = {"session_id": "s-2", "previous_session_id": "s-1", "is_handed_off": True}
    return SessionState(**{**defaults, "context": SessionContext("s-1"), **more})


def test_the_briefing_says_everything():
    workflow = SessionWorkflow(
        "W", state=WorkflowState(current_step=2, total_steps=5, context_summary="two read")
    )
    text = state(
        context=SessionContext(
            "s-1", Agent("planner", "2"), Agent("critic"), {"due": datetime(2026, 2, 1, tzinfo=UTC)}, "Half."
        ),
        workflows=(workflow, SessionWorkflow("V")),
        open_decisions=({"workflow_id": "W", "description": "ask"},),
        pending_events=({"workflow_id": "W", "event_type": "MAIL_CAME"},),
        warnings=("look here",),
    ).briefing()
    for part in (
        "s-2 continues s-1, which handed over",
        "planner 2",
        "critic",
        "Half.",
        "step 2 of 5: two read",
        "V: no state",
        '"description": "ask"',
        "MAIL_CAME",
        "2026-02-01",
        "look here",
    ):
        assert part in text


def test_the_briefing_of_a_crash_says_that_it_was_one():
    assert "stopped without handing over" in state(is_handed_off=False).briefing()
    assert "## " not in state().briefing()


def test_a_briefing_spells_what_json_has_no_word_for():
    assert "(1, 2)" in state(context=SessionContext("s-1", payload={(1, 2): "pair"})).briefing()


def test_the_state_of_a_workflow_is_found_by_its_name():
    one, other = WorkflowState(current_step=1), WorkflowState(current_step=2)
    both = state(workflows=(SessionWorkflow("V", state=one), SessionWorkflow("W", state=other)))
    assert both.state("W") is other
    for name in (None, "X"):
        with pytest.raises(CheckpointNotFoundError, match="no one state") as refusal:
            both.state(name)
        assert "V, W" in refusal.value.hint


def test_settled_decisions_are_left_out():
    decided = WorkflowState(decisions=[{"description": "a", "status": "done"}, {"description": "b"}])
    found = decisions_of([SessionWorkflow("W", state=decided), SessionWorkflow("V")])
    assert found == ({"workflow_id": "W", "description": "b"},)


def test_programs_get_all_of_it_as_json(service):
    service.create_checkpoint("W", {"due": datetime(2026, 2, 1, tzinfo=UTC)})
    service.sessions.hand_off(summary="x")
    found = service.sessions.fields(service.sessions.resume_session("s-1", "s-2"))
    assert json.loads(json.dumps(found)) == found
    assert found["session_context"]["summary"] == "x"
    assert found["workflows"][0]["state"]["context"]["due"]["$hf"] == "datetime"


def test_a_state_that_nobody_here_can_migrate_is_told(service, monkeypatch):
    service.create_checkpoint("W", {})
    monkeypatch.setattr(service._engine.kit.app, "schema_version", "2.0.0")
    found = gather(service)
    assert found.state is None and "holdfast recover W --plan" in found.warnings[0]


def test_events_that_cannot_be_read_are_told(service):
    store = FailingStore(service._engine.kit.store)
    service.create_checkpoint("W", {})
    other = make_service(store)
    store.fail("events", CheckpointCorruptError("torn"), times=5)
    found = gather(other)
    assert found.state is not None and "damaged or gone (torn)" in found.warnings[0]
