"""The thread that begins with the first fault: it makes room, waits, tries again, and ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
)
from holdfast.domain.ladder import Climb, Mode
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.retry import RetryPolicy
from holdfast.domain.unwritten import Unwritten
from tests.application.shelters import Gated, gated_kit, waiter

WAIT_SECONDS = 20


def ladder_threads(before=()):
    """Find those that were not there before: what other tests have left may end at any moment."""
    threads = [thread for thread in threading.enumerate() if thread.name == "holdfast-ladder"]
    return [thread for thread in threads if thread not in before]


def test_there_is_no_thread_before_the_first_fault_and_none_after_the_end():
    before = ladder_threads()
    gate = Gated(gated_kit())
    gate.service.create_checkpoint("WF", {"n": 1})
    assert ladder_threads(before) == []
    gate.gate.takes = "nothing"
    gate.service.create_checkpoint("WF", {"n": 2})
    assert len(ladder_threads(before)) == 1
    gate.gate.takes = "everything"
    gate.service.close()
    gate.service.close()
    assert ladder_threads(before) == []


def test_the_store_is_tried_again_by_itself_after_a_pause():
    gate = Gated(gated_kit(climb=Climb(2, 0.01, 0.02)))
    told, put = waiter()
    gate.service.on_mode_change(put)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes = "nothing"
    gate.service.append_event("WF", "TICK")
    assert told.get(timeout=WAIT_SECONDS).after is Mode.MEMORY_ONLY
    gate.gate.takes = "everything"
    assert told.get(timeout=WAIT_SECONDS).after is Mode.EVENT_ONLY
    assert told.get(timeout=WAIT_SECONDS).after is Mode.FULL
    assert len(gate.service.events("WF", type="TICK")) == 1
    gate.service.close()


@pytest.mark.parametrize("degrade", [True, False])
def test_what_passes_by_itself_is_tried_again_before_anybody_is_told(degrade):
    kit = gated_kit(degrade=degrade)
    retry = RetryPolicy(base_delay_ms=1, max_delay_ms=1)
    kit = replace(kit, faults=replace(kit.faults, retry=retry), retention=RetentionPolicy())
    gate = Gated(kit)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.fail("commit", AtomicRenameFailedError("busy"), times=2)
    made = gate.service.create_checkpoint("WF", {"n": 2})
    assert (made.sequence, made.durable, made.mode) == (2, True, Mode.FULL)
    assert gate.steps == []
    gate.service.close()


def test_without_degrading_the_last_try_decides_and_the_error_is_the_callers():
    kit = gated_kit(degrade=False)
    retry = RetryPolicy(base_delay_ms=1, max_delay_ms=1)
    kit = replace(kit, faults=replace(kit.faults, retry=retry), retention=RetentionPolicy())
    gate = Gated(kit)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes, gate.gate.error = "nothing", lambda: AtomicRenameFailedError("busy")
    future = gate.service.create_checkpoint("WF", {"n": 2}, wait=False)
    with pytest.raises(AtomicRenameFailedError):
        future.result(timeout=WAIT_SECONDS)
    with pytest.raises(AtomicRenameFailedError):
        gate.service.create_checkpoint("WF", {"n": 3})
    gate.gate.takes = "everything"
    with pytest.raises(CheckpointWriteError):
        gate.service.flush()
    assert gate.service.create_checkpoint("WF", {"n": 4}).sequence == 2
    gate.service.close()


@pytest.mark.parametrize("degrade", [True, False])
def test_pruning_that_gives_room_is_all_that_happens(degrade):
    kit = replace(gated_kit(degrade=degrade), retention=RetentionPolicy(2, 0))
    gate = Gated(kit)
    for n in range(60):
        gate.service.create_checkpoint("OLD", {"n": n, "noise": [f"{n}-{i}" * 100 for i in range(50)]})
    gate.service.flush()
    held = len([meta for meta in gate.service.list_checkpoints("OLD") if not meta.pruned])
    gate.gate.fail("commit", DiskFullError("no space left"))
    made = gate.service.create_checkpoint("WF", {"n": 1})
    assert made.durable and gate.steps == []
    assert len([meta for meta in gate.service.list_checkpoints("OLD") if not meta.pruned]) <= held
    gate.service.close()


def test_a_listener_may_record_something_while_the_store_fails_again():
    gate = Gated(gated_kit(climb=Climb(1, 0.01, 0.02)))
    told, put = waiter()

    def listen(step):
        if step.after is Mode.FULL and gate.gate.takes == "everything":
            gate.gate.takes, gate.gate.error = "nothing", lambda: DiskFullError("no space left")
            put(gate.service.append_event("WF", "SEEN"))

    gate.service.on_mode_change(listen)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes, gate.gate.error = "nothing", lambda: PermissionDeniedError("revoked")
    gate.service.append_event("WF", "TICK")
    gate.gate.takes = "everything"
    assert not told.get(timeout=WAIT_SECONDS).durable
    gate.gate.takes = "everything"
    gate.service.close()


def test_a_listener_that_ends_its_thread_does_not_end_the_ladder():
    gate = Gated(gated_kit(climb=Climb(1, 0.01, 0.02)))
    told, put = waiter()

    def leave(step):
        put(step)
        raise SystemExit

    gate.service.on_mode_change(leave)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes = "nothing"
    gate.service.append_event("WF", "TICK")
    gate.gate.takes = "everything"
    while told.get(timeout=WAIT_SECONDS).after is not Mode.FULL:
        pass
    assert len(gate.service.events("WF", type="TICK")) == 1
    gate.service.close()


def test_where_no_thread_can_be_started_the_caller_does_what_it_would(monkeypatch):
    gate = Gated(gated_kit())
    gate.service.create_checkpoint("WF", {"n": 1})

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    gate.gate.takes, gate.gate.error = "nothing", lambda: DiskFullError("no space left")
    assert not gate.service.append_event("WF", "TICK").durable
    monkeypatch.undo()
    gate.gate.takes = "everything"
    gate.service.close()
    assert gate.service.health().is_durable and gate.service.health().counters["written"] == 1


def test_without_degrading_a_service_that_is_closed_meanwhile_still_raises(monkeypatch):
    gate = Gated(replace(gated_kit(degrade=False), retention=RetentionPolicy()))
    gate.service.create_checkpoint("WF", {"n": 1})
    attendant = gate.service._engine.safety._attendant
    # The thread finds the end before it finds the fault.
    monkeypatch.setattr(attendant, "_attend", lambda: attendant._ending.wait(WAIT_SECONDS))
    gate.gate.takes, gate.gate.error = "nothing", lambda: AtomicRenameFailedError("busy")
    future = gate.service.create_checkpoint("WF", {"n": 2}, wait=False)
    gate.service.close()
    with pytest.raises(AtomicRenameFailedError):
        future.result(timeout=WAIT_SECONDS)


def test_a_listener_that_is_told_at_the_end_may_record_something_too():
    gate = Gated(gated_kit())
    receipts = []

    def listen(step):
        if step.after is Mode.FULL:
            gate.gate.takes, gate.gate.error = "nothing", lambda: DiskFullError("no space left")
            receipts.append(gate.service.append_event("WF", "SEEN"))

    gate.service.on_mode_change(listen)
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes, gate.gate.error = "events", lambda: PermissionDeniedError("revoked")
    gate.service.create_checkpoint("WF", {"n": 2})
    gate.gate.takes = "everything"
    gate.service.close()
    assert [receipt.durable for receipt in receipts] == [False]


def test_the_end_of_one_relief_does_not_end_the_next(monkeypatch):
    kit = replace(gated_kit(degrade=False), retention=RetentionPolicy())
    gate = Gated(replace(kit, faults=replace(kit.faults, retry=RetryPolicy(base_delay_ms=1))))
    gate.service.create_checkpoint("WF", {"n": 1})
    attendant = gate.service._engine.safety._attendant
    release, futures = attendant._release, list[Any]()

    def fail_again_first(*begun):
        if not futures:
            gate.gate.takes, gate.gate.error = "nothing", lambda: AtomicRenameFailedError("busy")
            futures.append(gate.service.create_checkpoint("WF", {"n": 3}, wait=False))
            gate.service._engine.queue.flush()
        release(*begun)

    monkeypatch.setattr(attendant, "_release", fail_again_first)
    gate.gate.fail("commit", AtomicRenameFailedError("busy"))
    first = gate.service.create_checkpoint("WF", {"n": 2}, wait=False)
    assert first.result(timeout=WAIT_SECONDS).durable
    with pytest.raises(AtomicRenameFailedError):
        futures[0].result(timeout=WAIT_SECONDS)
    gate.gate.takes = "everything"
    gate.service.close()


def test_without_degrading_what_comes_with_the_last_try_raises_too(monkeypatch):
    gate = Gated(replace(gated_kit(degrade=False), retention=RetentionPolicy()))
    gate.service.create_checkpoint("WF", {"n": 1})
    engine = gate.service._engine
    attendant = engine.safety._attendant
    probe, company = attendant.probe, []

    def probe_in_company():
        company.append(engine.writer.append(AppendEvent("OTHER", "TICK")))
        probe()

    monkeypatch.setattr(attendant, "probe", probe_in_company)
    gate.gate.takes = "nothing"
    with pytest.raises(DiskFullError):
        gate.service.create_checkpoint("WF", {"n": 2})
    with pytest.raises(DiskFullError):
        engine.wait(company[0])
    monkeypatch.undo()
    gate.gate.takes = "everything"
    gate.service.close()


def held_gate(**more: Any) -> Gated:
    """A service with one commit of WF that waits, and two of OTHER."""
    gate = Gated(gated_kit(**more))
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes = "nothing"
    for workflow_id in ("WF", "OTHER", "OTHER"):
        gate.service.append_event(workflow_id, "TICK")
    return gate


def test_what_the_store_does_not_have_is_told_by_workflow_and_once_it_has_it_no_more():
    gate = held_gate()
    recording = gate.service.recording
    assert recording.unwritten("OTHER") == Unwritten(2, "no space left")
    assert recording.unwritten("WF").place is None and not recording.unwritten("WF").is_lost
    gate.gate.takes = "everything"
    gate.service.flush()
    assert recording.unwritten("OTHER") == Unwritten()
    gate.service.close()
    assert recording.unwritten("OTHER") == Unwritten()


def test_what_lies_in_the_second_store_already_is_told_with_that():
    gate = held_gate(memory_bytes=0)
    told = gate.service.recording.unwritten("OTHER")
    assert told.commits == 2 and told.place == gate.service.health().emergency_place is not None
    gate.service.close()


@pytest.mark.parametrize("spare", [True, False])
def test_after_the_end_it_is_told_what_became_of_what_waited(spare, caplog):
    gate = held_gate(spare=spare)
    # Told beside them: that the ladder was stepped down, in each workflow.
    counts = {name: gate.service.recording.unwritten(name).commits for name in ("WF", "OTHER")}
    gate.service.close()
    for name, count in counts.items():
        told = gate.service.recording.unwritten(name)
        assert told.commits >= count and told.reason == "no space left"
        assert (told.place is not None, told.is_lost) == (spare, not spare)
        assert (told.place or "LOST") in caplog.text
    assert gate.service.recording.unwritten("ELSE") == Unwritten()


def test_at_the_end_each_workflow_is_told_what_became_of_its_own(monkeypatch, caplog):
    gate = held_gate()
    spare = gate.service._engine.safety._shelter.spare
    save = spare.save

    def save_others(held):
        spare._opened()
        if held.workflow_id == "WF":
            raise DiskFullError("no space left there either")
        return save(held)

    monkeypatch.setattr(spare, "save", save_others)
    gate.service.close()
    unwritten = gate.service.recording.unwritten
    assert unwritten("WF").is_lost and unwritten("WF").others is None
    assert not unwritten("OTHER").is_lost and unwritten("OTHER").place == "memory:"
    assert "they are kept in memory:" in caplog.text and "are LOST: no space left there either" in caplog.text


def test_what_lies_in_the_second_store_is_not_lost_with_what_came_after_it(monkeypatch):
    gate = Gated(gated_kit(memory_bytes=20_000))
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes = "nothing"
    for n in range(3):
        gate.service.create_checkpoint("WF", {"n": n, "text": f"{n}" * 15_000})
    engine, unwritten = gate.service._engine, gate.service.recording.unwritten
    # The steps of the ladder are told in the workflow, too, by a thread of its own.
    engine.safety._tales.tell()
    engine.queue.flush()
    before = unwritten("WF")
    assert gate.mode is Mode.EMERGENCY and before.place == "memory:" and before.others is None

    def save(held):
        raise DiskFullError("no space left there either")

    monkeypatch.setattr(engine.safety._shelter.spare, "save", save)
    for workflow_id in ("WF", "OTHER"):
        gate.service.append_event(workflow_id, "TICK")
    assert unwritten("WF") == replace(Unwritten(1, before.reason), others=before)
    gate.service.close()
    assert unwritten("WF").is_lost and unwritten("WF").others == before
    assert unwritten("OTHER").is_lost and unwritten("OTHER").others is None
