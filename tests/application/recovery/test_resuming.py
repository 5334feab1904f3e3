"""Resuming work: what a handler is given, what is recorded of it, and what its caller is told."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.execution_context import ExecutionContext
from holdfast.application.resolve import resolve
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    HandlerNotFoundError,
    LeaseHeldError,
    LeaseLostError,
    NoValidCheckpointError,
)
from holdfast.domain.recovery import RecoverySettings
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.resumptions import PATIENT_SECONDS, Worker, make_worker
from tests.canaries import CANARIES
from tests.encrypted import MARKER, encrypted_store, service

SHORT_SECONDS = 0.05


@pytest.fixture
def worker() -> Worker:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume", agent_state={"kept": True})
    return worker


def on_resume(worker: Worker, function: Any) -> None:
    worker.app.handlers.register("resume", function)


def told(worker: Worker) -> list[tuple[str, str]]:
    """Tell types and outcomes of the trail, without reads."""
    worker.service.flush()
    found = worker.service.audit.query_events()
    return [(str(entry.type), str(entry.outcome)) for entry in found]


def test_a_handler_goes_on_from_the_state_and_its_end_is_recorded(worker: Worker) -> None:
    seen: list[ExecutionContext] = []

    def resume(context: ExecutionContext) -> str:
        seen.append(context)
        assert worker.statuses() == [(1, "recovering", 0)]
        worker.service.create_checkpoint("W", {**context.workflow_state.context, "resumed": True})
        return "W"

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert result.success and result
    assert (result.handler, result.resumed_workflow_id, result.workflow_id) == ("resume", "W", "W")
    assert result.checkpoint_used is not None and result.checkpoint_used.sequence == 1
    assert result.validation_errors == ()
    [context] = seen
    assert context.workflow_state.context == {"n": 1}
    assert context.workflow_state.checkpoint_id == "W@1"
    assert context.agent_state == {"kept": True}
    assert context.checkpoint.status is CheckpointStatus.RECOVERING
    assert result.recovered_checkpoint is not None
    assert result.recovered_checkpoint.status is CheckpointStatus.COMPLETED
    assert worker.statuses() == [(1, "completed", 0), (2, "active", 0)]
    assert [step.step for step in result.steps] == ["validate", "begin", "handler", "record"]
    assert worker.service.lease_of("W") is None


def test_coroutines_and_objects_resume_as_well(worker: Worker) -> None:
    class Team:
        async def resume(self, context: ExecutionContext) -> str:
            await asyncio.sleep(0)
            return "another workflow"

    on_resume(worker, Team())
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert result.success
    assert result.resumed_workflow_id == "another workflow"


def test_a_handler_that_answers_nothing_means_the_same_workflow(worker: Worker) -> None:
    on_resume(worker, lambda context: None)
    assert worker.resumption.recover_from_checkpoint("W@1").resumed_workflow_id == "W"


def test_a_handler_that_fails_uses_up_a_retry_and_is_told_with_its_error(worker: Worker) -> None:
    def resume(context: ExecutionContext) -> None:
        raise ValueError("it went wrong")

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert not result
    assert result.validation_errors == ()
    assert result.state is not None and result.state.context == {"n": 1}
    failed = result.recovered_checkpoint
    assert failed is not None
    assert (failed.status, failed.retry_count) == (CheckpointStatus.FAILED, 1)
    assert failed.error_message == "it went wrong"
    assert failed.error_stacktrace is not None and "in resume" in failed.error_stacktrace
    assert result.warnings == (
        "the handler resume failed (ValueError: it went wrong); 2 of 3 attempts are left",
    )
    assert worker.statuses() == [(1, "failed", 1)]
    [line] = worker.resumption.files.failures()
    assert (line["workflow_id"], line["sequence"], line["error_type"]) == ("W", 1, "ValueError")
    assert worker.service.lease_of("W") is None


def test_it_can_be_tried_until_the_retries_are_used_up(worker: Worker) -> None:
    tries: list[int] = []

    def resume(context: ExecutionContext) -> None:
        tries.append(1)
        raise ValueError(len(tries))

    on_resume(worker, resume)
    for _ in range(3):
        assert not worker.resumption.recover_from_checkpoint("W@1").validation_errors
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert len(tries) == 3
    assert "3 are allowed" in result.validation_errors[0]
    assert result.handler is None
    assert worker.statuses() == [(1, "failed", 3)]
    forced = worker.resumption.recover_from_checkpoint("W@1", skip_validation=True)
    assert len(tries) == 4
    assert "3 are allowed" in forced.warnings[0]


def test_secrets_of_an_error_are_nowhere(worker: Worker) -> None:
    canary = CANARIES[0]

    def resume(context: ExecutionContext) -> None:
        raise ValueError(canary.text)

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert canary.secret not in repr(result)
    store = worker.kit.store
    stored = [*store.events("W"), *(store.file(name) or b"" for name in store.files("recovery/"))]
    assert not any(canary.secret.encode() in data for data in stored)


def test_what_stands_against_it_is_answered_and_changes_nothing(worker: Worker) -> None:
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert not result.success
    assert "nobody registered" in result.validation_errors[0]
    assert result.state is not None and result.state.context == {"n": 1}
    assert worker.told_statuses() == []
    assert ("OPERATION_REFUSED", "refused") in told(worker)


def test_without_validation_a_missing_handler_is_an_error() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="gone")
    worker.service.create_checkpoint("W", {"n": 2})
    with pytest.raises(HandlerNotFoundError, match="nobody registered"):
        worker.resumption.recover_from_checkpoint("W@1", skip_validation=True)
    with pytest.raises(HandlerNotFoundError, match="names no handler"):
        worker.resumption.recover_from_checkpoint("W@2", skip_validation=True)
    assert worker.told_statuses() == []


def test_another_handler_can_be_named_or_given(worker: Worker) -> None:
    worker.app.handlers.register("other", lambda context: "by name")
    named = worker.resumption.recover_from_checkpoint("W@1", override_handler="other")
    assert (named.handler, named.resumed_workflow_id) == ("other", "by name")
    given = worker.resumption.recover_from_checkpoint("W@1", override_handler=lambda context: "by itself")
    assert given.resumed_workflow_id == "by itself"


def test_a_completed_checkpoint_stays_completed_whatever_its_handler_does(worker: Worker) -> None:
    worker.resumption.statuses.mark_completed("W@1")
    on_resume(worker, lambda context: None)
    again = worker.resumption.recover_from_checkpoint("W@1")
    assert again.success and "was completed before" in again.warnings[0]

    def fail(context: ExecutionContext) -> None:
        raise ValueError("it went wrong")

    failed = worker.resumption.recover_from_checkpoint("W@1", override_handler=fail)
    assert not failed.success
    assert "ValueError: it went wrong" in failed.warnings[-1]
    assert worker.statuses() == [(1, "completed", 0)]
    assert len(worker.resumption.files.failures()) == 1


def test_a_checkpoint_that_is_not_there_is_an_error(worker: Worker) -> None:
    with pytest.raises(CheckpointNotFoundError):
        worker.resumption.recover_from_checkpoint("W@9")


def test_a_recovery_that_nobody_finished_counts_as_failed(worker: Worker) -> None:
    worker.resumption.statuses.mark_recovering("W@1")
    on_resume(worker, lambda context: None)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert result.success
    assert "ended without an outcome" in result.warnings[0]
    assert worker.told_statuses() == [
        (1, "recovering", 0),
        (1, "failed", 1),
        (1, "recovering", 1),
        (1, "completed", 1),
    ]
    assert worker.resumption.files.failures()[0]["error_type"] == "OwnerDied"


def test_a_handler_that_takes_too_long_has_failed_and_can_see_it() -> None:
    worker = make_worker(recovery=RecoverySettings(timeout_seconds=SHORT_SECONDS))
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    stopped = threading.Event()

    def resume(context: ExecutionContext) -> None:
        while not context.is_over:
            pass
        stopped.set()

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert not result.success
    assert "longer than 0.05 seconds" in result.warnings[0]
    assert worker.statuses() == [(1, "failed", 1)]
    assert stopped.wait(PATIENT_SECONDS)


def test_an_interruption_is_recorded_and_goes_on(worker: Worker) -> None:
    def resume(context: ExecutionContext) -> None:
        raise KeyboardInterrupt

    on_resume(worker, resume)
    with pytest.raises(KeyboardInterrupt):
        worker.resumption.recover_from_checkpoint("W@1")
    assert worker.statuses() == [(1, "failed", 1)]
    assert worker.service.lease_of("W") is None


def test_of_two_services_that_recover_at_once_one_wins() -> None:
    store, entered, refused = MemoryStore(), threading.Event(), threading.Event()
    app = App()
    runs: list[str] = []

    @app.handler("resume")
    def resume(context: ExecutionContext) -> str:
        runs.append("run")
        entered.set()
        assert refused.wait(PATIENT_SECONDS)
        return "W"

    ann, bob = make_worker(store, app), make_worker(store, app)
    ann.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    thread = threading.Thread(target=ann.resumption.recover_from_checkpoint, args=("W@1",))
    thread.start()
    assert entered.wait(PATIENT_SECONDS)
    for loser in (ann, bob):
        with pytest.raises(LeaseHeldError):
            loser.resumption.recover_from_checkpoint("W@1")
    refused.set()
    thread.join()
    assert runs == ["run"]
    assert ann.statuses() == [(1, "completed", 0)]


def test_who_looked_before_another_recovery_ended_is_told_so(worker: Worker) -> None:
    on_resume(worker, lambda context: None)
    looked = resolve(worker.kit.store, "W@1")
    assert worker.resumption.recover_from_checkpoint("W@1").success
    with pytest.raises(CheckpointConflictError, match="another recovery was faster"):
        worker.resumption.resume(looked, WorkflowState("W"))


def test_a_workflow_that_was_lost_meanwhile_is_not_written() -> None:
    store = MemoryStore()
    worker = make_worker(store, lease_seconds=SHORT_SECONDS)
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")

    def resume(context: ExecutionContext) -> None:
        lease = store.lease("W")
        assert lease is not None
        store.release(lease)
        store.acquire("W", "somebody else", 600)

    on_resume(worker, resume)
    with pytest.raises(LeaseLostError):
        worker.resumption.recover_from_checkpoint("W@1")
    assert worker.statuses() == [(1, "recovering", 0)]


def test_a_state_that_was_recovered_elsewhere_is_handed_on(worker: Worker) -> None:
    on_resume(worker, lambda context: str(context.workflow_state.context["replayed"]))
    state = WorkflowState("W", context={"replayed": "yes"})
    result = worker.resumption.resume(resolve(worker.kit.store, "W@1"), state)
    assert (result.success, result.resumed_workflow_id, result.state) == (True, "yes", state)


def test_a_lease_that_the_caller_holds_is_used_and_kept(worker: Worker) -> None:
    lease = worker.service.acquire_lease("W", "ann", ttl_seconds=600)
    on_resume(worker, lambda context: None)
    assert worker.resumption.recover_from_checkpoint("W@1").success
    kept = worker.service.lease_of("W")
    assert kept is not None and kept.token == lease.token


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_stands_in() -> None:
    store = FailingStore()
    worker = make_worker(store)
    on_resume(worker, lambda context: str(context.workflow_state.context["n"]))
    for number in (1, 2):
        worker.service.create_checkpoint("W", {"n": number}, resume_handler="resume")
    store.alter("records", lambda records: (data.replace(b'"seq":2', b'"seq":3') for data in records))
    result = worker.resumption.recover_from_checkpoint("W@2")
    assert result.success and result.resumed_workflow_id == "1"
    assert result.passed_over == (2,)
    assert worker.service._engine.quarantine.is_quarantined("W", 2)
    assert len(result.quarantined) == 1
    assert any("W@1 stands in for it" in warning for warning in result.warnings)
    assert worker.statuses() == [(1, "completed", 0), (2, "failed", 0)]


def test_nothing_that_verifies_is_an_error() -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1}, resume_handler="resume")
    store.alter("keyframe", lambda data: b"{" + data)
    with pytest.raises(NoValidCheckpointError, match="neither the checkpoint nor one before it"):
        worker.resumption.recover_from_checkpoint("W@1")


def test_a_context_can_be_looked_at_without_changing_anything(worker: Worker) -> None:
    context = worker.resumption.context_for("W@1")
    assert context.workflow_state.context == {"n": 1}
    assert [str(one.id) for one in context.checkpoint_chain] == ["W@1"]
    assert worker.told_statuses() == []


def test_an_agent_that_began_and_did_not_end_is_where_a_crashed_workflow_is_resumed() -> None:
    worker = make_worker()
    create = worker.service.create_checkpoint
    create("W", {"n": 1}, type="workflow_start")
    assert str(worker.resumption.resume_point("W")) == "W@1"
    create("W", {"n": 2}, type="agent_start", agent_id="a", resume_handler="resume")
    create("W", {"n": 3}, type="agent_start", agent_id="b")
    create("W", {"n": 4}, type="agent_complete", agent_id="b")
    assert str(worker.resumption.resume_point("W")) == "W@2"
    on_resume(worker, lambda context: context.checkpoint.id.agent_id)
    assert worker.service._engine.recovery.resume_crashed("W").resumed_workflow_id == "a"
    create("W", {"n": 5}, type="agent_complete", agent_id="a")
    assert str(worker.resumption.resume_point("W")) == "W@5"
    with pytest.raises(NoValidCheckpointError):
        worker.resumption.resume_point("V")


def test_how_a_recovery_ended_is_told_in_the_trail(worker: Worker) -> None:
    on_resume(worker, lambda context: None)
    worker.resumption.recover_from_checkpoint("W@1")
    assert ("WORKFLOW_RECOVERED", "success") in told(worker)
    assert [kind for kind, _ in told(worker)].count("CHECKPOINT_STATUS") == 2


def test_in_an_encrypted_store_only_status_and_numbers_are_readable() -> None:
    store = encrypted_store()
    app = App()

    @app.handler("resume")
    def resume(context: ExecutionContext) -> None:
        raise ValueError(f"{MARKER} {context.agent_state}")

    with service(store) as opened:
        opened.create_checkpoint("W", {"n": 1}, resume_handler="resume", agent_state={"kept": MARKER})
        worker = Worker(replace(opened._engine.kit, app=app))
        result = worker.resumption.recover_from_checkpoint("W@1")
        assert result.recovered_checkpoint is not None
        assert result.recovered_checkpoint.error_message == f"{MARKER} {{'kept': '{MARKER}'}}"
        assert worker.told_statuses() == [(1, "recovering", 0), (1, "failed", 1)]
        found = worker.service.get_by_id("W@1")
        assert found is not None and MARKER in (found.error_stacktrace or "")
        names = (*store.files("recovery/"), *store.files("audit/"))
        stored = [*store.events("W"), *(store.file(name) or b"" for name in names), *store.leaves()]
        assert not any(MARKER.encode() in data for data in stored)
        assert any(b'"status":"failed"' in line for line in store.events("W"))


def test_a_handler_may_settle_its_checkpoint_itself(worker: Worker) -> None:
    on_resume(worker, lambda context: worker.service.mark_completed(context.checkpoint.id) and None)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert result.success and "was marked completed while its handler ran" in result.warnings[-1]
    assert worker.told_statuses() == [(1, "recovering", 0), (1, "completed", 0)]


def test_a_handler_that_marked_its_checkpoint_failed_has_not_succeeded(worker: Worker) -> None:
    on_resume(worker, lambda context: worker.service.mark_failed(context.checkpoint.id, "no use") and None)
    assert not worker.resumption.recover_from_checkpoint("W@1").success
    assert worker.statuses() == [(1, "failed", 1)]


def test_the_error_of_a_handler_is_kept_though_it_had_settled_its_checkpoint(worker: Worker) -> None:
    def resume(context: ExecutionContext) -> None:
        worker.service.mark_completed(context.checkpoint.id)
        raise ValueError("after the end")

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert not result.success and "after the end" in result.warnings[-1]
    assert [one["error_message"] for one in worker.resumption.files.failures()] == ["after the end"]


@pytest.mark.parametrize("fails", [False, True])
def test_a_checkpoint_that_is_pruned_while_its_handler_runs_costs_nothing_but_its_status(
    worker: Worker, fails: bool
) -> None:
    def resume(context: ExecutionContext) -> None:
        for number in range(2, 5):
            worker.service.create_checkpoint("W", {"n": number})
        worker.service.prune_checkpoints("W", 2, 0)
        if fails:
            raise ValueError("too late")

    on_resume(worker, resume)
    result = worker.resumption.recover_from_checkpoint("W@1")
    assert result.success is not fails
    assert any("the checkpoint was pruned meanwhile" in warning for warning in result.warnings)
    assert len(worker.resumption.files.failures()) == int(fails)


def test_an_agent_whose_work_was_resumed_to_its_end_is_not_begun_again() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, type="agent_start", agent_id="a", resume_handler="resume")
    on_resume(worker, lambda context: None)
    assert worker.service._engine.recovery.resume_crashed("W").success
    worker.service.create_checkpoint("W", {"n": 2}, resume_handler="resume")
    assert str(worker.resumption.resume_point("W")) == "W@2"
