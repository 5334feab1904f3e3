"""Whether work can be resumed: every reason why not is found, and all of them are told at once."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from holdfast.application.recovery.examining import Attempt, examine, problems_of
from holdfast.application.recovery.stopwatch import Stopwatch
from holdfast.application.resolve import resolve
from holdfast.domain.recovery import RecoverySettings
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.resumptions import Worker, make_worker

MISSING = "11111111-1111-4111-8111-111111111111"


def resume(context: Any) -> None:
    return None


@pytest.fixture
def worker() -> Worker:
    worker = make_worker()
    worker.app.handlers.register("resume", resume)
    return worker


def examined(worker: Worker, name: str = "W@latest", handler: Any = None, **state: Any) -> Attempt:
    found = resolve(worker.kit.store, name)
    attempt = Attempt(found, WorkflowState("W", **state), Stopwatch(inf))
    examine(worker.kit, worker.service._engine.reader, attempt, handler)
    return attempt


def test_nothing_stands_against_an_active_checkpoint_with_a_known_handler(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    attempt = examined(worker)
    assert attempt.problems == attempt.warnings == []
    assert (attempt.handler, attempt.function, attempt.attempts_max) == ("resume", resume, 3)


def test_a_workflow_that_ended_cannot_be_resumed_from_any_of_its_checkpoints(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    worker.service.create_checkpoint("W", {"n": 2}, type="workflow_complete", resume_handler="resume")
    for name in ("W@1", "W@2"):
        [problem] = examined(worker, name).problems
        assert problem.startswith("the workflow ended with checkpoint 2")


def test_a_completed_checkpoint_of_a_workflow_that_goes_on_can_be_resumed(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    worker.resumption.statuses.mark_completed("W@1")
    assert examined(worker).problems == []


def test_a_state_that_says_it_cannot_be_resumed_is_believed(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    [problem] = examined(worker, resumable=False).problems
    assert "cannot be resumed" in problem


@pytest.mark.parametrize(("own", "limit"), [(None, 2), (1, 1), (5, 5)])
def test_the_checkpoints_own_limit_of_retries_wins(own: int | None, limit: int) -> None:
    worker = make_worker(recovery=RecoverySettings(attempts_max=2))
    worker.app.handlers.register("resume", resume)
    options: dict[str, Any] = {} if own is None else {"max_retries": own}
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume", **options)
    for _ in range(limit):
        assert examined(worker).problems == []
        worker.resumption.statuses.mark_recovering("W@1")
        worker.resumption.statuses.mark_failed("W@1", "again")
    [problem] = examined(worker).problems
    assert f"was tried {limit} times, {limit} are allowed" in problem


def test_a_handler_that_is_not_named_or_not_known_is_a_problem(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1})
    worker.service.create_checkpoint("W", {"n": 2}, resume_handler="resum")
    assert examined(worker, "W@1").problems == ["W@1 names no handler that could resume the work"]
    [problem] = examined(worker, "W@2").problems
    assert "Did you mean 'resume'" in problem


def test_another_handler_may_be_named_or_given(worker: Worker) -> None:
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="gone")
    named = examined(worker, handler="resume")
    assert (named.problems, named.function) == ([], resume)
    given = examined(worker, handler=resume)
    assert (given.problems, given.function, given.handler) == ([], resume, "resume")


def test_all_problems_are_told_at_once(worker: Worker) -> None:
    worker.service.create_checkpoint(
        "W", {"n": 1}, max_retries=0, resume_handler="gone", parent_checkpoint_id=MISSING
    )
    problems = examined(worker).problems
    assert len(problems) == 3
    assert "0 are allowed" in problems[0]
    assert "chain of checkpoints is broken" in problems[1]
    assert "nobody registered" in problems[2]


def test_an_older_checkpoint_is_resumed_with_a_warning(worker: Worker) -> None:
    for number in (1, 2):
        worker.service.create_checkpoint("W", {"n": number}, resume_handler="resume")
    attempt = examined(worker, "W@1")
    assert attempt.problems == []
    assert attempt.warnings == ["W@1 is not the last checkpoint (2): work since then is done again"]


def test_a_record_that_is_damaged_leaves_the_listing_to_go_by() -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume", max_retries=9)
    store.alter("records", lambda records: (data.replace(b'"seq":1', b'"seq":2') for data in records))
    attempt = examined(worker, handler=resume)
    assert attempt.problems == []
    assert "is damaged" in attempt.warnings[0]
    assert attempt.attempts_max == 3
    assert attempt.checkpoint is not None and attempt.checkpoint.resume_handler is None


def test_what_would_be_found_is_told_without_a_change(worker: Worker) -> None:
    made = worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume", max_retries=1)
    worker.service._engine.statuses.mark_recovering(made)
    before = worker.kit.store.head("W")
    reader, found = worker.service._engine.reader, resolve(worker.kit.store, made)
    # Whoever began it is gone: that was the one try.
    [problem] = problems_of(worker.kit, reader, found, WorkflowState("W"), None)
    assert "was tried 1 times, 1 are allowed" in problem
    assert worker.kit.store.head("W") == before
