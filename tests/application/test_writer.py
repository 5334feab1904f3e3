"""Preparing commits: order within a workflow, repetition, and what a failure leaves behind."""

from __future__ import annotations

import threading

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.application.engine import Engine
from holdfast.domain.errors import CheckpointConflictError, CheckpointWriteError
from holdfast.domain.record import Transition
from holdfast.testing import FailingStore
from tests.application.services import make_kit


def engine_on(store: FailingStore) -> Engine:
    return Engine(make_kit(store))


def test_checkpoints_are_prepared_on_top_of_each_other_before_the_first_is_durable() -> None:
    store = FailingStore()
    engine = engine_on(store)
    tickets = [engine.writer.create(engine.checkpoint_command("W", {"n": n}, {})) for n in range(5)]
    assert store.calls["commit"] == 0
    engine.queue.wait(tickets[-1])
    assert store.calls["commit"] == 1
    assert [ticket.result.sequence for ticket in tickets] == [1, 2, 3, 4, 5]
    assert engine.reader.restore("W@3").context == {"n": 2}


def test_a_repetition_of_one_on_its_way_shares_its_fate() -> None:
    store = FailingStore()
    engine = engine_on(store)
    first = engine.writer.create(engine.checkpoint_command("W", {"n": 1}, {}))
    again = engine.writer.create(engine.checkpoint_command("W", {"n": 1}, {}))
    assert again is not first and again.result == first.result and not again.done
    store.fail("commit")
    for ticket in (first, again):
        with pytest.raises(CheckpointWriteError):
            engine.queue.wait(ticket)
    assert engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": 1}, {}))).sequence == 1


def test_a_repetition_of_a_durable_one_is_told_once_the_store_was_asked() -> None:
    engine = engine_on(FailingStore())
    command = engine.checkpoint_command("W", {"n": 1}, {})
    first = engine.queue.wait(engine.writer.create(command))
    told: list[object] = []
    again = engine.writer.create(command, lambda ticket: told.append(ticket.result))
    assert engine.queue.wait(again) == first and told == [first]


def test_events_need_no_state_and_a_checkpoint_after_them_reads_it() -> None:
    store = FailingStore()
    engine_one = engine_on(store)
    engine_one.queue.wait(engine_one.writer.create(engine_one.checkpoint_command("W", {"n": 1}, {})))
    engine = engine_on(store)
    store.calls.clear()
    event = engine.queue.wait(engine.writer.append(AppendEvent("W", "STEP")))
    assert event.seq == 2 and store.calls["keyframe"] == 0
    assert engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": 2}, {}))).sequence == 2
    assert store.calls["keyframe"] == 1


def test_a_checkpoint_waits_for_events_on_their_way_before_it_reads_the_store() -> None:
    store = FailingStore()
    engine = engine_on(store)
    engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": 1}, {})))
    engine = engine_on(store)
    event = engine.writer.append(AppendEvent("W", "STEP"))
    ticket = engine.writer.create(engine.checkpoint_command("W", {"n": 2}, {}))
    assert event.done
    assert engine.queue.wait(ticket).sequence == 2


def test_a_status_is_committed_with_the_event_that_tells_it() -> None:
    store = FailingStore()
    engine = engine_on(store)
    engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": 1}, {})))
    data = {"status": "failed", "retry_count": 1, "error_message": "oops"}
    event = AppendEvent("W", "CHECKPOINT_STATUS", data, cp_seq=1)
    engine.queue.wait(engine.writer.append(event, transitions=(Transition(1, "failed", 1),)))
    found = engine.reader.checkpoint("W@1")
    assert found is not None
    assert (found.status, found.retry_count, found.error_message) == ("failed", 1, "oops")
    assert found.updated_at > found.created_at


def test_removing_waits_for_what_is_on_its_way_and_keeps_others_out() -> None:
    store = FailingStore()
    engine = engine_on(store)
    for number in range(3):
        engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": number}, {})))
    pending = engine.writer.create(engine.checkpoint_command("W", {"n": 3}, {}))
    assert engine.delete("W@3")
    assert pending.done
    assert engine.queue.wait(engine.writer.create(engine.checkpoint_command("W", {"n": 4}, {}))).sequence == 5
    assert engine.reader.restore("W@5").context == {"n": 4}


def test_a_conflict_makes_the_next_call_start_from_the_store() -> None:
    store = FailingStore()
    mine, other = engine_on(store), engine_on(store)
    for engine in (mine, other):
        engine.queue.wait(engine.writer.append(AppendEvent("W", "STEP")))
    with pytest.raises(CheckpointConflictError):
        mine.queue.wait(mine.writer.append(AppendEvent("W", "STEP")))
    assert mine.queue.wait(mine.writer.append(AppendEvent("W", "STEP"))).seq == 3


def test_a_base_is_read_once_however_many_threads_ask() -> None:
    store = FailingStore()
    first = engine_on(store)
    first.queue.wait(first.writer.create(first.checkpoint_command("W", {"n": 1}, {})))
    engine = engine_on(store)
    store.calls.clear()
    threads = [threading.Thread(target=engine.writer.warm, args=("W",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.calls["keyframe"] == 1
    assert engine.writer.bases.is_warm("W")
