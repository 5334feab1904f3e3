"""Group commit: order, outcomes, leaders, and what happens to commits on top of a failed one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import pytest

from holdfast.application.commit_queue import CommitQueue, Lineage, Ticket
from holdfast.domain.errors import CheckpointConflictError, CheckpointWriteError, StoreClosedError
from holdfast.domain.record import Commit, Head


class Backend:
    """Commits groups, slowly if told to: each group waits for a permit."""

    def __init__(self, *, gated: bool = False) -> None:
        self.groups: list[list[str]] = []
        self.outcomes: dict[str, Exception] = {}
        self.breaks: BaseException | None = None
        self.entered = threading.Semaphore(0)
        self.permits = threading.Semaphore(0 if gated else 10_000)
        self.threads: list[str] = []

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self.entered.release()
        self.permits.acquire()
        self.threads.append(threading.current_thread().name)
        self.groups.append([commit.workflow_id for commit in commits])
        if self.breaks is not None:
            problem, self.breaks = self.breaks, None
            raise problem
        return [self.outcomes.pop(commit.workflow_id, None) for commit in commits]


def ticket(name: str, lineage: Lineage | None = None, **more: Any) -> Ticket:
    return Ticket(Commit(name, Head()), lineage or Lineage(), name, **more)


def waiting(queue: CommitQueue, item: Ticket, results: list[object]) -> threading.Thread:
    """Wait for a ticket in a thread of its own and note what comes of it."""

    def run() -> None:
        try:
            results.append(queue.wait(item))
        except Exception as problem:
            results.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_caller_that_finds_no_leader_commits_in_its_own_thread() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    assert queue.wait(queue.submit(ticket("A"))) == "A"
    assert backend.groups == [["A"]]
    assert backend.threads == [threading.current_thread().name]
    assert queue._background is None


def test_everything_queued_meanwhile_shares_the_next_commit() -> None:
    backend = Backend(gated=True)
    queue = CommitQueue(backend.commit)
    results: list[object] = []
    threads = [waiting(queue, queue.submit(ticket("A")), results)]
    backend.entered.acquire()
    threads += [waiting(queue, queue.submit(ticket(name)), results) for name in "BCD"]
    backend.permits.release(10)
    for thread in threads:
        thread.join()
    assert backend.groups == [["A"], ["B", "C", "D"]]
    assert sorted(map(str, results)) == ["A", "B", "C", "D"]


def test_commits_keep_the_order_they_were_queued_in() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    tickets = [queue.submit(ticket(str(number))) for number in range(5)]
    queue.wait(tickets[-1])
    assert backend.groups == [["0", "1", "2", "3", "4"]]
    assert all(item.done for item in tickets)


def test_who_does_not_wait_is_told_by_the_background_thread() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    told: SimpleQueue[Ticket] = SimpleQueue()
    item = ticket("A", on_done=told.put)
    queue.submit(item)
    assert told.get(timeout=10) is item and item.done and item.error is None
    assert backend.threads == ["holdfast-commits"]
    queue.close()


def test_one_outcome_does_not_touch_the_others() -> None:
    backend = Backend()
    backend.outcomes["B"] = CheckpointConflictError("too late")
    queue = CommitQueue(backend.commit)
    a, b, c = (queue.submit(ticket(name)) for name in "ABC")
    assert queue.wait(a) == "A"
    with pytest.raises(CheckpointConflictError, match="too late"):
        queue.wait(b)
    assert queue.wait(c) == "C"


@pytest.mark.parametrize("kind", [CheckpointConflictError, CheckpointWriteError])
def test_a_commit_on_top_of_a_failed_one_is_not_tried(kind: type[CheckpointWriteError]) -> None:
    backend = Backend(gated=True)
    backend.outcomes["first"] = kind("no")
    queue = CommitQueue(backend.commit)
    lineage = Lineage()
    results: list[object] = []
    thread = waiting(queue, queue.submit(ticket("first", lineage)), results)
    backend.entered.acquire()
    on_top, other = queue.submit(ticket("on top", lineage)), queue.submit(ticket("other"))
    backend.permits.release(10)
    thread.join()
    with pytest.raises(kind, match="on top of it") as caught:
        queue.wait(on_top)
    assert caught.value.__cause__ is results[0]
    assert queue.wait(other) == "other"
    assert backend.groups == [["first"], ["other"]]
    assert lineage.failure is results[0]


def test_a_store_that_raises_fails_the_whole_group_with_errors_of_their_own() -> None:
    backend = Backend()
    backend.breaks = CheckpointWriteError("the disk is gone", hint="Look at it.")
    queue = CommitQueue(backend.commit)
    a, b = queue.submit(ticket("A")), queue.submit(ticket("B"))
    for item in (a, b):
        with pytest.raises(CheckpointWriteError, match="the disk is gone"):
            queue.wait(item)
    assert a.error is not b.error
    assert queue.wait(queue.submit(ticket("C"))) == "C"


def test_an_error_that_is_not_ours_becomes_one_of_ours() -> None:
    backend = Backend()
    backend.breaks = OSError("strange")
    queue = CommitQueue(backend.commit)
    with pytest.raises(CheckpointWriteError, match="strange"):
        queue.wait(queue.submit(ticket("A")))


def test_an_interrupt_of_the_leader_fails_its_group_and_lets_others_lead() -> None:
    backend = Backend()
    backend.breaks = KeyboardInterrupt()
    queue = CommitQueue(backend.commit)
    item = queue.submit(ticket("A"))
    with pytest.raises(KeyboardInterrupt):
        queue.wait(item)
    assert isinstance(item.error, CheckpointWriteError)
    assert item.lineage.failure is not None
    assert queue.wait(queue.submit(ticket("B"))) == "B"


def test_a_waiter_that_is_interrupted_leaves_its_commit_to_the_background() -> None:
    backend = Backend(gated=True)
    queue = CommitQueue(backend.commit)
    results: list[object] = []
    thread = waiting(queue, queue.submit(ticket("A")), results)
    backend.entered.acquire()
    left = queue.submit(ticket("B"))
    waiter, _ = queue._enlist(left)
    assert waiter is not None
    queue._abandon(left, waiter)
    backend.permits.release(10)
    thread.join()
    queue.flush()
    assert left.done and left.error is None
    assert backend.groups == [["A"], ["B"]]
    queue.close()


def test_flush_waits_for_everything_queued_so_far() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    queue.flush()
    items = [queue.submit(ticket(str(number), on_done=lambda _: None)) for number in range(10)]
    queue.flush()
    assert all(item.done for item in items)
    queue.close()


def test_two_threads_may_wait_for_one_commit() -> None:
    backend = Backend(gated=True)
    queue = CommitQueue(backend.commit)
    results: list[object] = []
    first = waiting(queue, queue.submit(ticket("A")), results)
    backend.entered.acquire()
    shared = queue.submit(ticket("B"))
    threads = [first, waiting(queue, shared, results), waiting(queue, shared, results)]
    backend.permits.release(10)
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == ["A", "B", "B"]


def test_a_closed_queue_finishes_what_it_has_and_takes_nothing_more() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    item = queue.submit(ticket("A", on_done=lambda _: None))
    queue.close()
    queue.close()
    assert item.done
    with pytest.raises(StoreClosedError):
        queue.submit(ticket("B"))


def test_many_threads_lose_nothing() -> None:
    backend = Backend()
    queue = CommitQueue(backend.commit)
    results: list[object] = []

    def work(name: str) -> None:
        for number in range(50):
            results.append(queue.wait(queue.submit(ticket(f"{name}{number}"))))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 400
    assert sorted(name for group in backend.groups for name in group) == sorted(map(str, results))
