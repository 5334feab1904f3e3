"""Changes of status are events, committed together with what they change, and stay legal under races."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery.statuses import (
    MESSAGE_CHARS_MAX,
    STACKTRACE_CHARS_MAX,
    Statuses,
    shortened,
)
from holdfast.application.resolve import resolve
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidStateError,
    LeaseHeldError,
)
from holdfast.domain.record import Commit
from holdfast.testing import FailingStore
from tests.application.resumptions import Worker, make_worker
from tests.canaries import CANARIES


@pytest.fixture
def worker() -> Worker:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, agent_id="mercury")
    return worker


@pytest.fixture
def statuses(worker: Worker) -> Statuses:
    return worker.resumption.statuses


def boom(message: str = "it went wrong") -> ValueError:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_a_change_is_an_event_that_a_reader_finds_and_a_listing_shows(
    worker: Worker, statuses: Statuses
) -> None:
    stands = statuses.mark_failed("W@1", boom())
    assert (stands.status, stands.retry_count) == (CheckpointStatus.FAILED, 0)
    [event] = worker.service.events("W", type="CHECKPOINT_STATUS")
    assert (event.cp_seq, event.agent) == (1, "mercury")
    assert event.data["status"] == "failed"
    assert event.data["error_message"] == "it went wrong"
    assert "Traceback" in event.data["error_stacktrace"]
    found = worker.service.get_by_id("W@1")
    assert found is not None
    assert (found.status, found.error_message) == (CheckpointStatus.FAILED, "it went wrong")
    assert found.updated_at == event.timestamp
    assert worker.service.list_checkpoints("W")[0].status is CheckpointStatus.FAILED


def test_the_way_of_a_recovery_uses_up_a_retry_each_time_it_fails(worker: Worker, statuses: Statuses) -> None:
    for attempt in (1, 2):
        assert statuses.mark_recovering("W@1").retry_count == attempt - 1
        assert statuses.mark_failed("W@1", boom()).retry_count == attempt
    statuses.mark_recovering("W@1")
    done = statuses.mark_completed("W@1")
    assert (done.status, done.retry_count, done.error_message) == (CheckpointStatus.COMPLETED, 2, None)
    assert worker.told_statuses() == [
        (1, "recovering", 0),
        (1, "failed", 1),
        (1, "recovering", 1),
        (1, "failed", 2),
        (1, "recovering", 2),
        (1, "completed", 2),
    ]
    assert worker.statuses() == [(1, "completed", 2)]


def test_the_error_that_led_to_a_recovery_stays_readable_meanwhile(
    worker: Worker, statuses: Statuses
) -> None:
    statuses.mark_failed("W@1", boom())
    assert statuses.mark_recovering("W@1").error_message == "it went wrong"
    found = worker.service.get_by_id("W@1")
    assert found is not None and found.error_message == "it went wrong"


def test_moves_that_are_not_legal_change_nothing(worker: Worker, statuses: Statuses) -> None:
    statuses.mark_completed("W@1")
    for move in (
        lambda: statuses.mark_recovering("W@1"),
        lambda: statuses.mark_failed("W@1", "late"),
        lambda: statuses.mark_completed("W@1"),
    ):
        with pytest.raises(InvalidStateError, match="completed cannot become"):
            move()
    assert worker.told_statuses() == [(1, "completed", 0)]


def test_what_is_not_there_cannot_be_marked(statuses: Statuses) -> None:
    with pytest.raises(CheckpointNotFoundError):
        statuses.mark_completed("W@7")


def test_a_pin_keeps_the_status_and_a_status_keeps_the_pin(worker: Worker, statuses: Statuses) -> None:
    statuses.mark_failed("W@1", boom())
    pinned = statuses.pin("W@1")
    assert (pinned.pinned, pinned.status, pinned.error_message) == (
        True,
        CheckpointStatus.FAILED,
        "it went wrong",
    )
    assert statuses.mark_recovering("W@1").pinned
    assert worker.service.list_checkpoints("W")[0].pinned
    assert not statuses.unpin("W@1").pinned
    assert not worker.service.list_checkpoints("W")[0].pinned
    assert worker.statuses() == [(1, "recovering", 0)]


def test_a_pinned_checkpoint_outlives_the_policy(worker: Worker, statuses: Statuses) -> None:
    statuses.pin("W@1")
    for number in range(2, 9):
        worker.service.create_checkpoint("W", {"n": number})
    worker.service.prune_checkpoints("W", retain_count=1, retain_days=0)
    kept = [meta.id.sequence for meta in worker.service.list_checkpoints("W")]
    assert 1 in kept
    assert len(kept) < 8


def test_the_change_and_its_event_are_one_commit_that_the_trail_tells_of() -> None:
    commits: list[Commit] = []

    class Watched(FailingStore):
        def commit(self, group: Sequence[Commit]) -> list[Exception | None]:
            commits.extend(commit for commit in group if commit.workflow_id)
            return super().commit(group)

    worker = make_worker(Watched())
    worker.service.create_checkpoint("W", {"n": 1})
    commits.clear()
    worker.resumption.statuses.mark_completed("W@1")
    [commit] = commits
    assert [transition.status for transition in commit.transitions] == ["completed"]
    assert len(commit.events) == 1
    assert [str(entry.type) for entry in commit.audit] == ["CHECKPOINT_STATUS"]
    assert commit.audit[0].facts["cp_seq"] == 1


def test_secrets_in_errors_are_hidden_before_anything_is_written(worker: Worker, statuses: Statuses) -> None:
    canary = CANARIES[0]
    stands = statuses.mark_failed("W@1", boom(f"cannot log in with {canary.text}"))
    assert stands.error_message is not None and canary.secret not in stands.error_message
    stored = b"".join(worker.kit.store.events("W"))
    assert canary.secret.encode() not in stored


def test_long_errors_lose_their_middle_and_odd_ones_their_oddness(worker: Worker, statuses: Statuses) -> None:
    stands = statuses.mark_failed("W@1", boom("start \ud800 " + "x" * 100_000 + " end"))
    assert stands.error_message is not None and stands.error_stacktrace is not None
    assert len(stands.error_message) <= MESSAGE_CHARS_MAX
    assert len(stands.error_stacktrace) <= STACKTRACE_CHARS_MAX
    assert stands.error_message.startswith("start ?") and stands.error_message.endswith(" end")


def test_short_texts_are_left_as_they_are() -> None:
    assert shortened("abc", 10) == "abc"
    assert len(shortened("a" * 100, 20)) == 20


def test_a_change_is_made_again_when_somebody_else_wrote_in_between() -> None:
    store = MemoryStore()
    ann, bob = make_worker(store), make_worker(store)
    ann.service.create_checkpoint("W", {"n": 1})
    bob.service.append_event("W", "STEP")
    ann.resumption.statuses.mark_failed("W@1", "late")
    assert ann.statuses() == [(1, "failed", 0)]


def test_a_status_that_somebody_else_changed_is_looked_at_first() -> None:
    store = MemoryStore()
    ann, bob = make_worker(store), make_worker(store)
    ann.service.create_checkpoint("W", {"n": 1})
    ann.service.append_event("W", "STEP")
    bob.resumption.statuses.mark_completed("W@1")
    with pytest.raises(InvalidStateError, match="completed cannot become failed"):
        ann.resumption.statuses.mark_failed("W@1", "late")
    assert ann.statuses() == [(1, "completed", 0)]


def test_a_store_where_others_are_always_faster_is_given_up() -> None:
    class Crowded(FailingStore):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            if any(commit.transitions for commit in commits):
                self.calls["conflict"] += 1
                return [CheckpointConflictError("always") for _ in commits]
            return super().commit(commits)

    store = Crowded()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1})
    with pytest.raises(CheckpointConflictError):
        worker.resumption.statuses.mark_completed("W@1")
    assert 1 < store.calls["conflict"] < 100
    assert worker.statuses() == [(1, "active", 0)]


def test_who_does_not_hold_the_lease_changes_no_status() -> None:
    store = MemoryStore()
    ann, bob = make_worker(store), make_worker(store)
    ann.service.create_checkpoint("W", {"n": 1})
    bob.service.acquire_lease("W", "bob")
    with pytest.raises(LeaseHeldError):
        ann.resumption.statuses.mark_completed("W@1")
    bob.resumption.statuses.mark_completed("W@1")


def test_of_many_threads_that_fail_one_recovery_just_one_uses_up_a_retry() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1})
    worker.resumption.statuses.mark_recovering("W@1")
    refused: list[str] = []

    def fail() -> None:
        try:
            worker.resumption.statuses.mark_failed("W@1", "together")
        except InvalidStateError as problem:
            refused.append(problem.code)

    threads = [threading.Thread(target=fail) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 7
    assert worker.statuses() == [(1, "failed", 1)]


def test_an_error_that_is_only_told_changes_nothing(worker: Worker, statuses: Statuses) -> None:
    statuses.mark_completed("W@1")
    stands = statuses.told(resolve(worker.kit.store, "W@1"), boom())
    assert (stands.status, stands.error_message) == (CheckpointStatus.COMPLETED, "it went wrong")
    assert worker.told_statuses() == [(1, "completed", 0)]
