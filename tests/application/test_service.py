"""The operations of the service, each as a caller sees it."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.domain.checkpoint import CheckpointStatus, CheckpointType, Scope
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    InvalidIdError,
    InvalidStateError,
    PromiseBrokenWarning,
    StateSizeWarning,
    StateTooLargeError,
    StoreClosedError,
    StoreDamageWarning,
    UnsupportedTypeError,
)
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.services import make_service


@dataclass
class Invoice:
    number: int
    total: Decimal


def test_a_state_comes_back_as_it_was() -> None:
    state = WorkflowState(
        session_id="s-1",
        current_step=5,
        phase=2,
        started_at=datetime(2026, 1, 11, 14, tzinfo=UTC),
        messages=[{"role": "user", "content": "hello"}],
        context={
            "when": datetime(2026, 1, 1, tzinfo=UTC),
            "price": Decimal("1.00"),
            "raw": b"\x00",
            "t": (1,),
        },
        extra={"unknown": {1, 2}},
    )
    with make_service() as service:
        checkpoint_id = service.create_checkpoint("WF-1", state)
        restored = service.restore_checkpoint(checkpoint_id)
    assert restored.checkpoint_id == "WF-1@1"
    assert restored.workflow_id == "WF-1"
    restored.checkpoint_id, state.workflow_id = None, "WF-1"
    assert restored == state


def test_a_plain_mapping_is_taken_as_the_context() -> None:
    with make_service() as service:
        service.create_checkpoint("W", {"a": 1})
        assert service.restore_checkpoint("W@1").context == {"a": 1}


@pytest.mark.sweep
def test_every_checkpoint_of_a_long_history_is_restored_exactly() -> None:
    with make_service() as service:
        state: dict[str, Any] = {"messages": [], "count": 0, "note": ""}
        kept = []
        for number in range(120):
            state["messages"].append({"role": "user", "content": f"{number} " * 200})
            state["count"] = number
            state["note"] += "more "
            if number % 7 == 0:
                state["messages"] = state["messages"][-20:]
            kept.append((service.create_checkpoint("W", state), repr(state)))
        assert len(service._engine.kit.store.keyframes("W")) > 2
        for checkpoint_id, expected in kept:
            assert repr(service.restore_checkpoint(checkpoint_id).context) == expected


def test_the_caller_may_change_the_state_as_soon_as_the_call_returns() -> None:
    with make_service() as service:
        state = {"list": [1, 2, {"deep": [1]}]}
        first = service.create_checkpoint("W", state)
        future = service.create_checkpoint("W", {"list": state["list"], "more": 1}, wait=False)
        state["list"][2]["deep"].append(2)  # type: ignore[index]
        state["list"].clear()
        assert service.restore_checkpoint(first).context == {"list": [1, 2, {"deep": [1]}]}
        assert service.restore_checkpoint(future.result()).context == {
            "list": [1, 2, {"deep": [1]}],
            "more": 1,
        }
        third = service.create_checkpoint("W", state)
        assert service.restore_checkpoint(third).context == {"list": []}


def test_the_same_state_twice_is_the_same_checkpoint_unless_forced() -> None:
    with make_service() as service:
        first = service.create_checkpoint("W", {"a": 1})
        assert service.create_checkpoint("W", {"a": 1}) == first
        assert service.create_checkpoint("W", {"a": 1}, wait=False).result() == first
        forced = service.create_checkpoint("W", {"a": 1}, force=True)
        assert forced.sequence == 2


@pytest.mark.parametrize(
    "different",
    [
        {"type": CheckpointType.SYNC_BARRIER},
        {"stage_id": "s"},
        {"agent_id": "a"},
        {"stage_state": {"x": 1}},
        {"agent_state": {"x": True}},
        {"resume_handler": "app.other"},
    ],
)
def test_anything_new_beside_the_state_makes_a_new_checkpoint(different: dict[str, Any]) -> None:
    with make_service() as service:
        service.create_checkpoint("W", {"a": 1}, agent_state={"x": 1})
        assert (
            service.create_checkpoint("W", {"a": 1}, **{"agent_state": {"x": 1}, **different}).sequence == 2
        )


def test_values_that_are_only_equal_in_python_are_changes() -> None:
    with make_service() as service:
        for number, value in enumerate([1, True, 1.0, Decimal("1.0"), Decimal("1.00"), 0.0, -0.0], start=1):
            assert service.create_checkpoint("W", {"v": value}).sequence == number
        assert repr(service.restore_checkpoint("W@7").context["v"]) == "-0.0"


def test_a_forgotten_base_still_finds_the_repetition() -> None:
    store = MemoryStore()
    first = make_service(store).create_checkpoint(
        "W", {"a": 1}, agent_state={"t": (1, 2)}, resume_handler="h"
    )
    again = make_service(store).create_checkpoint(
        "W", {"a": 1}, agent_state={"t": (1, 2)}, resume_handler="h"
    )
    assert again == first


def test_an_evicted_base_is_read_back() -> None:
    with make_service(cache_bytes=0) as service:
        for number in range(30):
            for workflow_id in ("A", "B"):
                service.create_checkpoint(workflow_id, {"n": number, "w": workflow_id, "text": "x" * 3000})
        assert service.restore_checkpoint("A@30").context["n"] == 29
        assert service.restore_checkpoint("B@15").context == {"n": 14, "w": "B", "text": "x" * 3000}


def test_everything_about_a_checkpoint_is_told() -> None:
    with make_service() as service:
        first = service.create_checkpoint("W", {"a": 1})
        second = service.create_checkpoint(
            "W",
            WorkflowState(context={"a": 2}, phase=3, session_id="s-9"),
            type="agent_start",
            stage_id="research",
            agent_id="worker",
            stage_state={"done": (1, 2)},
            agent_state={"at": datetime(2026, 1, 1, tzinfo=UTC)},
            agent_version="2.1.0",
            resume_handler="app.resume",
            max_retries=5,
            dependent_checkpoint_ids=[first, "W@1"],
        )
        found = service.get_by_id(second)
        [meta] = service.list_checkpoints("W", limit=1)
    assert found is not None
    assert found.id == second
    assert (found.type, found.status, found.scope) == (
        CheckpointType.AGENT_START,
        CheckpointStatus.ACTIVE,
        Scope.AGENT,
    )
    assert found.stage_state == {"done": (1, 2)}
    assert found.agent_state == {"at": datetime(2026, 1, 1, tzinfo=UTC)}
    assert found.parent_checkpoint_id == first.uuid
    assert found.dependent_checkpoint_ids == (first.uuid, first.uuid)
    assert (found.resume_handler, found.max_retries, found.agent_version) == ("app.resume", 5, "2.1.0")
    assert (meta.session_id, meta.phase, meta.stage_id, meta.agent_id) == ("s-9", 3, "research", "worker")


def test_a_parent_that_is_not_the_one_before_is_kept() -> None:
    with make_service() as service:
        first = service.create_checkpoint("W", {"a": 1})
        service.create_checkpoint("W", {"a": 2})
        third = service.create_checkpoint("W", {"a": 3}, parent_checkpoint_id=first)
        found = service.get_by_id(third)
        assert found is not None and found.parent_checkpoint_id == first.uuid


def test_what_is_not_there_is_none_or_false() -> None:
    with make_service() as service:
        assert service.load_latest("W") is None
        assert service.get_by_id("W@1") is None
        assert service.delete("W@1") is False
        assert service.list_checkpoints("W") == []
        assert service.events("W") == []
        with pytest.raises(CheckpointNotFoundError):
            service.restore_checkpoint("W@1")
        with pytest.raises(CheckpointNotFoundError):
            service.validate_checkpoint("W@latest")


def test_checkpoints_are_listed_newest_first_within_bounds() -> None:
    with make_service() as service:
        ids = [service.create_checkpoint("W", {"n": number}) for number in range(5)]

        def listed(**bounds: Any) -> list[int]:
            return [meta.id.sequence for meta in service.list_checkpoints("W", **bounds)]

        assert listed() == [5, 4, 3, 2, 1]
        assert listed(limit=2) == [5, 4]
        assert listed(after=ids[2]) == listed(after=3) == listed(after="W@3") == [5, 4]
        assert listed(after=ids[2].timestamp) == [5, 4]
        assert listed(after=ids[4].timestamp + timedelta(days=1)) == []


def test_an_expected_sequence_that_another_service_made_is_believed() -> None:
    store = MemoryStore()
    with make_service(store) as one, make_service(store) as other:
        one.create_checkpoint("W", {"a": 1})
        other.create_checkpoint("W", {"a": 2}, expected_sequence=1)
        assert one.create_checkpoint("W", {"a": 3}, expected_sequence=2).sequence == 3
        with pytest.raises(CheckpointConflictError):
            other.create_checkpoint("W", {"a": 4}, expected_sequence=2)


def test_what_is_expected_is_the_newest_that_was_not_removed() -> None:
    service = make_service()
    for number in range(3):
        service.create_checkpoint("W", {"n": number})
    service.delete("W@3")
    newest = service.list_checkpoints("W", limit=1)[0].id
    assert service.create_checkpoint("W", {"n": 9}, expected_sequence=newest.sequence).sequence == 4
    with pytest.raises(CheckpointConflictError):
        service.create_checkpoint("W", {"n": 10}, expected_sequence=newest.sequence)
    for sequence in (4, 2, 1):
        service.delete(f"W@{sequence}")
    with pytest.raises(CheckpointConflictError):
        service.create_checkpoint("W", {"n": 11}, expected_sequence=2)
    assert service.create_checkpoint("W", {"n": 11}, expected_sequence=0).sequence == 5
    assert service.load_latest("W").context == {"n": 11}  # type: ignore[union-attr]


def test_an_expected_sequence_that_is_wrong_is_a_conflict() -> None:
    with make_service() as service:
        service.create_checkpoint("W", {"a": 1}, expected_sequence=0)
        with pytest.raises(CheckpointConflictError):
            service.create_checkpoint("W", {"a": 2}, expected_sequence=0)
        assert service.create_checkpoint("W", {"a": 2}, expected_sequence=1).sequence == 2


def test_another_writer_is_a_conflict_once_and_then_built_upon() -> None:
    store = MemoryStore()
    mine, other = make_service(store), make_service(store)
    mine.create_checkpoint("W", {"a": 1})
    other.create_checkpoint("W", {"a": 2})
    with pytest.raises(CheckpointConflictError):
        mine.create_checkpoint("W", {"a": 3})
    assert mine.create_checkpoint("W", {"a": 3}).sequence == 3
    assert [mine.restore_checkpoint(f"W@{n}").context["a"] for n in (1, 2, 3)] == [1, 2, 3]


def test_a_failed_commit_fails_those_on_top_of_it_and_the_next_call_starts_afresh() -> None:
    store = FailingStore()
    with make_service(store) as service:
        service.create_checkpoint("W", {"a": 1})
        store.fail("commit")
        futures = [service.create_checkpoint("W", {"a": number}, wait=False) for number in (2, 3, 4)]
        failed = [future.exception(10) for future in futures]
        assert isinstance(failed[0], CheckpointWriteError)
        with pytest.raises(CheckpointWriteError):
            service.flush()
        service.flush()
        last = service.create_checkpoint("W", {"a": 5})
        restored = [service.restore_checkpoint(f"W@{n}").context for n in range(1, last.sequence + 1)]
        assert restored[0] == {"a": 1} and restored[-1] == {"a": 5}


def test_a_type_nobody_registered_is_refused_before_anything_is_written() -> None:
    with make_service() as service:
        with pytest.raises(UnsupportedTypeError, match=r"context\.deep\[0\]"):
            service.create_checkpoint("W", {"deep": [Invoice(1, Decimal(1))]})
        assert service.list_checkpoints("W") == []
        service.create_checkpoint("W", {"a": 1})


def test_a_registered_type_comes_back_as_itself() -> None:
    registry = TypeRegistry()
    registry.register(Invoice)
    with make_service(registry=registry) as service:
        invoices = {"invoices": [Invoice(1, Decimal("2.50"))]}
        service.create_checkpoint("W", invoices, agent_state={"last": Invoice(2, Decimal(1))})
        assert service.restore_checkpoint("W@1").context == {"invoices": [Invoice(1, Decimal("2.50"))]}
        found = service.get_by_id("W@1")
        assert found is not None and found.agent_state == {"last": Invoice(2, Decimal(1))}


def test_a_state_above_the_limit_is_refused_and_one_near_it_warned_about_once_per_doubling() -> None:
    with make_service(warn_bytes=1000, limit_bytes=10_000) as service:
        with pytest.raises(StateTooLargeError):
            service.create_checkpoint("W", {"text": "x" * 10_001})
        assert service.list_checkpoints("W") == []
        with pytest.warns(StateSizeWarning):
            service.create_checkpoint("W", {"text": "x" * 1100})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            service.create_checkpoint("W", {"text": "x" * 1500})
        with pytest.warns(StateSizeWarning):
            service.create_checkpoint("W", {"text": "x" * 2500})
        with pytest.raises(StateTooLargeError):
            service.create_checkpoint("W", {"a": 1}, stage_state={"x": "y" * 10_000})


def test_large_values_become_blobs_and_are_kept_once() -> None:
    store = MemoryStore()
    with make_service(store) as service:
        text, raw = "long text " * 5000, bytes(range(256)) * 200
        service.create_checkpoint("A", {"text": text, "again": text, "raw": raw})
        service.create_checkpoint("B", {"a": 1})
        service.create_checkpoint("B", {"a": 1, "text": text})
        assert store.stats()["blobs"] == 2
        assert service.restore_checkpoint("A@1").context == {"text": text, "again": text, "raw": raw}
        assert service.restore_checkpoint("B@2").context == {"a": 1, "text": text}


def test_a_lifted_string_that_grows_costs_what_it_grew_by() -> None:
    store = MemoryStore()
    with make_service(store) as service:
        text = "start " * 10_000
        service.create_checkpoint("W", {"text": text})
        for _ in range(50):
            text += "a little more "
            service.create_checkpoint("W", {"text": text})
        assert store.stats()["blobs"] == 1
        assert service.restore_checkpoint("W@51").context == {"text": text}
        assert max(map(len, store.records("W", 2, 51))) < 2000


@pytest.mark.sweep
def test_a_huge_change_leaves_the_record_for_a_blob() -> None:
    store = MemoryStore()
    with make_service(store, compression="none", warn_bytes=10**9) as service:
        service.create_checkpoint("W", {"a": 1})
        many = [f"item {number:07d}" for number in range(100_000)]
        service.create_checkpoint("W", {"a": 1, "many": many})
        assert len(next(store.records("W", 2, 2))) < 2000
        assert service.restore_checkpoint("W@2").context == {"a": 1, "many": many}
        assert service.validate_checkpoint("W@2")


@pytest.mark.parametrize("mode", ["default", "performance", "compliance"])
@pytest.mark.parametrize("compression", ["none", "zstd", "gzip"])
def test_every_encoding_and_compression_is_read_back(mode: str, compression: str) -> None:
    with make_service(mode=mode, compression=compression, compression_threshold_bytes=100) as service:
        state: dict[str, Any] = {
            "items": [{"n": n, "raw": bytes([n])} for n in range(40)],
            "nan": float("inf"),
        }
        for number in range(40):
            state["items"][number]["n"] = f"changed to {number} " * 20
            service.create_checkpoint("W", state)
        assert service.restore_checkpoint("W@40").context == state
        assert service.validate_checkpoint("W@20").valid
        assert service.restore_checkpoint("W@1").context["items"][1] == {"n": 1, "raw": b"\x01"}


def test_a_promise_to_only_append_is_kept_or_found_out_at_a_keyframe() -> None:
    with make_service() as service:
        state = {"log": [f"line {number}" for number in range(1000)]}
        for number in range(20):
            state["log"].append(f"new {number}")
            service.create_checkpoint("W", state, append_only=["log"])
        assert service.restore_checkpoint("W@20").context == state
        state["log"][5] = "changed behind the promise"
        with pytest.warns(PromiseBrokenWarning, match="context.log"):
            for number in range(200):
                state["log"].append(f"newer {number}")
                last = service.create_checkpoint("W", state, append_only=["log"])
                if service._engine.kit.store.keyframes("W")[-1].sequence == last.sequence:
                    break
        assert service.restore_checkpoint(last).context == state


def test_deleting_leaves_a_tombstone_and_what_others_need() -> None:
    store = MemoryStore()
    with make_service(store) as service:
        ids = [service.create_checkpoint("W", {"n": number}) for number in range(4)]
        assert service.delete(ids[1])
        assert not service.delete(ids[1])
        with pytest.raises(CheckpointNotFoundError, match="pruned"):
            service.restore_checkpoint(ids[1])
        assert [meta.id.sequence for meta in service.list_checkpoints("W")] == [4, 3, 1]
        assert service.restore_checkpoint(ids[3]).context == {"n": 3}
        assert service.validate_checkpoint(ids[2])


def test_a_workflow_goes_on_after_its_newest_and_after_all_checkpoints_were_deleted() -> None:
    with make_service() as service:
        ids = [service.create_checkpoint("W", {"n": number}) for number in range(3)]
        service.delete(ids[2])
        again = service.create_checkpoint("W", {"n": 2})
        assert again.sequence == 4
        for number in (1, 2, 4):
            assert service.delete(f"W@{number}")
        assert service.load_latest("W") is None
        last = service.create_checkpoint("W", {"n": 9})
        assert last.sequence == 5
        assert service.restore_checkpoint(last).context == {"n": 9}
        assert service.validate_checkpoint(last)


def test_pruning_keeps_what_it_must_and_tells_what_went() -> None:
    store = MemoryStore()
    with make_service(store) as service:
        for number in range(100):
            service.create_checkpoint("W", {"n": number, "pad": [str(number) * 500] * 5})
        planned = service.prune_checkpoints("W", retain_count=5, retain_days=0, dry_run=True)
        assert planned.dry_run and int(planned) > 90
        assert len(service.list_checkpoints("W", limit=1000)) == 100
        pruned = service.prune_checkpoints("W", retain_count=5, retain_days=0)
        assert pruned.removed == planned.removed and not pruned.dry_run
        assert pruned.freed_bytes > 0
        left = [meta.id for meta in service.list_checkpoints("W")]
        assert [left_id.sequence for left_id in left[:5]] == [100, 99, 98, 97, 96]
        for left_id in left:
            assert service.restore_checkpoint(left_id).context["n"] == left_id.sequence - 1
            assert service.validate_checkpoint(left_id)
        assert int(service.prune_checkpoints("W", retain_count=5, retain_days=0)) == 0
        assert service.create_checkpoint("W", {"n": 100}).sequence == 101


def test_the_two_that_always_stay_hang_on_different_keyframes() -> None:
    store = FailingStore()
    with make_service(store) as service:
        for number in range(6):
            service.create_checkpoint("W", {"n": number, "text": "x" * 3000})
        assert len(store.keyframes("W")) == 1
        service.prune_checkpoints("W", retain_count=2, retain_days=0)
        assert len(store.keyframes("W")) == 2
        store.alter("keyframe", lambda data: data)
        store.fail("keyframe", CheckpointCorruptError("damaged"))
        with pytest.warns(StoreDamageWarning, match="older one"):
            assert service.restore_checkpoint("W@6").context["n"] == 5


def test_retention_runs_after_saves_by_default() -> None:
    store = MemoryStore()
    with make_service(store, retain=True, retain_count=3, retain_days=0) as service:
        for number in range(200):
            service.create_checkpoint("W", {"n": number, "text": str(number) * 700})
        assert len(service.list_checkpoints("W", limit=1000)) < 100
        assert service.restore_checkpoint("W@latest").context["n"] == 199


def test_a_keyframe_that_could_not_be_written_is_made_up_later() -> None:
    store = FailingStore()
    service = make_service(store)
    store.fail("put_keyframe", times=1000)
    for number in range(60):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    assert [keyframe.sequence for keyframe in store.keyframes("W")] == [1]
    assert service.restore_checkpoint("W@60").context["n"] == 59
    store._failures.clear()
    later = make_service(store)
    later.create_checkpoint("W", {"n": 60})
    assert [keyframe.sequence for keyframe in store.keyframes("W")] == [1, 60]
    assert later.restore_checkpoint("W@61").context == {"n": 60}


def test_validation_names_what_is_wrong() -> None:
    store = FailingStore()
    with make_service(store) as service:
        for number in range(3):
            service.create_checkpoint("W", {"n": number})
        assert service.validate_checkpoint("W@3").valid
        store.alter("records", lambda records: [data.replace(b'"n"', b'"m"') for data in records])
        result = service.validate_checkpoint("W@3")
        assert not result and "not the one that was committed" in result.problems[0]
        with pytest.raises(CheckpointCorruptError):
            service.restore_checkpoint("W@3")


def test_a_difference_is_told_as_operations() -> None:
    with make_service() as service:
        numbers = list(range(100))
        service.create_checkpoint("W", {"a": 1, "list": numbers})
        service.create_checkpoint("W", {"a": 1, "list": [*numbers, 100], "b": True})
        ops = service.diff_checkpoints("W@1", "W@2")
        assert [(op["op"], op["path"]) for op in ops] == [
            ("splice", ["context", "list"]),
            ("set", ["context", "b"]),
        ]
        assert service.diff_checkpoints("W@2", "W@2") == []


def test_a_fork_starts_with_the_state_and_goes_its_own_way() -> None:
    store = MemoryStore()
    registry = TypeRegistry()
    registry.register(Invoice)
    make_service(store, registry).create_checkpoint("W", {"i": Invoice(1, Decimal(2)), "text": "x" * 20_000})
    stranger = make_service(store)
    forked = stranger.fork_workflow("W@1", "V")
    assert (forked.workflow_id, forked.sequence) == ("V", 1)
    with pytest.raises(CheckpointConflictError):
        stranger.fork_workflow("W@1", "V")
    service = make_service(store, registry)
    state = service.restore_checkpoint("V@1")
    assert state.context == {"i": Invoice(1, Decimal(2)), "text": "x" * 20_000}
    assert state.workflow_id == "V"
    assert b'"forked_from":{"wf":"W","seq":1,' in next(store.records("V", 1, 1))
    service.create_checkpoint("V", {"i": 2})
    assert service.restore_checkpoint("W@1").context["i"] == Invoice(1, Decimal(2))


def test_events_are_read_back_verified_and_in_order() -> None:
    with make_service() as service:
        service.create_checkpoint("W", {"a": 1})
        event = service.append_event(
            "W",
            "TASK_ASSIGNED",
            {"task": "T-1", "due": datetime(2026, 2, 1, tzinfo=UTC)},
            agent_id="worker-1",
            step_id="s-4",
            parent_id="s-1",
            cp_seq=1,
            cost={"tokens": 100, "usd": 0.002},
        )
        decided = service.record_decision("W", "go on", rationale="why not", confidence=0.9, agent_id="lead")
        service.update_agent_state("W", "worker-1", {"progress": 0.5})
        later = service.append_event("W", "NOTE", wait=False).result()
        events = service.events("W")
        assert [item.type for item in events] == [
            "CHECKPOINT_CREATED",
            "TASK_ASSIGNED",
            "DECISION_RECORDED",
            "AGENT_STATE_UPDATED",
            "NOTE",
        ]
        assert [item.seq for item in events] == [1, 2, 3, 4, 5]
        assert events[1] == event and events[2] == decided and events[4] == later
        assert [item.seq for item in service.events("W", after=3)] == [4, 5]
        assert [item.seq for item in service.events("W", type="NOTE")] == [5]
        assert [item.seq for item in service.events("W", limit=2)] == [1, 2]
        assert service.create_checkpoint("W", {"a": 2}).sequence == 2


def test_an_event_that_was_changed_is_not_returned() -> None:
    store = FailingStore()
    with make_service(store) as service:
        for number in range(3):
            service.append_event("W", "STEP", {"n": number})
        store.alter("events", lambda lines: [line.replace(b'"n":1', b'"n":7') for line in lines])
        with pytest.raises(CheckpointCorruptError):
            service.events("W")
        with pytest.raises(CheckpointCorruptError):
            service.events("W", after=1)


def test_ids_are_checked_before_anything_is_written() -> None:
    with make_service() as service:
        for call in (
            lambda: service.create_checkpoint("", {}),
            lambda: service.create_checkpoint("W", {}, stage_id="\n"),
            lambda: service.append_event("..", "X"),
            lambda: service.fork_workflow("W@1", "\x00"),
        ):
            with pytest.raises(InvalidIdError):
                call()
        with pytest.raises(InvalidStateError, match="workflow_start"):
            service.create_checkpoint("W", {}, type="nonsense")
        with pytest.raises(TypeError):
            service.create_checkpoint("W", {}, colour="red")  # type: ignore[call-overload]


def test_a_closed_service_takes_nothing_and_closing_twice_is_fine() -> None:
    service = make_service()
    future = service.create_checkpoint("W", {"a": 1}, wait=False)
    service.close()
    service.close()
    assert future.result().sequence == 1
    with pytest.raises(StoreClosedError):
        service.create_checkpoint("W", {"a": 2})


def test_threads_that_share_a_workflow_lose_nothing() -> None:
    with make_service() as service:
        seen: list[int] = []

        def work(name: str) -> None:
            for number in range(25):
                seen.append(service.create_checkpoint("W", {"who": name, "n": number}).sequence)
                service.append_event("W", "STEP", {"n": number})

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(1, 101))
        assert len(service.events("W")) == 200
        assert all(service.validate_checkpoint(f"W@{number}") for number in (1, 50, 100))


@pytest.mark.sweep
def test_a_state_that_another_thread_changes_is_stored_as_one_snapshot() -> None:
    with make_service() as service:
        state: dict[str, Any] = {"items": [{"n": number} for number in range(500)], "log": []}
        stop = threading.Event()

        def disturb() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                state["items"][number % 400]["n"] = number
                state["log"].append(number)
                if number % 50 == 0:
                    state["log"].clear()
                    state["items"].append({"n": number})
                    del state["items"][0]

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            ids = [service.create_checkpoint("W", state, force=True) for _ in range(40)]
        finally:
            stop.set()
            thread.join()
        assert all(service.validate_checkpoint(checkpoint_id) for checkpoint_id in ids)
        last = service.create_checkpoint("W", state)
        assert service.restore_checkpoint(last).context == state


def test_a_program_can_ask_what_the_store_holds() -> None:
    service = make_service()
    service.create_checkpoint("b", {"x": 1})
    service.append_event("a", "NOTE")
    assert service.workflows() == ["a", "b"]
    assert service.stats()["checkpoints"] == 1


@pytest.mark.parametrize("options", [{}, {"agent_id": "a"}])
def test_a_phase_that_no_listing_can_hold_is_refused_and_nothing_is_made(options: dict[str, Any]) -> None:
    service = make_service()
    service.create_checkpoint("WF", {"n": 1})
    with pytest.raises(InvalidStateError, match="phase"):
        service.create_checkpoint("WF", WorkflowState(phase=1.5), **options)
    assert len(service.list_checkpoints("WF")) == 1


def test_a_fork_does_not_mix_with_events_that_are_there() -> None:
    service = make_service()
    service.create_checkpoint("WF", {"n": 1})
    service.append_event("OTHER", "STEP", {})
    with pytest.raises(CheckpointConflictError, match="of that name"):
        service.fork_workflow("WF@1", "OTHER")
    assert len(service.events("OTHER")) == 1


def test_a_limit_may_be_any_number() -> None:
    service = make_service()
    service.create_checkpoint("WF", {"n": 1})
    assert len(service.list_checkpoints("WF", limit=10**30)) == 1
    assert len(service.events("WF", limit=10**30)) == 1
