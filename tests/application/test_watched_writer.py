"""Each checkpoint that was asked for is told of once, whatever became of it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    DiskFullError,
    StoreClosedError,
    UnsupportedTypeError,
)
from holdfast.domain.telemetry import SaveOutcome
from tests.application.watched import Collected, Heard, watched_service


def test_a_checkpoint_is_told_with_its_times_and_sizes() -> None:
    heard = Heard()
    with watched_service(heard) as service:
        made = service.create_checkpoint("W", {"a": 1})
    [saved] = heard.saves
    assert saved.outcome is SaveOutcome.OK and saved.is_whole
    assert saved.encode_seconds > 0 and saved.queue_seconds is not None and saved.write_seconds is not None
    assert saved.raw_bytes > 0 and saved.stored_bytes > saved.raw_bytes
    assert saved.made_at == made.timestamp.timestamp()


def test_a_change_is_told_as_one_and_a_repetition_as_nothing_new() -> None:
    heard = Heard()
    with watched_service(heard) as service:
        for number in (1, 2, 2):
            service.create_checkpoint("W", {"a": number, "text": "word " * 1000})
    assert [saved.outcome for saved in heard.saves] == [SaveOutcome.OK, SaveOutcome.OK, SaveOutcome.UNCHANGED]
    first, change, repeated = heard.saves
    assert first.is_whole and not change.is_whole
    assert change.stored_bytes < change.raw_bytes
    assert (repeated.raw_bytes, repeated.stored_bytes, repeated.made_at) == (0, 0, None)


def test_what_cannot_be_stored_is_told_as_a_failure() -> None:
    heard = Heard()
    with watched_service(heard) as service, pytest.raises(UnsupportedTypeError):
        service.create_checkpoint("W", {"a": object()})
    [saved] = heard.saves
    assert saved.outcome is SaveOutcome.FAILED and saved.write_seconds is None


def test_losing_a_race_is_told_as_a_conflict() -> None:
    store, heard = MemoryStore(), Heard()
    mine, other = watched_service(heard, store=store), watched_service(store=store)
    mine.create_checkpoint("W", {"a": 1})
    other.create_checkpoint("W", {"a": 2})
    with pytest.raises(CheckpointConflictError):
        mine.create_checkpoint("W", {"a": 3})
    with pytest.raises(CheckpointConflictError):
        mine.create_checkpoint("W", {"a": 4}, expected_sequence=77)
    assert [saved.outcome for saved in heard.saves] == ["ok", "conflict", "conflict"]
    assert heard.saves[1].made_at is None and heard.saves[1].raw_bytes == 0


def test_a_store_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    store, heard = MemoryStore(), Heard()

    def fail(commits: Any) -> Any:
        raise CheckpointWriteError("the disk is gone")

    monkeypatch.setattr(store, "commit", fail)
    service = watched_service(heard, store=store)
    with pytest.raises(CheckpointWriteError):
        service.create_checkpoint("W", {"a": 1})
    assert [saved.outcome for saved in heard.saves] == ["failed"]


def test_what_waits_in_memory_is_told_as_held(monkeypatch: pytest.MonkeyPatch) -> None:
    store, heard, full = MemoryStore(), Heard(), [True]
    commit = store.commit

    def maybe(commits: Any) -> Any:
        if full[0]:
            raise DiskFullError("the disk is full")
        return commit(commits)

    monkeypatch.setattr(store, "commit", maybe)
    service = watched_service(heard, store=store, on_fault="degrade")
    service.create_checkpoint("W", {"a": 1})
    full[0] = False
    service.flush()
    assert heard.saves[0].outcome is SaveOutcome.HELD and heard.saves[0].write_seconds is None


def test_a_closed_store_leaves_nobody_awaited() -> None:
    heard = Heard()
    service = watched_service(heard)
    service.create_checkpoint("W", {"a": 1})
    writer = service._engine.writer
    service.close()
    with pytest.raises(StoreClosedError):
        service.create_checkpoint("W", {"a": 2})
    assert [saved.outcome for saved in heard.saves] == ["ok", "failed"]
    assert writer._watch._awaited == {}  # type: ignore[attr-defined]


def test_events_and_removals_are_no_checkpoints() -> None:
    heard = Heard()
    with watched_service(heard) as service:
        for number in range(5):
            service.create_checkpoint("W", {"a": number})
        service.append_event("W", "NOTED", {})
        service.prune_checkpoints("W", retain_count=2, retain_days=0)
        service.delete("W@4")
    assert len(heard.saves) == 5
    [(pruned, freed_bytes, policy), (deleted, _, asked)] = heard.removals
    assert (pruned, policy, deleted, asked) == (3, "asked", 1, "asked") and freed_bytes >= 0


def test_retention_is_told_apart_from_what_people_ask_for() -> None:
    heard = Heard()
    with watched_service(heard, retain=True, retain_count=2, retain_days=0) as service:
        for number in range(60):
            service.create_checkpoint("W", {"text": f"{number} " * 3000})
    assert {policy for _, _, policy in heard.removals} == {"retention"}


def test_who_waits_for_the_same_workflow_is_told() -> None:
    heard = Heard()
    service = watched_service(heard)
    writer = service._engine.writer
    began = threading.Event()

    def create() -> None:
        began.set()
        service.create_checkpoint("W", {"a": 1})

    with writer.bases.slot("W") as slot:
        thread = threading.Thread(target=create)
        thread.start()
        began.wait()
        while slot.users < 2:
            # Until the other one has taken the slot out, which it then has to wait for.
            began.wait(0.001)
    thread.join()
    assert len(heard.waits) == 1 and heard.waits[0] >= 0
    assert len(heard.saves) == 1


def test_many_threads_are_each_told_once() -> None:
    heard, collected = Heard(), Collected()
    service = watched_service(heard, collected)

    def create(name: str) -> None:
        for number in range(20):
            service.create_checkpoint(name, {"a": number})

    threads = [threading.Thread(target=create, args=(f"W-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [saved.outcome for saved in heard.saves] == ["ok"] * 80
    assert len(collected.named("holdfast.save")) == 80


def test_nobody_who_does_not_ask_for_it_pays_for_it() -> None:
    service = watched_service()
    engine = service._engine
    assert type(engine.writer).__name__ == "Writer" and engine.queue.on_decided is None
    assert type(engine.recovery).__name__ == "Recovery" and type(engine.reader).__name__ == "Reader"
