"""Sessions are opened, closed, handed off and resumed: whatever happens, somebody can go on, and just one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.application.session_files import SessionFiles, Stored
from holdfast.application.sessions.context_watch import ContextWatch, Leaving
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
    StateTooLargeError,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.session_context import Agent
from holdfast.domain.session_record import HandOff, Session, SessionStatus, file_of
from holdfast.domain.state import WorkflowState
from holdfast.domain.trail import decode_entry
from holdfast.testing import FailingStore
from tests import encrypted
from tests.application.services import make_service
from tests.encrypted import StaysOpen
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.conftest import place as place
from tests.recovery.places import Place

Types = list[str]


def trail_of(service: CheckpointService, session_id: str) -> list[Any]:
    service.flush()
    return [decode_entry(line, None) for line in service._engine.kit.store.trail(session_id)]


def types_of(service: CheckpointService, session_id: str) -> Types:
    return [str(entry.type) for entry in trail_of(service, session_id)]


def work(service: CheckpointService, workflow_id: str = "W") -> None:
    """Leave something of everything behind."""
    state = WorkflowState(
        current_step=2,
        total_steps=5,
        context_summary="Read two of five offers.",
        pending_events=[{"event_type": "TASK_COMPLETED", "source": "worker-2", "payload": {"task": 2}}],
        decisions=[{"description": "old", "status": "done"}],
    )
    service.create_checkpoint(workflow_id, state)
    service.record_decision(workflow_id, "ask two researchers", agent_id="planner")
    service.append_event(workflow_id, "MAIL_CAME", {"from": "a vendor"}, agent_id="inbox")


@pytest.fixture
def store() -> Any:
    return StaysOpen(MemoryStore())


@pytest.fixture
def service(store: Any) -> CheckpointService:
    return make_service(store, session="s-1")


@pytest.fixture
def next_service(store: Any) -> CheckpointService:
    """Another process, for all that this one can tell."""
    return make_service(store, session="s-2")


def test_one_call_hands_off_and_one_call_goes_on(service, next_service):
    work(service)
    handed = service.sessions.hand_off()
    assert handed.context.summary == "W: Read two of five offers."
    assert handed.command == "holdfast session resume s-1"
    state = next_service.sessions.resume_session("s-1")
    assert (state.session_id, state.previous_session_id, state.is_handed_off) == ("s-2", "s-1", True)
    assert state.context_summary == handed.context.summary
    assert [one["description"] for one in state.open_decisions] == ["ask two researchers"]
    assert [one["event_type"] for one in state.pending_events] == ["TASK_COMPLETED", "MAIL_CAME"]
    assert {one["workflow_id"] for one in (*state.open_decisions, *state.pending_events)} == {"W"}
    restored = state.state()
    assert (restored.current_step, restored.session_id, restored.checkpoint_id) == (2, "s-2", "W@1")
    assert state.warnings == ()


def test_what_the_new_session_records_is_told_in_its_trail(service, next_service):
    work(service)
    service.sessions.hand_off()
    state = next_service.sessions.resume_session("s-1", "s-3").state("W")
    state.current_step = 3
    next_service.create_checkpoint("W", state)
    assert AuditType.CHECKPOINT_CREATED in types_of(next_service, "s-3")


def test_everything_that_is_given_arrives(service, next_service):
    payload = {
        "due": datetime(2026, 2, 1, tzinfo=UTC),
        "budget": Decimal("1.50"),
        "$hf": "no tag",
        "n": [1, (2,)],
    }
    service.sessions.open_session(agent={"id": "architect", "version": "2.1.0", "family": "ps"})
    service.sessions.hand_off(
        target_agent=Agent("critic", family="ps"), summary="Review it.", payload=payload, context_usage=0.83
    )
    state = next_service.sessions.resume_session("s-1")
    assert state.payload == payload
    assert state.context.source_agent == Agent("architect", "2.1.0", "ps")
    assert state.context.target_agent == Agent("critic", family="ps")
    assert (state.context.summary, state.context.context_usage) == ("Review it.", 0.83)
    assert next_service.sessions.get("s-2").context.source_agent == Agent("critic", family="ps")
    assert next_service.sessions.get("s-2").context.payload == payload


def test_the_trails_name_each_other(service, next_service):
    work(service)
    service.sessions.hand_off()
    service.close()
    last = trail_of(next_service, "s-1")[-1]
    state = next_service.sessions.resume_session("s-1")
    [resumed] = [one for one in trail_of(next_service, "s-2") if one.type == AuditType.SESSION_RESUMED]
    assert (resumed.facts["from"], resumed.facts["from_hash"], resumed.facts["from_seq"]) == (
        "s-1",
        last.hash,
        last.seq,
    )
    assert state.trail_hash == last.hash
    *_, taken, end = trail_of(next_service, "s-1")
    assert (taken.type, taken.facts["by"], end.type) == (
        AuditType.SESSION_RESUMED,
        "s-2",
        AuditType.SESSION_CLOSED,
    )
    assert next_service.audit.verify().fault_count == 0


def test_every_step_is_told_with_the_sum_of_its_record(service, next_service):
    opened = service.sessions.open_session(workflow_ids=["W"])
    handed = service.sessions.hand_off(summary="x", target_agent="critic", context_usage=0.5)
    [begun] = [one for one in trail_of(service, "s-1") if one.type == AuditType.SESSION_STARTED]
    [left] = [one for one in trail_of(service, "s-1") if one.type == AuditType.SESSION_HANDED_OFF]
    assert begun.facts["record"] == opened.checksum
    assert left.facts == {"record": handed.checksum, "workflows": 1, "to": "critic", "context_percent": 50}
    assert (begun.workflow_id, left.workflow_id) == ("W", "W")


def test_the_journal_of_a_workflow_says_that_it_passed_on(service, next_service):
    work(service)
    service.sessions.hand_off(target_agent="critic")
    next_service.sessions.resume_session("s-1")
    left, taken = next_service.events("W")[-2:]
    assert (left.type, left.data) == ("WORKFLOW_HANDED_OFF", {"session_id": "s-1", "target_agent": "critic"})
    assert (taken.type, taken.data) == ("WORKFLOW_TAKEN_OVER", {"session_id": "s-2", "continues": "s-1"})


def test_a_session_that_crashed_is_resumed_and_that_is_said(service, next_service):
    service.sessions.open_session(agent="planner", workflow_ids=["W"])
    work(service)
    state = next_service.sessions.resume_session("s-1")
    assert not state.is_handed_off
    assert "it crashed, or still runs" in state.warnings[0]
    assert state.state("W").current_step == 2
    assert next_service.sessions.get("s-1").continued_by == "s-2"


def test_a_process_that_ended_in_order_did_not_crash(service, next_service):
    work(service)
    service.close()
    assert "ended in order" in next_service.sessions.resume_session("s-1").warnings[0]


def test_a_session_that_nobody_opened_is_resumed_by_its_trail(service, next_service):
    work(service, "V")
    work(service, "W")
    service.flush()
    state = next_service.sessions.resume_session("s-1")
    assert [one.workflow_id for one in state.workflows] == ["V", "W"]
    assert state.context.session_id == "s-1"
    assert "neither handed off nor closed" in state.warnings[0]


def test_what_was_only_looked_at_is_not_passed_on(service, next_service):
    work(next_service, "V")
    service.load_latest("V")
    service.create_checkpoint("W", {})
    assert service.sessions.hand_off().context.workflow_ids == ("W",)


@pytest.mark.parametrize("end", ["hand_off", "close_session"])
def test_a_session_that_ended_is_not_handed_off_again(service, next_service, end):
    service.sessions.open_session()
    getattr(service.sessions, end)()
    for again in (service.sessions.hand_off, service.sessions.close_session):
        with pytest.raises(InvalidStateError, match=r"was (handed off|closed) at 2026") as refusal:
            again()
        assert refusal.value.place == "s-1"
    assert types_of(service, "s-1").count(AuditType.OPERATION_REFUSED) == 2


def test_a_session_that_goes_on_elsewhere_says_where(service, next_service):
    service.sessions.open_session()
    next_service.sessions.resume_session("s-1")
    with pytest.raises(InvalidStateError, match="goes on as 's-2'"):
        service.sessions.hand_off(summary="too late")
    with pytest.raises(CheckpointConflictError, match="'s-2' took over"):
        next_service.sessions.resume_session("s-1", "s-3")


def test_a_closed_session_is_done(service, next_service):
    service.sessions.open_session(workflow_ids=["W"])
    closed = service.sessions.close_session(summary="All done.")
    assert (closed.status, closed.context.summary) == (SessionStatus.CLOSED, "All done.")
    with pytest.raises(InvalidStateError, match="its work is done"):
        next_service.sessions.resume_session("s-1")
    service.close()
    assert types_of(next_service, "s-1") == [AuditType.SESSION_STARTED, AuditType.SESSION_CLOSED]


def test_work_passes_through_many_sessions(store):
    for number in range(1, 6):
        service = make_service(store, session=f"s-{number}")
        if number > 1:
            state = service.sessions.resume_session(f"s-{number - 1}")
            assert state.payload == {"n": number - 1}
            assert [one.workflow_id for one in state.workflows] == ["W"]
        service.create_checkpoint("W", {"n": number})
        service.sessions.hand_off(payload={"n": number})
        service.close()
    sessions = {one.id: one for one in make_service(store).sessions.listing()}
    assert [sessions[f"s-{n}"].continued_by for n in range(1, 6)] == ["s-2", "s-3", "s-4", "s-5", None]


def test_one_process_may_go_on_in_a_new_window(service):
    work(service)
    service.sessions.hand_off(summary="window full")
    state = service.sessions.resume_session("s-1")
    assert state.session_id.startswith("session-") and state.state().session_id == state.session_id
    again = service.sessions.hand_off(state.session_id, summary="full again")
    assert service.sessions.resume_session(again.session_id).context_summary == "full again"


def test_names_are_not_used_twice(service, next_service):
    service.sessions.open_session()
    with pytest.raises(InvalidStateError, match="session of that name"):
        next_service.sessions.open_session("s-1")
    next_service.sessions.open_session("s-9")
    with pytest.raises(InvalidStateError, match="session of that name"):
        next_service.sessions.resume_session("s-1", "s-9")
    assert next_service.sessions.get("s-1").status is SessionStatus.OPEN
    with pytest.raises(InvalidIdError, match="with itself"):
        next_service.sessions.resume_session("s-1", "s-1")


@pytest.mark.parametrize("name", ["resume_session", "hand_off", "close_session", "get"])
def test_what_is_no_session_is_said_to_be_none(service, name):
    with pytest.raises(CheckpointNotFoundError, match="no such session"):
        getattr(service.sessions, name)("s-404")


def test_what_cannot_be_a_name_is_refused(service):
    with pytest.raises(InvalidIdError):
        service.sessions.open_session("a\nb")
    with pytest.raises(InvalidIdError):
        service.sessions.open_session("s-3", workflow_ids=[""])
    with pytest.raises(InvalidIdError):
        service.sessions.open_session("s-3", agent="")


def test_what_is_no_small_file_is_not_handed_over(service):
    service.sessions.open_session()
    with pytest.raises(StateTooLargeError, match="handed over"):
        service.sessions.hand_off(payload={"log": "x" * 2_000_000})
    assert service.sessions.get("s-1").status is SessionStatus.OPEN


def test_a_record_that_the_trail_does_not_confirm_is_not_believed(service, next_service, store):
    work(service)
    service.sessions.hand_off(summary="do this")
    forger = make_service(store, session="s-1", audit=False)
    stored = forger.sessions._files.load("s-1")
    forged = replace(stored.session, context=replace(stored.session.context, summary="do that"))
    _, data = forger.sessions._files._written(forged)
    store.commit([Commit(NO_WORKFLOW, Head(), files={file_of("s-1"): data})])
    with pytest.raises(ChecksumMismatchError, match="its trail tells of"):
        next_service.sessions.resume_session("s-1")
    state = next_service.sessions.resume_session("s-1", skip_validation=True)
    assert state.context_summary == "do that"


def test_sessions_work_where_the_trail_is_switched_off(store):
    service = make_service(store, session="s-1", audit=False)
    service.sessions.open_session(workflow_ids=["W"])
    work(service)
    service.sessions.hand_off()
    state = make_service(store, session="s-2", audit=False).sessions.resume_session("s-1")
    assert state.state("W").current_step == 2


def test_a_workflow_that_ended_is_passed_on_without_a_word_in_its_journal(service, next_service):
    service.create_checkpoint("W", {}, type=CheckpointType.WORKFLOW_COMPLETE)
    count = len(service.events("W"))
    service.sessions.hand_off()
    [one] = next_service.sessions.resume_session("s-1").workflows
    assert one.has_ended
    assert len(next_service.events("W")) == count


def test_a_lease_of_another_is_told_and_stops_nobody(service, next_service):
    work(service)
    service.acquire_lease("W", "worker-1", ttl_seconds=3600)
    assert service.sessions.hand_off().warnings == ()
    state = next_service.sessions.resume_session("s-1")
    [warning] = state.warnings
    assert "W was not told" in warning and "'worker-1'" in warning
    assert state.state("W").current_step == 2


def test_a_damaged_workflow_is_passed_on_with_what_is_left(place: Place):
    with place.open(session="s-1") as service:
        for number in range(1, 4):
            service.create_checkpoint("W", {"n": number})
        service.sessions.hand_off(summary="go on")
    place.damage_record("W", 3)
    with place.open(session="s-2") as service:
        state = service.sessions.resume_session("s-1")
    assert state.context_summary == "go on"
    assert state.state("W").context == {"n": 2}
    assert any("W@3" in warning for warning in state.warnings)


def test_every_store_passes_sessions_on(place: Place):
    with place.open(session="s-1") as service:
        service.sessions.open_session(agent="planner")
        work(service)
        service.sessions.hand_off(target_agent="critic", summary="Half done.", payload={"n": 1})
    with place.open(session="S 2: \u00e9/..") as service:
        state = service.sessions.resume_session("s-1")
        assert (state.session_id, state.payload, state.state().current_step) == (
            "S 2: \u00e9/..",
            {"n": 1},
            2,
        )
    with place.open(session="s-3", read_only=True) as service:
        listed = {one.id: one.status for one in service.sessions.listing()}
    assert listed == {"s-1": SessionStatus.RESUMED, "S 2: \u00e9/..": SessionStatus.OPEN}


def race(count: int, attempt: Callable[[int], str]) -> list[str]:
    """Start threads together; answer how each ended."""
    barrier, ends = threading.Barrier(count), [""] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            ends[number] = attempt(number)
        except CheckpointConflictError:
            ends[number] = "lost"

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_of_several_who_resume_at_once_one_wins(place: Place):
    with place.open(session="s-1") as service:
        work(service)
        service.sessions.hand_off()
        sessions = service.sessions
        ends = race(6, lambda number: sessions.resume_session("s-1", f"next-{number}").session_id)
        [winner] = [end for end in ends if end != "lost"]
        assert sessions.get("s-1").continued_by == winner
        assert {one.id for one in sessions.listing()} == {"s-1", winner}


def test_a_hand_off_and_a_resume_at_once_leave_one_successor(store):
    for number in range(10):
        service = make_service(store, session=f"a-{number}")
        service.sessions.open_session(workflow_ids=["W"])
        other = make_service(store, session=f"b-{number}")
        old = f"a-{number}"

        def attempt(which: int, service=service, other=other, old=old) -> str:
            try:
                return (
                    other.sessions.resume_session(old).session_id
                    if which
                    else service.sessions.hand_off().session_id
                )
            except InvalidStateError:
                return "told"

        handed, resumed = race(2, attempt)
        found = service.sessions.get(old)
        if resumed == "lost":
            resumed = other.sessions.resume_session(old).session_id
            found = service.sessions.get(old)
        assert handed in (old, "told")
        assert (found.status, found.continued_by) == (SessionStatus.RESUMED, resumed)


def test_nothing_of_a_hand_off_lies_open_in_an_encrypted_store():
    store = encrypted.encrypted_store()
    with encrypted.service(store, session="s-1") as service:
        work(service)
        service.sessions.hand_off(summary=f"about {encrypted.MARKER}", payload={"who": encrypted.MARKER})
        assert encrypted.MARKER not in repr(store.file(file_of("s-1")))
    with encrypted.service(store, session="s-2") as service:
        assert service.sessions.resume_session("s-1").payload == {"who": encrypted.MARKER}


def test_secrets_are_hidden_in_what_is_handed_over(service, next_service, store):
    secret = "AKIAIOSFODNN7EXAMPLE"
    service.sessions.hand_off(summary=f"use {secret}", payload={"password": "correct horse"})
    stored = store.file(file_of("s-1"))
    assert secret.encode() not in stored and b"correct horse" not in stored
    with pytest.raises(InvalidIdError, match="looks like a secret"):
        next_service.sessions.open_session(agent=secret)


def test_erasing_a_workflow_takes_what_was_handed_over_with_it(service, next_service, store):
    work(service)
    service.sessions.hand_off(summary="about Ann", payload={"name": "Ann"})
    next_service.erasure.workflow("W", reason="request 3")
    assert b"Ann" not in store.file(file_of("s-1"))
    state = next_service.sessions.resume_session("s-1")
    assert (state.context_summary, state.payload) == ("", {})


def test_erasing_takes_it_in_an_encrypted_store_too():
    store = encrypted.encrypted_store()
    with encrypted.service(store, session="s-1") as service:
        work(service)
        service.sessions.hand_off(summary="about Ann")
    with encrypted.service(store, session="s-2") as service:
        service.erasure.workflow("W", reason="request 3")
        assert service.sessions.get("s-1").context.summary == ""


def test_a_window_that_fills_hands_off_by_itself(service, next_service):
    told: list[HandOff] = []
    left = Leaving("Half done.", {"next": "offer 3"}, "critic")
    watch = ContextWatch(0.75, lambda session, used: left, told.append)
    service.sessions.open_session(workflow_ids=["W"], watch=watch)
    assert service.sessions.report_context_usage("s-1", 0.2) is None
    assert service.sessions.report_context_usage("s-1", 0.74) is None
    assert types_of(service, "s-1") == [AuditType.SESSION_STARTED]
    handed = service.sessions.report_context_usage("s-1", 0.75)
    assert handed is not None and told == [handed]
    state = next_service.sessions.resume_session("s-1")
    assert (state.context_summary, state.payload, state.context.context_usage) == (
        "Half done.",
        {"next": "offer 3"},
        0.75,
    )
    with pytest.raises(InvalidStateError, match="goes on as"):
        service.sessions.report_context_usage("s-1", 0.9)


def test_without_a_watch_a_window_hands_off_at_eighty_percent(service):
    work(service)
    assert service.sessions.report_context_usage(None, 0.79) is None
    handed = service.sessions.report_context_usage(None, 0.8)
    assert handed is not None and handed.context.summary == "W: Read two of five offers."
    with pytest.raises(InvalidStateError, match="from 0 to 1"):
        service.sessions.report_context_usage(None, 80)


def test_a_watch_may_be_set_later_and_a_threshold_named(service):
    service.sessions.watch_context(watch=ContextWatch(0.5, lambda session, used: "short"))
    assert service.sessions.report_context_usage(None, 0.6, threshold=0.7) is None
    handed = service.sessions.report_context_usage(None, 0.6)
    assert handed is not None and handed.context.summary == "short"


def test_a_summary_that_fails_hands_nothing_off(service):
    def fails(session: str, used: float) -> str:
        raise RuntimeError("the model is gone")

    service.sessions.open_session(watch=ContextWatch(summarize=fails))
    with pytest.raises(RuntimeError):
        service.sessions.report_context_usage(None, 0.9)
    assert service.sessions.get("s-1").status is SessionStatus.OPEN
    service.sessions.watch_context(watch=ContextWatch())
    assert service.sessions.report_context_usage(None, 0.9) is not None


def test_a_person_gets_what_was_handed_over_about_them_alone(service, next_service, tmp_path):
    for name in ("W", "V"):
        service.create_checkpoint(name, {})
    service.subjects.declare("W", "ann")
    service.sessions.open_session("about-ann", workflow_ids=["W"])
    service.sessions.hand_off("about-ann", summary="Ann wants a refund.")
    service.sessions.open_session("about-both", workflow_ids=["W", "V"])
    service.sessions.hand_off("about-both", summary="Ann and Bob.")
    service.subject_export.write("ann", tmp_path / "ann")
    [given] = (tmp_path / "ann" / "sessions").iterdir()
    assert given.name == "about-ann.json" and "refund" in given.read_text()


def test_whoever_fails_to_take_over_may_try_again():
    store = FailingStore()
    service = make_service(store, session="s-1")
    work(service)
    store.fail("commit")
    with pytest.raises(CheckpointWriteError):
        service.sessions.hand_off()
    service.sessions.hand_off()
    other = make_service(store, session="s-2")
    store.fail("commit")
    with pytest.raises(CheckpointWriteError):
        other.sessions.resume_session("s-1")
    assert other.sessions.get("s-1").status is SessionStatus.HANDED_OFF
    assert other.sessions.resume_session("s-1").state("W").current_step == 2


def test_a_summary_is_that_of_the_newest_states_or_what_was_given(service, next_service):
    service.create_checkpoint("W", {})
    service.sessions.hand_off(summary="Begun.", payload={"n": 1})
    state = next_service.sessions.resume_session("s-1", "s-3").state("W")
    again = next_service.sessions.hand_off("s-3")
    assert (again.context.summary, again.context.payload) == ("Begun.", {"n": 1})
    next_service.sessions.resume_session("s-3", "s-4")
    state.context_summary = "Read all."
    next_service.create_checkpoint("W", state)
    assert next_service.sessions.hand_off("s-4").context.summary == "W: Read all."


#: Who does not compare still writes one after the other.
CARELESS = threading.Lock()


class Rushed(SessionFiles):
    """Lets nobody commit before everybody has looked."""

    def __init__(self, files: SessionFiles, looked: threading.Barrier, *, is_careless: bool) -> None:
        assert files._trail is not None
        super().__init__(files._kit, files._trail)
        self._looked, self._is_careless = looked, is_careless

    def confirmed(self, session_id: str) -> Stored:
        stored = super().confirmed(session_id)
        self._looked.wait()
        return stored

    def commit(self, type: AuditType, changes: Any, **facts: int | str) -> list[Session]:
        if not self._is_careless:
            return super().commit(type, changes, **facts)
        with CARELESS:
            now = [(session, self._kit.store.file(file_of(session.id))) for session, _ in changes]
            return super().commit(type, now, **facts)


@pytest.mark.parametrize(("is_careless", "winners"), [(False, 1), (True, 2)], ids=["compared", "control"])
def test_who_looked_before_another_took_over_is_refused(service, store, is_careless, winners):
    work(service)
    service.sessions.hand_off()
    looked = threading.Barrier(2)
    others = [make_service(store, session=f"next-{number}") for number in range(2)]
    for other in others:
        other.sessions._files = Rushed(other.sessions._files, looked, is_careless=is_careless)
    ends = race(2, lambda number: others[number].sessions.resume_session("s-1").session_id)
    assert sum(end != "lost" for end in ends) == winners
