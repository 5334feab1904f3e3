"""Parents of a checkpoint: those before it, those that were named, pruned ones, missing ones."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery.ancestry import Ancestry, described
from holdfast.application.resolve import resolve
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.errors import CheckpointRecoveryError, ChecksumMismatchError
from holdfast.testing import FailingStore
from tests.application.resumptions import Worker, make_worker

MISSING = "11111111-1111-4111-8111-111111111111"


def ancestry(worker: Worker, name: str) -> Ancestry:
    reader = worker.service._engine.reader
    return Ancestry(worker.kit, reader, resolve(worker.kit.store, name))


def names(worker: Worker, name: str) -> list[str]:
    return [str(link) for link in ancestry(worker, name).links()]


def fill(worker: Worker, count: int, workflow_id: str = "W") -> None:
    for number in range(1, count + 1):
        worker.service.create_checkpoint(workflow_id, {"n": number}, agent_state={"n": number})


def test_a_checkpoint_continues_the_one_before_it() -> None:
    worker = make_worker()
    fill(worker, 4)
    assert names(worker, "W@3") == ["W@1", "W@2", "W@3"]
    described = ancestry(worker, "W@3").checkpoints()
    assert [one.agent_state for one in described] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [one.parent_checkpoint_id for one in described[1:]] == [one.id.uuid for one in described[:-1]]


def test_a_parent_that_was_named_is_followed_into_another_workflow() -> None:
    worker = make_worker()
    fill(worker, 3, "V")
    fill(worker, 2, "W")
    worker.service.create_checkpoint("W", {"n": 3}, parent_checkpoint_id="V@2")
    worker.service.create_checkpoint("W", {"n": 4})
    assert names(worker, "W@4") == ["V@1", "V@2", "W@3", "W@4"]


def test_a_parent_that_was_named_and_is_not_there_breaks_the_chain() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, parent_checkpoint_id=MISSING)
    fill(worker, 2)
    with pytest.raises(CheckpointRecoveryError, match=f"W@1 continues {MISSING}, which is not in the store"):
        names(worker, "W@latest")


def test_a_parent_that_was_pruned_ends_the_chain_and_does_not_break_it() -> None:
    worker = make_worker()
    fill(worker, 12)
    worker.service.prune_checkpoints("W", retain_count=2, retain_days=0)
    kept = [f"W@{meta.id.sequence}" for meta in reversed(worker.service.list_checkpoints("W"))]
    assert names(worker, "W@12") == [one for one in kept if int(one[2:]) > 10]
    worker.service.create_checkpoint("V", {"n": 1}, parent_checkpoint_id="W@11")
    worker.service.delete("W@11")
    assert names(worker, "V@1") == ["V@1"]


def test_a_circle_is_a_broken_chain() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1})
    uuid = next(worker.kit.store.entries("W")).uuid
    store = worker.kit.store
    assert isinstance(store, MemoryStore)
    worker.service.create_checkpoint("V", {"n": 1}, parent_checkpoint_id=uuid)
    child = ancestry(worker, "V@1")
    child._named[("W", 1)] = next(store.entries("V")).uuid
    with pytest.raises(CheckpointRecoveryError, match="its own ancestor"):
        child.links()


def test_a_long_chain_is_read_in_a_few_blocks() -> None:
    store = FailingStore()
    worker = make_worker(store)
    fill(worker, 600)
    store.calls.clear()
    assert len(ancestry(worker, "W@600").links()) == 600
    assert store.calls["records"] == 3
    assert store.calls["entries"] == 2


def test_a_damaged_record_in_between_does_not_break_the_chain_but_cannot_be_described() -> None:
    store = FailingStore()
    worker = make_worker(store)
    fill(worker, 5)

    def flip(records: object) -> object:
        return (data.replace(b'"seq":3', b'"seq":3 ') for data in records)  # type: ignore[attr-defined]

    store.alter("records", flip)
    assert names(worker, "W@5") == [f"W@{n}" for n in range(1, 6)]
    with pytest.raises(ChecksumMismatchError):
        ancestry(worker, "W@5").checkpoints()


def test_a_description_has_everything_that_was_told_and_is_not_told_to_the_trail() -> None:
    worker = make_worker()
    worker.service.create_checkpoint(
        "W",
        {"n": 1},
        stage_id="build",
        agent_id="mercury",
        stage_state={"s": (1, 2)},
        agent_state={"a": 1},
        resume_handler="resume",
        max_retries=7,
        session_id="s-1",
        agent_version="2.1.0",
    )
    worker.resumption.statuses.mark_failed("W@1", "it went wrong")
    entries_before = worker.service._engine.trail.has_noted
    found = resolve(worker.kit.store, "W@1")
    one = described(worker.kit, worker.service._engine.reader, found)
    assert worker.service._engine.trail.has_noted == entries_before
    assert one == worker.service.get_by_id("W@1")
    assert (one.status, one.error_message) == (CheckpointStatus.FAILED, "it went wrong")
    assert one.stage_state == {"s": (1, 2)}


def test_the_last_change_of_each_is_read_in_one_pass_over_the_journal() -> None:
    store = FailingStore()
    worker = make_worker(store)
    fill(worker, 4)
    for number in (1, 2, 3):
        worker.resumption.statuses.mark_failed(f"W@{number}", f"error {number}")
    worker.resumption.statuses.mark_recovering("W@2")
    worker.resumption.statuses.mark_completed("W@2")
    store.calls.clear()
    chain = ancestry(worker, "W@4").checkpoints()
    assert store.calls["events"] == 1
    assert [(str(one.status), one.error_message) for one in chain] == [
        ("failed", "error 1"),
        ("completed", None),
        ("failed", "error 3"),
        ("active", None),
    ]


def test_a_damaged_event_costs_the_words_of_an_error_and_nothing_else() -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.app.handlers.register("resume", lambda context: None)
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    worker.resumption.statuses.mark_failed("W@1", "it went wrong")
    store.alter("events", lambda lines: (line.replace(b"it went wrong", b"all is well  ") for line in lines))
    found = resolve(store, "W@1")
    reader = worker.service._engine.reader
    with pytest.raises(ChecksumMismatchError):
        reader.last_status(found)
    assert described(worker.kit, reader, found).error_message is None
    assert worker.resumption.recover_from_checkpoint("W@1").success


def test_parents_that_were_named_in_the_same_workflow_are_found_without_searching_the_store() -> None:
    store = FailingStore()
    worker = make_worker(store)
    fill(worker, 1)
    for number in range(2, 20):
        worker.service.create_checkpoint("W", {"n": number}, parent_checkpoint_id=f"W@{number - 1}")
    store.calls.clear()
    assert names(worker, "W@19") == [f"W@{number}" for number in range(1, 20)]
    assert store.calls["find"] == 0
