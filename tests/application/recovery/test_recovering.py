"""A workflow comes back from whatever is left of it, with an honest account."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.reading import Reader
from holdfast.application.recovery.claiming import Claim, Claims
from holdfast.application.recovery.owners import own_name
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointRecoveryError,
    InvalidStateError,
    LeaseHeldError,
    NoValidCheckpointError,
)
from holdfast.domain.event import Event
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.state import WorkflowState
from tests.application.services import make_service
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.conftest import place as place
from tests.recovery.places import Place

#: Grows, so that keyframes are due now and then.
TEXT = "lorem ipsum " * 40


def fill(service: CheckpointService, count: int = 12) -> None:
    for number in range(1, count + 1):
        state = WorkflowState(current_step=number, total_steps=count, messages=[TEXT * number])
        service.create_checkpoint("W", state)


def told(service: CheckpointService, kind: AuditType) -> list[Any]:
    service.flush()
    return service.audit.query_events(event_types=[kind])


@pytest.fixture
def service() -> CheckpointService:
    return make_service()


def test_the_newest_state_comes_back_with_the_events_since(service: CheckpointService) -> None:
    fill(service)
    service.record_decision("W", "go on", agent_id="conductor")
    service.update_agent_state("W", "worker-1", {"progress": 0.5})
    service.append_event("W", "NOBODY_KNOWS", {"a": 1})
    result = service.recover_workflow("W")
    assert result and result.state is not None and result.checkpoint_used is not None
    assert result.checkpoint_used.sequence == 12 and result.events_replayed == 2
    assert result.state.current_step == 12 and result.state.checkpoint_id == "W@12"
    assert result.state.decisions[0]["description"] == "go on"
    assert result.state.agent_states == {"worker-1": {"progress": 0.5}}
    assert result.warnings == () and result.passed_over == ()
    assert [step.step for step in result.steps] == ["find", "set aside", "replay", "record"]
    assert result.recovery_time_ms > 0


def test_a_recovery_is_an_event_and_in_the_trail(service: CheckpointService) -> None:
    fill(service)
    service.recover_workflow("W", reason="the night shift asked")
    [event] = service.events("W", type=RECOVERED_EVENT)
    assert event.data["mode"] == "latest" and event.data["checkpoint"] == "W@12" and event.cp_seq == 12
    assert event.data["reason"] == "the night shift asked"
    assert len(told(service, AuditType.WORKFLOW_RECOVERED)) == 1


def test_going_on_after_a_recovery_is_an_ordinary_checkpoint(service: CheckpointService) -> None:
    fill(service)
    service.record_decision("W", "go on")
    state = service.recover_workflow("W").state
    assert state is not None
    assert service.create_checkpoint("W", state).sequence == 13
    assert len(service.restore_checkpoint("W@13").decisions) == 1
    assert service.recover_workflow("W").events_replayed == 0


def test_full_recovery_equals_the_latest_on_an_undamaged_store(service: CheckpointService) -> None:
    fill(service, 40)
    service.record_decision("W", "go on")
    full, latest = service.recover_workflow("W", "full"), service.recover_workflow("W", RecoveryMode.LATEST)
    assert full.state == latest.state and full.events_replayed == 1 and full.warnings == ()


def test_a_point_in_time_is_one_checkpoint_and_nothing_later(service: CheckpointService) -> None:
    fill(service)
    service.record_decision("W", "go on")
    result = service.recover_workflow("W", RecoveryMode.POINT_IN_TIME, 5)
    assert result.state is not None and result.state.current_step == 5
    assert result.events_replayed == 0 and result.state.decisions == []


@pytest.mark.parametrize(("mode", "target"), [("point_in_time", None), ("latest", 5), ("newest", None)])
def test_what_does_not_go_together_is_refused(
    service: CheckpointService, mode: str, target: int | None
) -> None:
    fill(service)
    with pytest.raises(InvalidStateError, match=r"do not go together|no mode of recovery"):
        service.recover_workflow("W", mode, target)


def test_what_is_not_there_is_not_recovered(service: CheckpointService) -> None:
    fill(service)
    with pytest.raises(CheckpointNotFoundError, match="no such workflow"):
        service.recover_workflow("V")
    with pytest.raises(CheckpointNotFoundError, match="no such checkpoint"):
        service.recover_workflow("W", "point_in_time", 99)
    assert service.workflows() == ["W"]


def test_a_workflow_that_ended_is_not_recovered_but_its_points_are(service: CheckpointService) -> None:
    fill(service)
    service.create_checkpoint("W", {"done": True}, type=CheckpointType.WORKFLOW_COMPLETE)
    result = service.recover_workflow("W")
    assert not result and result.state is None and "ended with checkpoint 13" in result.validation_errors[0]
    assert service.recover_workflow("W", "point_in_time", 12).success
    assert service.events("W", type=RECOVERED_EVENT, limit=5)[0].cp_seq == 12


def test_a_state_that_says_so_is_not_resumed(service: CheckpointService) -> None:
    service.create_checkpoint("W", WorkflowState(resumable=False))
    assert "cannot be resumed" in service.recover_workflow("W").validation_errors[0]


def test_before_the_first_checkpoint_the_events_give_the_state(service: CheckpointService) -> None:
    service.record_decision("W", "begin")
    result = service.recover_workflow("W")
    assert result.state is not None and len(result.state.decisions) == 1 and result.checkpoint_used is None
    assert "no checkpoint yet" in result.warnings[0]


def test_an_event_whose_reducer_fails_is_skipped_and_told() -> None:
    app = App()

    @app.reducer("PRICE_SET")
    def set_price(fields: Any, event: Any) -> dict[str, Any]:
        return {**fields, "metadata": {"price": 100 / event.data["count"]}}

    service = make_service(app=app)
    fill(service, 1)
    for count in (4, 0, 5):
        service.append_event("W", "PRICE_SET", {"count": count})
    result = service.recover_workflow("W")
    assert result.state is not None and result.state.metadata == {"price": 20.0}
    assert result.events_replayed == 2
    [skipped] = result.skipped
    assert skipped.type == "PRICE_SET" and "division by zero" in skipped.reason
    assert "skipped events" in result.warnings[0] and "Register a reducer" in result.warnings[0]


def test_reducers_that_leave_no_state_behind_are_undone() -> None:
    app = App()

    @app.reducer("RUINED")
    def ruin(fields: Any, event: Any) -> dict[str, Any]:
        return {**fields, "started_at": "yesterday, I think"}

    service = make_service(app=app)
    fill(service, 2)
    service.append_event("W", "RUINED")
    result = service.recover_workflow("W")
    assert result.state is not None and result.state.current_step == 2 and result.events_replayed == 0
    assert "it is the checkpoint's, without them" in result.warnings[0]


def test_somebody_who_works_on_it_is_not_disturbed(service: CheckpointService) -> None:
    fill(service)
    other = make_service(service._engine.kit.store)
    lease = other.acquire_lease("W", "worker-7", ttl_seconds=60)
    with pytest.raises(LeaseHeldError):
        service.recover_workflow("W")
    assert other.recover_workflow("W").success, "whoever has the workflow may recover it"
    other.release_lease(lease)
    assert service.recover_workflow("W").success


def test_nobody_waits_for_a_recovery_whose_process_died(service: CheckpointService) -> None:
    fill(service)
    start, _, ticks = own_name("recovery-0000").rpartition(":")
    service._engine.kit.store.acquire("W", f"{start}:{int(ticks) + 1}", 300)
    result = service.recover_workflow("W")
    assert result.success and "is dead" in result.warnings[0]
    assert service.lease_of("W") is None


def at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> list[RecoveryResult | CheckpointError]:
    """Recover a workflow while another service is in the middle of that; answer how the two ended."""
    with place.open() as first, place.open() as second:
        fill(first, 3)
        inside, outcomes = threading.Event(), list[RecoveryResult | CheckpointError]()
        entered = threading.Barrier(2, timeout=30)
        search = first._engine.recovery._search
        way = search.way

        def held_up(*args: Any) -> Any:
            inside.set()
            entered.wait()
            return way(*args)

        def recover(service: CheckpointService) -> None:
            try:
                outcomes.append(service.recover_workflow("W"))
            except CheckpointError as problem:
                outcomes.append(problem)

        monkeypatch.setattr(search, "way", held_up)
        thread = threading.Thread(target=recover, args=(first,))
        thread.start()
        assert inside.wait(30)
        recover(second)
        entered.wait()
        thread.join(30)
        assert second.recover_workflow("W").success, "afterwards the workflow is free"
    return outcomes


def test_of_two_recoveries_at_once_one_wins(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    second, first = at_once(place, monkeypatch)
    assert isinstance(second, LeaseHeldError)
    assert isinstance(first, RecoveryResult) and first.success


def test_without_the_claim_the_second_would_break_into_the_first(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: what is left then is that two commits cannot both be the next."""
    monkeypatch.setattr(Claims, "alone", lambda self, workflow_id: nullcontext(Claim(workflow_id)))
    second, first = at_once(place, monkeypatch)
    assert isinstance(second, RecoveryResult) and second.success
    assert isinstance(first, CheckpointConflictError)


def test_a_damaged_checkpoint_is_set_aside_and_the_newest_good_one_is_used(place: Place) -> None:
    with place.open() as service:
        fill(service, 6)
        service.record_decision("W", "after six")
    place.damage_record("W", 5)
    with place.open() as service:
        result = service.recover_workflow("W")
        assert result.state is not None and result.checkpoint_used is not None
        assert result.checkpoint_used.sequence == 4 and result.passed_over == (6, 5)
        assert len(result.state.decisions) == 1, "events are replayed from there"
        assert len(result.quarantined) == 1
        assert any("stands in for 6, 5" in warning for warning in result.warnings)
        assert len(told(service, AuditType.CHECKPOINT_QUARANTINED)) == 1
        # The recovered state is a complete checkpoint, so the damage ends with it.
        assert str(result.checkpoint_made) == "W@7"
        assert service.load_latest("W") == replace(result.state, checkpoint_id="W@7")
    with place.open() as service:
        again = service.recover_workflow("W")
        assert str(again.checkpoint_used) == "W@7" and again.passed_over == () and again.warnings == ()
        assert again.checkpoint_made is None and again.state == replace(result.state, checkpoint_id="W@7")


def test_whether_the_state_becomes_a_checkpoint_can_be_said(place: Place) -> None:
    with place.open() as service:
        fill(service, 4)
        service.record_decision("W", "go on")
        made = service.recover_workflow("W", checkpoint=True).checkpoint_made
        assert str(made) == "W@5" and len(service.restore_checkpoint("W@5").decisions) == 1
    place.damage_record("W", 5)
    with place.open() as service:
        assert service.recover_workflow("W", checkpoint=False).checkpoint_made is None
        assert service.recover_workflow("W", "point_in_time", 2).checkpoint_made is None
        back = service.recover_workflow("W", "point_in_time", 2, checkpoint=True)
        assert str(back.checkpoint_made) == "W@6" and service.restore_checkpoint("W@6").current_step == 2


def test_a_damaged_keyframe_is_made_anew_and_costs_nothing(place: Place) -> None:
    with place.open() as service:
        fill(service, 40)
    keyframe = place.keyframes("W")[-1]
    assert keyframe > 1
    place.damage_keyframe("W", keyframe)
    with place.open() as service:
        result = service.recover_workflow("W")
        assert result.state is not None and result.state.current_step == 40 and result.passed_over == ()
        assert any(f"W@{keyframe}" in warning for warning in result.warnings)
        assert len(result.quarantined) == 1
        assert service.recover_workflow("W").warnings == (), "the keyframe was made anew"


def test_if_nothing_verifies_what_remains_is_told_or_it_starts_over(place: Place) -> None:
    with place.open() as service:
        fill(service, 3)
        service.record_decision("W", "before the damage")
    place.damage_keyframe("W", 1)
    with place.open() as service:
        with pytest.raises(NoValidCheckpointError, match="none of 3 checkpoints verifies") as refusal:
            service.recover_workflow("W")
        assert "quarantine list" in refusal.value.hint
        assert told(service, AuditType.CHECKPOINT_QUARANTINED), "the evidence is kept before that is said"
    with place.open(on_no_valid="fresh") as service:
        result = service.recover_workflow("W")
        assert result.state is not None and len(result.state.decisions) == 1
        assert any("fresh start" in warning for warning in result.warnings)


def test_no_older_checkpoint_stands_in_where_that_is_forbidden(place: Place) -> None:
    with place.open() as service:
        fill(service, 6)
    place.damage_record("W", 6)
    with place.open(fallback_to_previous=False) as service, pytest.raises(CheckpointCorruptError):
        service.recover_workflow("W")


def test_events_are_replayed_as_far_as_they_verify(place: Place) -> None:
    with place.open() as service:
        fill(service, 1)
        for name in ("one", "two", "three"):
            last = service.record_decision("W", name).seq
    place.damage_event("W", last - 1)
    with place.open() as service:
        result = service.recover_workflow("W")
        assert result.state is not None
        assert [decision["description"] for decision in result.state.decisions] == ["one"]
        assert any(f"as of event {last - 2}" in warning for warning in result.warnings)
        assert result.events_lost == 2


def test_a_damaged_record_whose_keyframe_has_the_state_is_told_and_nobody_is_kept_from_going_on(
    place: Place,
) -> None:
    with place.open() as service:
        fill(service, 5)
        service.prune_checkpoints("W", retain_count=2, retain_days=0)
    place.damage_record("W", 5)
    with place.open() as service:
        assert [one.piece for one in service.plan_recovery("W").damage] == ["record"]
        result = service.recover_workflow("W", checkpoint=False)
        assert result.success and result.state is not None and result.state.current_step == 5
        assert any("record W@5" in warning for warning in result.warnings) and len(result.quarantined) == 1
        assert service.create_checkpoint("W", {"n": 6}).sequence == 6
        newest = service.load_latest("W")
        assert newest is not None and newest.context == {"n": 6}


def test_what_is_recorded_while_events_are_read_is_not_called_lost(
    service: CheckpointService, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reader.opened_events

    def beside_a_writer(reader: Reader, workflow_id: str, after: int = 0) -> Iterator[Event]:
        yield from read(reader, workflow_id, after)
        service.append_event("W", "NOTED")

    service.create_checkpoint("W", {"n": 1})
    service.append_event("W", "NOTED")
    monkeypatch.setattr(Reader, "opened_events", beside_a_writer)
    assert service.plan_recovery("W").warnings == ()


def test_a_store_that_cannot_be_written_is_recovered_from_all_the_same(fast_folder: Path) -> None:
    place = Place("file", fast_folder)
    with place.open() as service:
        fill(service, 6)
    place.damage_record("W", 6)
    with place.open(read_only=True) as service:
        result = service.recover_workflow("W")
        assert result.state is not None and result.state.current_step == 5 and result.quarantined == ()
        assert any("read-only" in warning for warning in result.warnings)


def test_a_plan_tells_everything_and_changes_nothing(place: Place) -> None:
    with place.open() as service:
        fill(service, 6)
        service.create_checkpoint("W", {"n": 7}, resume_handler="go_on")
        service.record_decision("W", "after seven")
    place.damage_record("W", 7)
    with place.open(audit=False) as service:
        before = service._engine.kit.store.head("W")
        plan = service.plan_recovery("W")
        assert service._engine.kit.store.head("W") == before
        assert plan.checkpoint is not None and plan.checkpoint.sequence == 6 and plan.passed_over == (7,)
        assert [one.sequence for one in plan.damage] == [7] and plan.replayed == 1
        assert list(service._engine.kit.store.files("quarantine/")) == []


def test_a_plan_names_the_handler_and_who_has_the_workflow(service: CheckpointService) -> None:
    service.create_checkpoint("W", {"n": 1}, resume_handler="go_on")
    service.acquire_lease("W", "worker-7")
    plan = service.plan_recovery("W")
    assert plan.handler == "go_on" and not plan.is_handler_known
    assert plan.lease is not None and plan.lease.owner == "worker-7"


def test_a_plan_says_why_nothing_would_be_done(service: CheckpointService) -> None:
    service.create_checkpoint("W", {"n": 1}, type="workflow_complete")
    assert "ended with checkpoint 1" in service.plan_recovery("W").refusals[0]


def test_a_recovery_that_takes_too_long_says_so() -> None:
    service = make_service()
    fill(service)
    engine = service._engine
    settings = replace(engine.kit.recovery, timeout_seconds=0.0)
    engine.recovery._kit = replace(engine.kit, recovery=settings)
    with pytest.raises(CheckpointRecoveryError, match="longer than 0 seconds"):
        service.recover_workflow("W")
    assert service.lease_of("W") is None, "the workflow is free again"


def test_where_there_is_nothing_a_fresh_start_is_made_if_configured() -> None:
    service = make_service(on_no_valid="fresh")
    result = service.recover_workflow("W")
    assert result.success and result.state == WorkflowState(workflow_id="W")
    assert "no checkpoint yet" in result.warnings[0]


def test_a_point_in_time_that_does_not_verify_is_never_a_blank_state() -> None:
    service = make_service(on_no_valid="fresh")
    fill(service, 3)
    service._engine.quarantine.put("W", 1, "it looks wrong")
    with pytest.raises(NoValidCheckpointError):
        service.recover_workflow("W", RecoveryMode.POINT_IN_TIME, 1)
    assert service.recover_workflow("W").success


def test_values_of_unknown_types_in_events_cost_those_events_and_no_other() -> None:
    @dataclass
    class Price:
        amount: int

    store, registry = MemoryStore(), TypeRegistry()
    registry.register(Price)
    recording = make_service(store, registry)
    fill(recording, 1)
    recording.append_event("W", "NOBODY_KNOWS", {"price": Price(1)})
    lost = recording.record_decision("W", "buy", data={"price": Price(1)})
    recording.record_decision("W", "go on")
    recording.flush()
    service = make_service(store)
    result = service.recover_workflow("W")
    assert result.state is not None and result.events_replayed == 1
    assert [one["description"] for one in result.state.decisions] == ["go on"]
    assert [one.seq for one in result.skipped] == [lost.seq] and "Price" in result.skipped[0].reason
    assert service.plan_recovery("W").skipped == result.skipped


def test_who_asks_to_resume_is_told_that_there_was_nothing_to_resume_from() -> None:
    service = make_service()
    service.record_decision("W", "go on")
    result = service.resume_workflow("W")
    assert result.handler is None and "nothing was resumed" in result.warnings[-1]


def test_a_crashed_workflow_goes_on_with_the_events_since_its_last_checkpoint() -> None:
    app, seen = App(), list[Any]()
    app.handlers.register("go_on", lambda context: seen.append(context.workflow_state.decisions))
    service = make_service(app=app)
    service.create_checkpoint("W", {"n": 1}, resume_handler="go_on")
    service.record_decision("W", "acknowledged")
    result = service._engine.recovery.resume_crashed("W")
    assert result.success and result.events_replayed == 1
    assert [one["description"] for one in seen[0]] == ["acknowledged"]
    assert result.recovery_time_ms >= sum(step.milliseconds for step in result.steps)


def test_what_must_not_be_resumed_is_given_to_no_handler() -> None:
    app, seen = App(), list[Any]()
    app.handlers.register("go_on", seen.append)
    service = make_service(app=app)
    state = WorkflowState(workflow_id="W", resumable=False)
    service.create_checkpoint("W", state, resume_handler="go_on")
    result = service.resume_workflow("W")
    assert result.state is None and not result.success
    assert result.handler is None and seen == []


def test_a_workflow_whose_checkpoints_were_all_removed_is_not_taken_for_a_new_one() -> None:
    service = make_service()
    fill(service, 2)
    for sequence in (1, 2):
        service.delete(f"W@{sequence}")
    with pytest.raises(NoValidCheckpointError, match="all 2 checkpoints were removed"):
        service.recover_workflow("W")
    assert "were removed" in service.plan_recovery("W").refusals[0]
    fresh = make_service(service._engine.kit.store, on_no_valid="fresh").recover_workflow("W")
    assert fresh.success and "were removed: this is a fresh start" in fresh.warnings[0]


def test_nobody_is_told_to_bring_an_erased_workflow_back() -> None:
    service = make_service()
    fill(service, 2)
    service.erasure.workflow("W", reason="asked for")
    with pytest.raises(NoValidCheckpointError, match="the workflow was erased at 2") as refused:
        service.recover_workflow("W")
    assert "backup" not in refused.value.hint and "--fresh" in refused.value.hint
    assert "was erased" in service.plan_recovery("W").refusals[0]
    fresh = make_service(service._engine.kit.store, on_no_valid="fresh").recover_workflow("W")
    assert fresh.success


def test_without_handlers_a_workflow_is_recovered_at_start_up_once(fast_folder: Path) -> None:
    place = Place("file", fast_folder, {"auto_recovery": True, "stale_seconds": 0})
    with place.open() as service:
        fill(service, 2)
    for _ in range(3):
        with place.open() as service:
            assert len(service.events("W", type=RECOVERED_EVENT)) == 1
            assert [one.is_recovered for one in service.incomplete_workflows()] == [True]
