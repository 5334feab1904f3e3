"""The line of commits that wait: its order, its bytes, and what has to be made again."""

from __future__ import annotations

import pytest

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage, Ticket
from holdfast.application.faults.waiting import OVERHEAD_BYTES, Spilled, Waiting, hold
from holdfast.application.intent import EventIntent, StateIntent
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.event import Event
from holdfast.domain.record import Commit, EventRecord, Head
from holdfast.testing import FixedClock
from tests.application.services import make_kit

NOW = FixedClock().now()


def ticket(workflow_id="WF", seq=1, size=100):
    event = Event(seq, NOW, "TICK", workflow_id)
    record = EventRecord(seq, "", f"sha256:{seq}", b"x" * size)
    made = Ticket(Commit(workflow_id, Head(), events=(record,)), Lineage(), event)
    made.intent = EventIntent(event)
    made.following = Base(made.commit.head, made.lineage, is_stub=True)
    return made


def waits(*tickets):
    waiting = Waiting()
    held = [hold(one, one.intent, NOW, None) for one in tickets]
    for one in held:
        waiting.add(one)
    return waiting, held


def test_what_waits_keeps_its_order_as_a_whole_and_by_workflow():
    waiting, held = waits(ticket("A"), ticket("B"), ticket("A", 2))
    assert waiting.all() == held and len(waiting) == 3
    assert waiting.of("A") == [held[0], held[2]] and waiting.last_of("A") is held[2]
    assert waiting.workflows() == ["A", "B"]
    assert waiting.last_of("C") is None and waiting.base_of("C") is None


def test_bytes_are_counted_and_given_back():
    waiting, held = waits(ticket(size=1000), ticket(seq=2, size=10))
    assert waiting.bytes == 1010 + 2 * OVERHEAD_BYTES
    waiting.remove(held[0])
    waiting.remove(held[0])
    assert waiting.bytes == 10 + OVERHEAD_BYTES and waiting.oldest == NOW
    waiting.shrink(held[1], Spilled(1))
    assert waiting.bytes == OVERHEAD_BYTES
    waiting.remove(held[1])
    assert waiting.bytes == 0 and waiting.oldest is None and waiting.workflows() == []


def test_the_first_few_are_bounded_in_number_and_bytes_and_never_none():
    waiting, held = waits(*(ticket(seq=n, size=10_000) for n in range(1, 5)))
    assert waiting.first(2, 1 << 20) == held[:2]
    assert waiting.first(10, 1) == held[:1]
    assert waiting.first(10, 25_000) == held[:2]


def test_what_comes_after_something_to_be_made_again_has_to_be_too():
    waiting, held = waits(ticket(), ticket(seq=2))
    waiting.unmake("WF")
    later = hold(ticket(seq=3), EventIntent(ticket(seq=3).result), NOW, None)
    waiting.add(later)
    assert [one.made for one in (*held, later)] == [None] * 3
    assert not later.is_exact


def test_the_next_commit_builds_on_the_last_that_waits_also_after_one_was_refused():
    waiting, held = waits(ticket(), ticket(seq=2))
    assert waiting.base_of("WF") is held[1].ticket.following
    held[1].ticket.lineage.failure = CheckpointWriteError("no room")
    base = waiting.base_of("WF")
    assert base is not None and base.sound and base.head == held[1].ticket.commit.head


def test_nothing_of_the_callers_own_objects_is_kept():
    with CheckpointService(make_kit()) as service:
        state = {"n": 1}
        command = service._engine.checkpoint_command("WF", state, {})
        made = service._engine.writer.create(command)
        intent = made.intent
        assert isinstance(intent, StateIntent)
        held = hold(made, intent, NOW, None)
        assert isinstance(held.intent, StateIntent)
        assert held.intent.subject.command.fields == {} and held.is_state
        assert held.intent.subject.uuid == made.result.uuid
        service.flush()
        assert made.intent is None


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_state_costs_what_it_does_not_share_with_the_one_before(size):
    with CheckpointService(make_kit()) as service:
        state = {"text": ["a" * 100] * (size // 100), "n": 0}
        writer, engine = service._engine.writer, service._engine
        first = writer.create(engine.checkpoint_command("WF", state, {}))
        state["n"] = 1
        second = writer.create(engine.checkpoint_command("WF", state, {}))
        whole = hold(first, first.intent, NOW, None)
        change = hold(second, second.intent, NOW, first.intent.snapshot)
        assert whole.bytes >= size and change.bytes < 4 * OVERHEAD_BYTES


def test_nothing_large_is_kept_of_what_lies_elsewhere():
    with CheckpointService(make_kit()) as service:
        engine = service._engine
        made = engine.writer.create(engine.checkpoint_command("WF", {"text": "x" * 10_000}, {}))
        waiting, [held] = waits(made)
        held.tried = made.commit.events[-1], made.result
        waiting.shrink(held, Spilled(1, bytes=10_000))
        assert held.made is None and made.intent is None and made.following.snapshot is None
        assert made.commit.record is None and made.commit.events == () and held.tried[0].data == b""
        assert made.following.head.sequence == 1, "the next one still follows it"


def test_what_lies_elsewhere_counts_with_its_size_when_it_is_read_back():
    waiting, held = waits(*(ticket(seq=n) for n in range(1, 4)))
    for one in held:
        waiting.shrink(one, Spilled(1, bytes=1_000_000))
    assert waiting.first(64, 1_500_000) == held[:1]
