"""Everything that is done with a store is told in its trail, and nothing is told that was not done."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application import trailing, writer
from holdfast.application.service import CheckpointService
from holdfast.application.trailing import correlate
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    InvalidIdError,
    LeaseHeldError,
    StateTooLargeError,
    StoreReadOnlyError,
    UnsupportedTypeError,
)
from holdfast.domain.payload import decode_payload
from holdfast.domain.record import Commit
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import verify_session
from holdfast.ports import Store
from holdfast.testing import FailingStore


def serve(store: Store, *, background: bool = False, **settings) -> CheckpointService:
    """Open a service whose noted entries wait for the next commit or the end."""
    config = Config(session="s-1", actor="ann", background=background, **settings)
    return CheckpointService(build_kit(store, config))


def entries(store: Store, session_id: str = "s-1") -> list[AuditEntry]:
    return [decode_entry(line, None) for line in store.trail(session_id)]


def told(store: Store, session_id: str = "s-1") -> list[str]:
    return [entry.type for entry in entries(store, session_id)]


@pytest.fixture
def store() -> MemoryStore:
    # Closing a service would close it: these are read afterwards.
    class Lasting(MemoryStore):
        def close(self) -> None:
            pass

    return Lasting()


def test_every_change_is_told_in_its_own_commit(store: MemoryStore) -> None:
    spy = FailingStore(store)
    service = serve(spy, redact=False)
    service.create_checkpoint("W", {"n": 1}, agent_id="planner", stage_id="plan")
    service.append_event("W", "TASK_ASSIGNED", {"task": "T1"}, agent_id="planner", step_id="step-1")
    service.append_event("W", "WEATHER", {"rain": True})
    service.record_decision("W", "ship it", rationale="tests pass", confidence=0.9, agent_id="judge")
    service.fork_workflow("W@1", "V")
    assert spy.calls["commit"] == 5
    lease = service.acquire_lease("W", "ann")
    service.release_lease(lease)
    assert spy.calls["commit"] == 5
    assert told(store) == [
        AuditType.SESSION_STARTED,
        AuditType.CHECKPOINT_CREATED,
        AuditType.TASK_ASSIGNED,
        AuditType.EVENT_RECORDED,
        AuditType.AGENT_DECISION,
        AuditType.WORKFLOW_FORKED,
        AuditType.LEASE_ACQUIRED,
        AuditType.LEASE_RELEASED,
    ]


def test_an_entry_says_who_did_what_to_what_and_proves_it(store: MemoryStore) -> None:
    service = serve(store)
    made = service.create_checkpoint("W", {"n": 1}, agent_id="planner", stage_id="plan")
    event = service.record_decision("W", "ship it", rationale="tests pass", data={"alternatives": ["wait"]})
    _, created, decided = entries(store)
    assert (created.actor, created.workflow_id, created.agent) == ("ann", "W", "planner")
    assert created.facts == {"cp_seq": 1, "checksum": made.checksum}
    assert created.outcome == Outcome.SUCCESS
    assert decided.facts == {"event_seq": event.seq, "event_hash": event.hash}
    stored = store.payload("s-1", decided.seq)
    assert stored is not None
    payload = decode_payload(stored, decided.payload)
    assert payload == {"description": "ship it", "rationale": "tests pass", "alternatives": ["wait"]}


def test_an_entry_belongs_to_the_session_that_was_named(store: MemoryStore) -> None:
    service = serve(store)
    service.create_checkpoint("W", {"n": 1}, session_id="s-2")
    assert told(store, "s-2") == [AuditType.SESSION_STARTED, AuditType.CHECKPOINT_CREATED]
    service.close()
    assert list(store.sessions()) == ["s-2"]


def test_pruning_and_deleting_are_told_with_what_went(store: MemoryStore) -> None:
    service = serve(store, retain=False)
    for n in range(6):
        service.create_checkpoint("W", {"n": n})
    service.prune_checkpoints("W", retain_count=2, retain_days=0)
    service.delete("W@6")
    pruned, deleted = [entry for entry in entries(store) if entry.type == AuditType.CHECKPOINTS_PRUNED]
    assert (pruned.facts["checkpoints"], pruned.facts["first"]) == (4, 1)
    assert (deleted.facts["checkpoints"], deleted.facts["first"]) == (1, 6)


def test_a_repeated_state_is_no_change_and_is_not_told(store: MemoryStore) -> None:
    service = serve(store)
    service.create_checkpoint("W", {"n": 1})
    service.create_checkpoint("W", {"n": 1})
    assert told(store).count(AuditType.CHECKPOINT_CREATED) == 1


def test_reads_are_noted_and_go_with_the_next_commit(store: MemoryStore) -> None:
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    service.append_event("W", "STEP")
    before = spy.calls["commit"]
    service.load_latest("W")
    service.get_by_id("W@1")
    service.events("W")
    service.diff_checkpoints("W@1", "W@1")
    service.validate_checkpoint("W@1")
    assert spy.calls["commit"] == before
    service.create_checkpoint("W", {"n": 2})
    assert spy.calls["commit"] == before + 1
    assert told(store)[3:] == [
        AuditType.STATE_RESTORED,
        AuditType.STATE_READ,
        AuditType.EVENTS_READ,
        AuditType.STATE_READ,
        AuditType.STATE_READ,
        AuditType.CHECKPOINT_VALIDATED,
        AuditType.CHECKPOINT_CREATED,
    ]


def test_noted_entries_come_by_themselves_after_a_while(store: MemoryStore) -> None:
    arrived = threading.Event()

    class Telling(FailingStore):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            outcomes = super().commit(commits)
            if any(entry.type == AuditType.STATE_RESTORED for commit in commits for entry in commit.audit):
                arrived.set()
            return outcomes

    service = CheckpointService(build_kit(Telling(store), Config(session="s-1")))
    service.create_checkpoint("W", {"n": 1})
    service.load_latest("W")
    assert arrived.wait(60)
    service.close()


def test_many_reads_do_not_pile_up(store: MemoryStore) -> None:
    service = serve(store)
    service.create_checkpoint("W", {"n": 1})
    for _ in range(300):
        service.load_latest("W")
    service._engine.queue.flush()
    assert told(store).count(AuditType.STATE_RESTORED) == 256
    service.flush()
    assert told(store).count(AuditType.STATE_RESTORED) == 300


def test_refusals_are_noted_with_their_reason(store: MemoryStore) -> None:
    service, other = serve(store, limit_bytes=4000), CheckpointService(build_kit(store, Config()))
    service.create_checkpoint("W", {"n": 1})
    with pytest.raises(StateTooLargeError):
        service.create_checkpoint("W", {"n": "x" * 5000})
    with pytest.raises(CheckpointConflictError):
        service.create_checkpoint("W", {"n": 2}, expected_sequence=7)
    other.acquire_lease("W", "bob")
    with pytest.raises(LeaseHeldError):
        service.acquire_lease("W", "ann")
    with pytest.raises(LeaseHeldError):
        service.create_checkpoint("W", {"n": 3})
    service.flush()
    refused = [entry for entry in entries(store) if entry.type == AuditType.OPERATION_REFUSED]
    codes = [entry.facts["code"] for entry in refused]
    assert codes == ["state_too_large", "checkpoint_conflict", "lease_held", "lease_held"]
    assert {(entry.outcome, entry.workflow_id) for entry in refused} == {(Outcome.REFUSED, "W")}


def test_a_refusal_repeats_no_secret_of_the_caller(store: MemoryStore) -> None:
    secret = "sk-proj-" + "Ab1" * 14
    with pytest.raises(UnsupportedTypeError) as refused:
        serve(store).create_checkpoint("W", {secret: object()})
    assert secret not in f"{refused.value} {refused.value.place}"


def test_what_fails_leaves_no_entry(store: MemoryStore) -> None:
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    spy.fail("commit")
    with pytest.raises(CheckpointWriteError):
        service.create_checkpoint("W", {"n": 2})
    service.create_checkpoint("W", {"n": 3})
    assert told(store).count(AuditType.CHECKPOINT_CREATED) == 2
    assert verify_session(store.trail("s-1"), "s-1").is_sound


def test_closing_ends_the_session_and_says_where(store: MemoryStore) -> None:
    service = serve(store)
    service.create_checkpoint("W", {"n": 1})
    service.close()
    assert told(store)[-1] == AuditType.SESSION_CLOSED
    assert store.trail_head("s-1").closed
    again = serve(store)
    again.load_latest("W")
    again.close()
    assert told(store)[3:] == [
        AuditType.SESSION_STARTED,
        AuditType.STATE_RESTORED,
        AuditType.SESSION_CLOSED,
    ]
    assert verify_session(store.trail("s-1"), "s-1").is_sound


def test_a_session_that_others_share_is_not_ended(store: MemoryStore) -> None:
    service = serve(store, end_session=False)
    service.create_checkpoint("W", {"n": 1})
    service.close()
    assert told(store) == [AuditType.SESSION_STARTED, AuditType.CHECKPOINT_CREATED]


def test_a_session_in_which_nothing_happened_leaves_no_trail(store: MemoryStore) -> None:
    serve(store).close()
    assert list(store.sessions()) == []


def test_the_end_that_cannot_be_written_is_told(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    spy.fail("commit")
    with caplog.at_level(logging.WARNING, "holdfast"):
        service.close()
    assert "the end of session s-1 is not in the trail" in caplog.text


def test_reads_that_cannot_be_written_are_told(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    service.load_latest("W")
    spy.fail("commit")
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(CheckpointWriteError):
        service.append_event("W", "STEP")
    assert "1 audit entries wait" in caplog.text
    assert AuditType.STATE_RESTORED not in told(store)
    service.append_event("W", "STEP")
    assert told(store)[-2:] == [AuditType.STATE_RESTORED, AuditType.EVENT_RECORDED]


def test_reads_that_a_flush_cannot_write_wait_for_the_next(store: MemoryStore) -> None:
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    service.load_latest("W")
    spy.fail("commit")
    with pytest.raises(CheckpointWriteError):
        service.flush()
    service.flush()
    assert told(store)[-1] == AuditType.STATE_RESTORED


def test_entries_that_wait_for_ever_are_given_up_at_last(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trailing, "_KEPT_MAX", 3)
    spy = FailingStore(store)
    service = serve(spy)
    service.create_checkpoint("W", {"n": 1})
    for _ in range(5):
        service.load_latest("W")
    spy.fail("commit")
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(CheckpointWriteError):
        service.flush()
    assert "2 audit entries are lost" in caplog.text


def test_odd_names_never_keep_an_event_from_being_recorded(store: MemoryStore) -> None:
    service = serve(store)
    service.append_event("W", "x" * 600, step_id="", agent_id="")
    service.append_event("W", "STEP", step_id="s" * 600, agent_id="a" * 600)
    first, second = entries(store)[1:]
    assert (first.correlation_id, first.agent) == (None, None)
    assert (len(second.correlation_id or ""), len(second.agent or "")) == (512, 512)


class ReadOnly(FailingStore):
    read_only = True


def test_a_read_of_a_store_that_cannot_be_written_warns_once(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    serve(store).create_checkpoint("W", {"n": 1})
    service = serve(ReadOnly(store))
    with caplog.at_level(logging.WARNING, "holdfast"):
        assert service.load_latest("W") is not None
        assert service.load_latest("W") is not None
    assert [record.message for record in caplog.records] == [
        "the store is read-only: reads of it are not in its trail"
    ]


def test_a_strict_trail_refuses_reads_that_it_cannot_tell(store: MemoryStore) -> None:
    serve(store).create_checkpoint("W", {"n": 1})
    service = serve(ReadOnly(store), strict_audit=True)
    with pytest.raises(StoreReadOnlyError, match="the trail is strict"):
        service.load_latest("W")


def test_a_trail_can_be_switched_off(store: MemoryStore) -> None:
    service = serve(store, audit=False)
    service.create_checkpoint("W", {"n": 1})
    service.load_latest("W")
    service.close()
    assert list(store.sessions()) == []


def test_what_is_recorded_is_durable_at_once(store: MemoryStore) -> None:
    service = serve(store)
    trail = service._engine.trail
    trail.record(*trail.told("APPROVED_BY_HAND", payload={"why": "looked at it"}))
    trail.record()
    assert told(store) == [AuditType.SESSION_STARTED, "APPROVED_BY_HAND"]


def test_a_note_after_the_end_is_told(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    service = serve(store)
    service.close()
    trail = service._engine.trail
    with caplog.at_level(logging.WARNING, "holdfast"):
        for _ in range(256):
            trail.note(*trail.told(AuditType.STATE_READ))
    assert "256 audit entries came after the end" in caplog.text
    service.close()


def test_entries_of_one_kit_carry_its_actor(store: MemoryStore) -> None:
    kit = replace(build_kit(store, Config(session="s-1")), actor="svc-7", background=False)
    CheckpointService(kit).create_checkpoint("W", {"n": 1})
    assert {entry.actor for entry in entries(store)} == {"svc-7"}


def test_what_belongs_together_can_be_tied_together(store: MemoryStore) -> None:
    service = serve(store)
    with correlate("request-7"):
        service.create_checkpoint("W", {"n": 1})
        service.append_event("W", "STEP", step_id="step-1")
    service.append_event("W", "STEP", step_id="step-2")
    service.append_event("W", "STEP")
    assert [entry.correlation_id for entry in entries(store)[1:]] == [
        "request-7",
        "request-7",
        "step-2",
        None,
    ]
    with pytest.raises(InvalidIdError), correlate(""):
        pass


def test_a_session_that_is_named_by_a_secret_is_refused(store: MemoryStore) -> None:
    config = Config(session="password=hunter2horse", background=False)
    service = CheckpointService(build_kit(store, config))
    with pytest.raises(InvalidIdError) as refusal:
        service.create_checkpoint("W", {"n": 1})
    assert "hunter2horse" not in str(refusal.value)
    service.close()
    assert not any(b"hunter2horse" in line for line in store.leaves())


def test_what_a_timer_has_taken_is_not_lost_by_closing(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = serve(store, background=True)
    service.create_checkpoint("W", {"n": 1})
    trail = service._engine.trail
    taken, go, take = threading.Event(), threading.Event(), trail._take

    def slow() -> tuple[AuditEntry, ...]:
        entries = take()
        if isinstance(threading.current_thread(), threading.Timer):
            taken.set()
            go.wait()
        return entries

    monkeypatch.setattr(trail, "_take", slow)
    service.load_latest("W")
    taken.wait()
    closing = threading.Thread(target=service.close)
    closing.start()
    # Long enough to close, were it not for what is on its way.
    closing.join(0.5)
    go.set()
    closing.join()
    assert AuditType.STATE_RESTORED in told(store)


def test_what_is_remembered_of_names_is_bounded_and_lets_no_secret_through(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trailing, "_HARMLESS_MAX", 3)
    monkeypatch.setattr(writer, "_CHECKED_MAX", 3)
    secret = "sk-proj-" + "Ab1" * 14
    with serve(store) as service:
        for number in range(10):
            for _ in range(2):
                service.create_checkpoint(f"a workflow of many words {number}", {"n": number}, force=True)
        engine = service._engine
        assert len(engine.writer._checked) <= 3 and len(engine.trail._harmless) <= 3
        for _ in range(2):
            with pytest.raises(InvalidIdError, match="looks like a secret"):
                service.create_checkpoint("w", {}, agent_id=secret)
            service._engine.trail.record(*engine.trail.told("SEEN", agent=secret, facts={"by": secret}))
    assert len(told(store)) > 20 and not any(secret.encode() in line for line in store.trail("s-1"))
