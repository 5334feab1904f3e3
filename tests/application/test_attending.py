"""The thread that begins with the first fault: it makes room, waits, tries again, and ends."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from holdfast.domain.errors import AtomicRenameFailedError, CheckpointWriteError, DiskFullError
from holdfast.domain.ladder import Climb, Mode
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.retry import RetryPolicy
from tests.application.shelters import Gated, gated_kit, waiter

WAIT_SECONDS = 20


def ladder_threads():
    return [thread for thread in threading.enumerate() if thread.name == "holdfast-ladder"]


def test_there_is_no_thread_before_the_first_fault_and_none_after_the_end():
    before = len(ladder_threads())
    gate = Gated(gated_kit())
    gate.service.create_checkpoint("WF", {"n": 1})
    assert len(ladder_threads()) == before
    gate.gate.takes = "nothing"
    gate.service.create_checkpoint("WF", {"n": 2})
    assert len(ladder_threads()) == before + 1
    gate.gate.takes = "everything"
    gate.service.close()
    gate.service.close()
    assert len(ladder_threads()) == before


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
