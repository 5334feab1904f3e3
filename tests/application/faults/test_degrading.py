"""Commits that cannot be made durable wait, in order, and are written when they can be."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.application.commands import AppendEvent
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    PermissionDeniedError,
    RedactedStateWarning,
)
from holdfast.domain.ladder import Mode
from holdfast.testing import FailingStore
from tests.application.services import make_kit
from tests.application.shelters import AsyncGated, Gated, GatedStore, gated_kit, waiter


class Unclosed(FailingStore):
    """Stays readable for the test."""

    def close(self) -> None:
        pass


@pytest.fixture
def net():
    gated = Gated(gated_kit())
    yield gated
    gated.gate.takes = "everything"
    gated.service.close()


def states(service, workflow_id="WF"):
    metas = service.list_checkpoints(workflow_id)
    return {meta.id.sequence: dict(service.restore_checkpoint(meta.id).context) for meta in metas}


def types(service, workflow_id="WF"):
    return [event.type for event in service.events(workflow_id)]


def test_a_store_that_works_gives_durable_receipts_in_full_mode(net):
    made = net.service.create_checkpoint("WF", {"n": 1})
    event = net.service.append_event("WF", "TICK")
    assert (made.durable, made.mode, event.durable, event.mode) == (True, Mode.FULL, True, Mode.FULL)
    health = net.service.health()
    assert health.mode is Mode.FULL and health.is_durable and health.counters == {}


def test_a_state_that_cannot_be_stored_waits_while_events_are_durable(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "events"
    made = net.service.create_checkpoint("WF", {"n": 2})
    event = net.service.append_event("WF", "TICK", {"n": 2})
    assert (made.sequence, made.durable, made.mode) == (2, False, Mode.EVENT_ONLY)
    assert (event.durable, event.mode) == (True, Mode.EVENT_ONLY)
    assert "TICK" in types(net.service)
    assert states(net.service) == {1: {"n": 1}}


def test_what_waited_is_written_under_the_number_that_was_told(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "events"
    told = [net.service.create_checkpoint("WF", {"n": n}) for n in (2, 3, 4)]
    net.service.append_event("WF", "TICK")
    net.gate.takes = "everything"
    net.service.flush()
    assert states(net.service) == {n: {"n": n} for n in (1, 2, 3, 4)}
    assert [one.sequence for one in told] == [2, 3, 4]
    for one in told:
        assert net.service.get_by_id(one.uuid).id.sequence == one.sequence
        assert net.service.validate_checkpoint(str(one)).problems == ()


def test_what_no_event_overtook_is_written_to_the_byte_as_told(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.append_event("WF", "TICK")
    assert net.mode == Mode.MEMORY_ONLY
    told = net.service.create_checkpoint("WF", {"n": 2})
    net.gate.takes = "everything"
    net.service.flush()
    stored = net.service.get_by_id("WF@2").id
    assert (stored.sequence, stored.uuid, stored.timestamp) == (told.sequence, told.uuid, told.timestamp)
    assert stored.checksum == told.checksum


def test_a_state_that_was_overtaken_says_which_events_it_knows_of(net):
    net.service.create_checkpoint("WF", {"n": 1})
    before = net.service.append_event("WF", "BEFORE")
    net.gate.takes = "events"
    net.service.create_checkpoint("WF", {"n": 2})
    after = net.service.append_event("WF", "AFTER")
    net.gate.takes = "everything"
    net.service.flush()
    entry = next(one for one in net.kit.store.entries("WF") if one.sequence == 2)
    assert before.seq <= entry.event_seq < after.seq


def test_when_events_fail_too_everything_waits_and_keeps_its_order(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    for n in (2, 3):
        made = net.service.create_checkpoint("WF", {"n": n})
        event = net.service.append_event("WF", "TICK", {"n": n})
    assert (made.durable, event.durable, event.mode) == (False, False, Mode.MEMORY_ONLY)
    assert net.mode == Mode.MEMORY_ONLY
    net.gate.takes = "everything"
    net.service.flush()
    told = [(event.type, event.cp_seq, event.data.get("n")) for event in net.service.events("WF")]
    own = [one for one in told if one[0] in ("CHECKPOINT_CREATED", "TICK")]
    assert own == [
        ("CHECKPOINT_CREATED", 1, None),
        ("CHECKPOINT_CREATED", 2, None),
        ("TICK", None, 2),
        ("CHECKPOINT_CREATED", 3, None),
        ("TICK", None, 3),
    ]


def test_the_first_fault_of_an_event_leads_straight_to_memory(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.append_event("WF", "TICK")
    net.climb(Mode.MEMORY_ONLY)
    assert net.service.health().counters["full->memory_only"] == 1


def test_events_that_pass_again_lead_up_from_memory_while_states_still_wait(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.create_checkpoint("WF", {"n": 2})
    net.service.append_event("WF", "TICK")
    assert net.mode == Mode.MEMORY_ONLY
    net.gate.takes = "events"
    with pytest.raises(CheckpointWriteError):
        net.service.flush()
    assert net.mode == Mode.EVENT_ONLY
    assert "TICK" in types(net.service) and states(net.service) == {1: {"n": 1}}


def test_every_step_is_taken_down_and_up(net):
    net.kit.store.error = lambda: PermissionDeniedError("not allowed")
    small = Gated(gated_kit(memory_bytes=200_000))
    small.service.create_checkpoint("WF", {"n": 0})
    small.gate.takes = "events"
    small.service.create_checkpoint("WF", {"n": 1})
    assert small.mode == Mode.EVENT_ONLY
    small.gate.takes = "nothing"
    small.service.append_event("WF", "TICK")
    assert small.mode == Mode.MEMORY_ONLY
    for n in range(2, 8):
        small.service.create_checkpoint("WF", {"n": n, "text": chr(97 + n) * 50_000})
    assert small.mode == Mode.EMERGENCY
    small.gate.takes = "everything"
    small.climb()
    counters = small.service.health().counters
    for step in (
        "full->event_only",
        "event_only->memory_only",
        "memory_only->emergency",
        "emergency->memory_only",
        "memory_only->event_only",
        "event_only->full",
    ):
        assert counters[step] == 1, counters
    assert [n["n"] for n in states(small.service).values()][::-1] == list(range(8))
    small.service.close()


def test_memory_is_given_back_once_what_waits_is_in_the_second_store():
    small = Gated(gated_kit(memory_bytes=100_000))
    small.service.create_checkpoint("WF", {"n": 0})
    small.gate.takes = "nothing"
    for n in range(1, 11):
        small.service.create_checkpoint("WF", {"n": n, "text": chr(97 + n) * 40_000})
    health = small.service.health()
    assert health.held_bytes <= health.memory_bytes
    assert health.emergency_place == "memory:" and health.held_commits >= 10
    small.gate.takes = "everything"
    small.climb()
    assert states(small.service)[11]["n"] == 10
    assert small.service.health().emergency_place is None
    small.service.close()


def test_without_a_second_store_what_memory_has_no_room_for_is_refused_and_the_rest_is_kept():
    small = Gated(gated_kit(memory_bytes=100_000, spare=False))
    small.service.create_checkpoint("WF", {"n": 0})
    small.gate.takes = "nothing"
    small.service.create_checkpoint("WF", {"n": 1, "text": "a" * 40_000})
    with pytest.raises(CheckpointWriteError, match="neither the store"):
        small.service.create_checkpoint("WF", {"n": 2, "text": "b" * 90_000})
    assert small.mode == Mode.EMERGENCY
    made = small.service.create_checkpoint("WF", {"n": 3})
    assert (made.sequence, made.durable) == (3, False)
    small.gate.takes = "everything"
    small.climb()
    assert [state["n"] for state in states(small.service).values()] == [3, 1, 0]
    small.service.close()


def test_another_writer_meanwhile_moves_what_waited_and_the_numbers_are_told():
    store = GatedStore()
    kit = gated_kit()
    gate = Gated(replace(kit, store=store))
    told, put = waiter()
    gate.service.on_written(put)
    gate.service.create_checkpoint("WF", {"n": 1})
    store.takes = "nothing"
    mine = gate.service.create_checkpoint("WF", {"n": 2})
    other = CheckpointService(replace(make_kit(store.store), ids=kit.ids))
    other.create_checkpoint("WF", {"n": "other"})
    store.takes = "everything"
    gate.service.flush()
    assert mine.sequence == 2
    assert states(gate.service)[2] == {"n": "other"} and states(gate.service)[3] == {"n": 2}
    written = told.get(timeout=20)
    assert (written.workflow_id, dict(written.moved)) == ("WF", {2: 3})
    event = next(one for one in gate.service.events("WF") if one.type == "HELD_WRITTEN")
    assert event.data["moved"] == {"2": 3}
    assert gate.service.get_by_id(mine.uuid).id.sequence == 3
    following = gate.service.create_checkpoint("WF", {"n": 4})
    assert (following.sequence, following.durable) == (4, True)


def test_a_caller_that_asked_for_a_sequence_is_not_written_behind_anothers_back():
    store = GatedStore()
    kit = gated_kit()
    gate = Gated(replace(kit, store=store))
    gate.service.create_checkpoint("WF", {"n": 1})
    store.takes = "nothing"
    gate.service.create_checkpoint("WF", {"n": 2}, expected_sequence=1)
    other = CheckpointService(replace(make_kit(store.store), ids=kit.ids))
    other.create_checkpoint("WF", {"n": "other"})
    store.takes = "everything"
    gate.service.flush()
    assert states(gate.service) == {1: {"n": 1}, 2: {"n": "other"}}
    assert gate.service.health().counters["refused"] == 1
    told = gate.service.recording.unwritten("WF")
    assert (told.commits, told.reason, told.is_refused) == (1, "another checkpoint came first", True)


def test_under_a_lease_that_was_lost_nothing_is_written_and_what_waited_is_kept_elsewhere():
    store = GatedStore()
    kit = gated_kit()
    gate = Gated(replace(kit, store=store))
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.service.acquire_lease("WF", "me", ttl_seconds=0.0)
    store.takes = "nothing"
    gate.service.create_checkpoint("WF", {"n": 2})
    other = CheckpointService(replace(make_kit(store.store), ids=kit.ids))
    other.acquire_lease("WF", "other", ttl_seconds=600)
    other.create_checkpoint("WF", {"n": "other"})
    store.takes = "everything"
    gate.service.flush()
    assert states(gate.service) == {1: {"n": 1}, 2: {"n": "other"}}
    refused = gate.service.health().counters["refused"]
    assert refused >= 1
    told = gate.service.recording.unwritten("WF")
    assert told.commits == refused and told.place is not None and not told.is_lost
    gate.service.close()
    assert gate.service.recording.unwritten("WF") == told


def test_what_repeats_the_last_state_is_as_durable_as_that_one(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    first = net.service.create_checkpoint("WF", {"n": 2})
    again = net.service.create_checkpoint("WF", {"n": 2})
    assert (again.sequence, again.durable) == (first.sequence, False)


def test_a_commit_of_unknown_outcome_that_is_there_already_is_not_written_twice(net):
    net.service.create_checkpoint("WF", {"n": 1})
    inner = net.gate.store
    calls: Counter[str] = Counter()

    def commit(commits):
        outcomes = type(inner).commit(inner, commits)
        if any(one.record is not None for one in commits) and not calls["lost"]:
            calls["lost"] += 1
            raise CheckpointWriteError("the answer was lost")
        return outcomes

    inner.commit = commit
    made = net.service.create_checkpoint("WF", {"n": 2})
    assert made.sequence == 2
    net.service.append_event("WF", "TICK")
    net.service.flush()
    assert states(net.service) == {1: {"n": 1}, 2: {"n": 2}}
    assert net.service.get_by_id("WF@2").id == made
    assert types(net.service).count("TICK") == 1


@pytest.mark.parametrize("is_known", [True, False])
def test_a_workflow_that_nothing_is_remembered_of_goes_on_while_its_store_is_away(net, is_known):
    if is_known:
        for n in (1, 2):
            net.service.create_checkpoint("WF", {"n": n})
        net.service._engine.writer.forget("WF")
    told, put = waiter()
    net.service.on_written(put)
    away = CheckpointReadError("the server does not answer")
    for method in ("head", "entries"):
        net.gate.fail(method, away, times=3)
    net.gate.takes = "nothing"
    made = net.service.create_checkpoint("WF", {"n": 3})
    event = net.service.append_event("WF", "TICK")
    assert not made.durable and not event.durable
    net.gate._failures.clear()
    net.gate.takes = "everything"
    net.climb()
    net.service.flush()
    stored = net.service.get_by_id(made.uuid)
    assert stored.id.sequence == (3 if is_known else 1)
    assert net.service.restore_checkpoint(stored.id).context == {"n": 3}
    assert dict(told.get(timeout=20).moved) == ({1: 3} if is_known else {})
    assert net.service.create_checkpoint("WF", {"n": 4}).sequence == stored.id.sequence + 1


def test_without_degrading_a_store_that_is_away_is_an_error():
    gate = Gated(gated_kit(degrade=False))
    gate.gate.fail("head", CheckpointReadError("the server does not answer"))
    with pytest.raises(CheckpointReadError):
        gate.service.create_checkpoint("WF", {"n": 3})
    gate.service.close()


def test_each_step_is_told_in_the_journal_in_the_trail_and_to_listeners(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "events"
    net.service.create_checkpoint("WF", {"n": 2})
    net.gate.takes = "everything"
    net.climb()
    net.service.flush()
    steps = [event.data for event in net.service.events("WF") if event.type == "STORE_DEGRADED"]
    assert [(step["from"], step["to"]) for step in steps] == [("full", "event_only"), ("event_only", "full")]
    kinds = [event.type for event in net.service.audit.query_events()]
    assert kinds.count("STORE_DEGRADED") == 2
    assert net.steps == [(Mode.FULL, Mode.EVENT_ONLY), (Mode.EVENT_ONLY, Mode.FULL)]
    assert net.service.audit.verify(payloads=True).faults == ()


def test_a_flush_says_that_something_still_waits(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.create_checkpoint("WF", {"n": 2})
    with pytest.raises(CheckpointWriteError, match="wait in memory"):
        net.service.flush()


def test_closing_saves_what_still_waits_in_the_second_store(caplog):
    kit = gated_kit()
    store = MemoryStore()
    gate = Gated(replace(kit, spare=lambda: make_kit(Unclosed(store))))
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes = "nothing"
    gate.service.create_checkpoint("WF", {"n": 2})
    gate.service.append_event("WF", "TICK")
    gate.service.close()
    assert "they are kept in memory:" in caplog.text
    saved = CheckpointService(make_kit(store))
    latest = saved.load_latest("WF")
    assert latest is not None and latest.context == {"n": 2}
    assert "TICK" in types(saved)


def test_a_future_tells_of_what_is_not_durable(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    futures = [net.service.create_checkpoint("WF", {"n": n}, wait=False) for n in (2, 3)]
    assert [future.result(timeout=20).durable for future in futures] == [False, False]
    assert [future.result().sequence for future in futures] == [2, 3]


def test_coroutines_get_the_same_receipts():
    async def scene():
        gate = AsyncGated(gated_kit())
        await gate.service.create_checkpoint("WF", {"n": 1})
        gate.gate.takes = "events"
        made = await gate.service.create_checkpoint("WF", {"n": 2})
        event = await gate.service.append_event("WF", "TICK")
        gate.gate.takes = "everything"
        await gate.service.flush()
        latest = await gate.service.load_latest("WF")
        await gate.service.close()
        return made, event, latest

    made, event, latest = asyncio.run(scene())
    assert (made.sequence, made.durable, made.mode) == (2, False, Mode.EVENT_ONLY)
    assert (event.durable, event.mode) == (True, Mode.EVENT_ONLY)
    assert latest.context == {"n": 2}


def test_a_state_may_be_changed_while_its_snapshot_waits(net):
    state = {"items": [1]}
    net.gate.takes = "nothing"
    net.service.create_checkpoint("WF", state)
    state["items"].append(2)
    net.gate.takes = "everything"
    net.service.flush()
    assert states(net.service) == {1: {"items": [1]}}


def test_secrets_are_hidden_in_what_was_written_late(net):
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    net.gate.takes = "events"
    net.service.create_checkpoint("WF", {"key": key})
    net.service.append_event("WF", "TICK", {"key": key})
    net.gate.takes = "everything"
    net.service.flush()
    with pytest.warns(RedactedStateWarning):
        assert key not in str(states(net.service))
    assert key not in str(net.service.events("WF"))


@pytest.mark.parametrize("degrade", [True, False])
def test_a_conflict_is_an_error_whatever_the_mode(degrade):
    gate = Gated(gated_kit(degrade=degrade))
    gate.service.create_checkpoint("WF", {"n": 1})
    with pytest.raises(CheckpointConflictError):
        gate.service.create_checkpoint("WF", {"n": 2}, expected_sequence=7)
    assert gate.mode == Mode.FULL
    gate.service.close()


@pytest.mark.parametrize("error", [DiskFullError, PermissionDeniedError, CheckpointWriteError])
def test_without_degrading_a_fault_is_the_callers_error_and_nothing_waits(error):
    gate = Gated(gated_kit(degrade=False))
    gate.service.create_checkpoint("WF", {"n": 1})
    gate.gate.takes, gate.gate.error = "nothing", lambda: error("no")
    with pytest.raises(error):
        gate.service.create_checkpoint("WF", {"n": 2})
    assert gate.service.health().is_durable and gate.mode == Mode.FULL
    gate.gate.takes = "everything"
    made = gate.service.create_checkpoint("WF", {"n": 3})
    assert (made.sequence, made.durable) == (2, True)
    gate.service.close()


ACTIONS = st.lists(
    st.sampled_from(["state", "event", "future", "shut", "events", "open", "flush", "other", "lose"]),
    max_size=25,
)


@pytest.mark.sweep
@given(ACTIONS)
def test_whatever_happens_nothing_that_was_acknowledged_is_lost_and_all_is_in_order(actions):
    kit = gated_kit(memory_bytes=30_000)
    gate = Gated(kit)
    recorded, facts, durable = [], [], []
    for step, action in enumerate(actions):
        if action in ("shut", "events", "open"):
            gate.gate.takes = {"shut": "nothing", "events": "events", "open": "everything"}[action]
        elif action == "lose":
            gate.gate.loses_answer = True
        elif action == "flush":
            try:
                gate.service.flush()
            except CheckpointWriteError:
                assert gate.gate.takes != "everything" or not gate.gate.loses_answer
        elif action == "event":
            fact = gate.service.append_event("WF", "FACT", {"step": step})
            facts.append(step)
            durable += [step] if fact.durable else []
            assert not fact.durable or step in _facts(gate.service)
        elif action == "other":
            gate.service.create_checkpoint("OTHER", {"step": step})
        else:
            made = gate.service.create_checkpoint(
                "WF", {"step": step, "text": "x" * 900}, wait=action == "state"
            )
            recorded.append(step)
            if action == "state" and made.durable:
                assert gate.service.load_latest("WF").context["step"] == step
    gate.gate.takes, gate.gate.loses_answer = "everything", False
    gate.climb()
    gate.service.flush()
    stored = states(gate.service)
    assert [stored[number]["step"] for number in sorted(stored)] == recorded
    assert _facts(gate.service) == facts
    for number in stored:
        assert gate.service.validate_checkpoint(f"WF@{number}").problems == ()
    assert gate.service.audit.verify(payloads=True).faults == ()
    gate.service.close()


def _facts(service):
    return [event.data["step"] for event in service.events("WF") if event.type == "FACT"]


def test_what_the_trail_was_told_waits_too_and_is_not_told_of_its_own_waiting(net):
    net.service.create_checkpoint("WF", {"n": 1})
    net.gate.takes = "nothing"
    net.service.load_latest("WF")
    for _ in range(5):
        assert not net.service.append_event("WF", "TICK").durable
    net.gate.takes = "everything"
    net.climb()
    net.service.flush()
    told = Counter(entry.type for entry in net.service.audit.query_events())
    assert told["STATE_RESTORED"] == 1 and told["OPERATION_REFUSED"] == 0


def test_what_was_made_on_top_of_a_commit_that_nothing_had_room_for_fails_with_it(monkeypatch):
    small = Gated(gated_kit(memory_bytes=100_000, spare=False))
    engine = small.service._engine
    # Nobody else commits, so that both are of one group.
    monkeypatch.setattr(engine.safety._tales, "_record", lambda *told: None)
    small.service.create_checkpoint("WF", {"n": 1})
    small.gate.takes = "nothing"
    small.service.append_event("WF", "TICK")
    large = engine.writer.create(engine.checkpoint_command("WF", {"text": "x" * 200_000}, {}))
    later = engine.writer.append(AppendEvent("WF", "LATER"))
    with pytest.raises(CheckpointWriteError, match="neither the store"):
        engine.wait(large)
    with pytest.raises(CheckpointWriteError, match="on top of it"):
        engine.wait(later)
    assert small.service.create_checkpoint("WF", {"n": 2}).sequence == 2
    small.gate.takes = "everything"
    small.service.close()
