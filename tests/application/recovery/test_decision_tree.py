"""The decision tree and the table of partial failures of the checkpoint/recovery design, in every store.

Each branch and each row is provoked for real: bytes are flipped where they lie, processes that held a
workflow are dead, parents are in another store, two threads recover at once. What takes a process of its own
is in tests/process/test_resuming.py.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.system import SystemClock
from holdfast.application.app import App
from holdfast.application.execution_context import ExecutionContext
from holdfast.application.recovery.incomplete import incomplete_workflows
from holdfast.application.recovery.owners import own_name
from holdfast.application.recovery.resuming import Resumption
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError, LeaseHeldError
from tests.application.resumptions import PATIENT_SECONDS
from tests.damage import KINDS, Spoiler

MISSING = "11111111-1111-4111-8111-111111111111"


class Scene:
    """One store that is opened with an app whose handler does what the test says."""

    def __init__(self, spoiler: Spoiler) -> None:
        self.spoiler = spoiler
        self.app = App()
        self.runs: list[str] = []
        self.app.handlers.register("resume", self.resume)

    def resume(self, context: ExecutionContext) -> str:
        self.runs.append(f"{context.checkpoint.id}: {context.workflow_state.context}")
        return context.workflow_id

    @contextmanager
    def opened(self, **settings: Any) -> Iterator[tuple[CheckpointService, Resumption]]:
        with self.spoiler.opened(app=self.app, **settings) as service:
            yield service, service._engine.resumption

    def begin(self, *states: Any, **options: Any) -> None:
        """Commit checkpoints, and let them lie where they stay."""
        with self.opened() as (service, _):
            for state in states:
                service.create_checkpoint("W", state, **{"resume_handler": "resume", **options})


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return Scene(Spoiler(request.param, tmp_path))


def statuses(service: CheckpointService) -> list[tuple[int, str, int]]:
    entries = service._engine.kit.store.entries("W")
    return [(entry.sequence, entry.status, entry.retry_count) for entry in entries]


def journal(service: CheckpointService) -> list[tuple[int | None, str, int]]:
    """Tell every change of status, as the journal of events has it."""
    events = service.events("W", type="CHECKPOINT_STATUS")
    return [(event.cp_seq, event.data["status"], event.data["retry_count"]) for event in events]


# -- the decision tree -----------------------------------------------------------------------------


def test_load_not_found(scene: Scene) -> None:
    scene.begin({"n": 1})
    with scene.opened() as (_, resumption), pytest.raises(CheckpointNotFoundError):
        resumption.recover_from_checkpoint("W@2")
    assert scene.runs == []


def test_status_completed_bars_when_the_workflow_ended(scene: Scene) -> None:
    scene.begin({"n": 1})
    scene.begin({"n": 2}, type="workflow_complete")
    with scene.opened() as (service, resumption):
        service._engine.statuses.mark_completed("W@2")
        for name in ("W@1", "W@2"):
            result = resumption.recover_from_checkpoint(name)
            assert "the workflow ended with checkpoint 2" in result.validation_errors[0]
        assert statuses(service) == [(1, "active", 0), (2, "completed", 0)]
    assert scene.runs == []


def test_status_completed_does_not_bar_while_the_workflow_goes_on(scene: Scene) -> None:
    scene.begin({"n": 1})
    with scene.opened() as (service, resumption):
        service._engine.statuses.mark_completed("W@1")
        assert resumption.recover_from_checkpoint("W@1").success
        assert statuses(service) == [(1, "completed", 0)]
    assert scene.runs == ["W@1: {'n': 1}"]


def test_status_recovering_with_a_living_owner(scene: Scene) -> None:
    scene.begin({"n": 1})
    entered, refused = threading.Event(), threading.Event()

    def resume(context: ExecutionContext) -> None:
        scene.runs.append("run")
        entered.set()
        assert refused.wait(PATIENT_SECONDS)

    scene.app.handlers.register("resume", resume)
    with scene.opened() as (service, resumption):
        winner = threading.Thread(target=resumption.recover_from_checkpoint, args=("W@1",))
        winner.start()
        assert entered.wait(PATIENT_SECONDS)
        assert statuses(service) == [(1, "recovering", 0)]
        with pytest.raises(LeaseHeldError):
            resumption.recover_from_checkpoint("W@1")
        refused.set()
        winner.join()
        assert statuses(service) == [(1, "completed", 0)]
    assert scene.runs == ["run"]


def test_status_recovering_whose_owner_is_dead_counts_as_failed(scene: Scene) -> None:
    scene.begin({"n": 1})
    name, _, start = own_name("recovery").rpartition(":")
    with scene.opened() as (service, resumption):
        service._engine.statuses.mark_recovering("W@1")
        service._engine.kit.store.acquire("W", f"{name}:{int(start) + 1}", 600)
        result = resumption.recover_from_checkpoint("W@1")
        assert result.success
        assert "is dead" in result.warnings[0] and "without an outcome" in result.warnings[1]
        assert journal(service) == [
            (1, "recovering", 0),
            (1, "failed", 1),
            (1, "recovering", 1),
            (1, "completed", 1),
        ]


def test_status_active_and_failed_continue(scene: Scene) -> None:
    scene.begin({"n": 1}, {"n": 2})
    with scene.opened() as (service, resumption):
        service._engine.statuses.mark_failed("W@1", "before")
        assert resumption.recover_from_checkpoint("W@1").success
        assert resumption.recover_from_checkpoint("W@2").success
        assert statuses(service) == [(1, "completed", 0), (2, "completed", 0)]
    assert scene.runs == ["W@1: {'n': 1}", "W@2: {'n': 2}"]


def test_retries_exceeded(scene: Scene) -> None:
    def resume(context: ExecutionContext) -> None:
        scene.runs.append("run")
        raise ValueError("never")

    scene.app.handlers.register("resume", resume)
    scene.begin({"n": 1}, max_retries=2)
    with scene.opened() as (service, resumption):
        for _ in range(2):
            assert resumption.recover_from_checkpoint("W@1").validation_errors == ()
        result = resumption.recover_from_checkpoint("W@1")
        assert "was tried 2 times, 2 are allowed" in result.validation_errors[0]
        assert statuses(service) == [(1, "failed", 2)]
    assert scene.runs == ["run", "run"]


def test_context_with_a_missing_parent(scene: Scene) -> None:
    scene.begin({"n": 1}, parent_checkpoint_id=MISSING)
    scene.begin({"n": 2})
    with scene.opened() as (service, resumption):
        result = resumption.recover_from_checkpoint("W@2")
        assert "the chain of checkpoints is broken: W@1 continues" in result.validation_errors[0]
        assert statuses(service) == [(1, "active", 0), (2, "active", 0)]
        assert scene.runs == []
        assert resumption.recover_from_checkpoint("W@2", skip_validation=True).success
    assert scene.runs == ["W@2: {'n': 2}"]


def test_context_with_the_complete_chain(scene: Scene) -> None:
    scene.begin({"n": 1}, agent_id="a", agent_state={"x": 1})
    scene.begin({"n": 2}, agent_id="a", agent_state={"y": 2})
    with scene.opened() as (_, resumption):
        context = resumption.context_for("W@2")
        assert [str(one.id) for one in context.checkpoint_chain] == ["W@1", "W@2"]
        assert context.agent_state == {"x": 1, "y": 2}


def test_handler_not_found(scene: Scene) -> None:
    scene.begin({"n": 1}, resume_handler="resumed")
    with scene.opened() as (service, resumption):
        result = resumption.recover_from_checkpoint("W@1")
        assert "nobody registered" in result.validation_errors[0]
        assert "Did you mean 'resume'" in result.validation_errors[0]
        assert statuses(service) == [(1, "active", 0)]
        assert resumption.recover_from_checkpoint("W@1", override_handler="resume").success
    assert scene.runs == ["W@1: {'n': 1}"]


def test_resume_success_and_failure(scene: Scene) -> None:
    scene.begin({"n": 1}, {"n": 2})
    with scene.opened() as (service, resumption):
        done = resumption.recover_from_checkpoint("W@1")
        assert done.recovered_checkpoint is not None
        assert done.recovered_checkpoint.status is CheckpointStatus.COMPLETED

        def fail(context: ExecutionContext) -> None:
            raise ValueError("it went wrong")

        failed = resumption.recover_from_checkpoint("W@2", override_handler=fail)
        assert failed.recovered_checkpoint is not None
        assert failed.recovered_checkpoint.error_message == "it went wrong"
        assert statuses(service) == [(1, "completed", 0), (2, "failed", 1)]
    with scene.opened() as (service, resumption):
        stored = service.get_by_id("W@2")
        assert stored is not None
        assert (stored.status, stored.retry_count) == (CheckpointStatus.FAILED, 1)
        assert stored.error_message == "it went wrong"
        assert "in fail" in (stored.error_stacktrace or "")
        assert [line["sequence"] for line in resumption.files.failures()] == [2]
        assert [line["sequence"] for line in resumption.files.latest()] == [2]
        assert service.validate_checkpoint("W@2").valid
        assert [finding for finding in service._engine.kit.store.check() if finding.harm] == []


# -- the table of partial failures -----------------------------------------------------------------


def test_row_an_agent_crashes_in_the_middle_of_its_work(scene: Scene) -> None:
    with scene.opened() as (service, _):
        service.create_checkpoint("W", {"n": 1}, type="workflow_start")
        service.create_checkpoint(
            "W", {"n": 2}, type="agent_start", agent_id="mercury", resume_handler="resume"
        )
        service.create_checkpoint("W", {"n": 3}, type="agent_complete", agent_id="atlas")
    with scene.opened() as (service, resumption):
        # In memory the clock of the tests stands far behind.
        kit = replace(service._engine.kit, clock=SystemClock())
        [crashed] = incomplete_workflows(kit, stale_seconds=0)
        assert crashed.workflow_id == "W"
        assert str(resumption.resume_point("W")) == "W@2"
        result = service._engine.recovery.resume_crashed("W")
        assert result.success
        assert "is not the last checkpoint (3)" in result.warnings[0]
    assert scene.runs == ["W@2: {'n': 2}"]


def test_row_state_corruption(scene: Scene) -> None:
    scene.begin({"n": 1}, {"n": 2}, {"n": 3})
    scene.spoiler.spoil_record(3, workflow_id="W")
    with scene.opened() as (service, resumption):
        result = resumption.recover_from_checkpoint("W@3")
        assert result.success
        assert (str(result.checkpoint_used), result.passed_over) == ("W@2", (3,))
        assert len(result.quarantined) == 1
        assert service._engine.quarantine.is_quarantined("W", 3)
        assert statuses(service)[1:] == [(2, "completed", 0), (3, "failed", 0)]
    assert scene.runs == ["W@2: {'n': 2}"]


def test_row_concurrent_writes(scene: Scene) -> None:
    """Nobody's write is lost and none wins silently: who is second is told, and the numbers stay unique."""
    with scene.opened() as (first, _), scene.opened() as (second, _):
        first.create_checkpoint("W", {"by": "first"})
        second.create_checkpoint("W", {"by": "second"})
        with pytest.raises(CheckpointConflictError):
            first.create_checkpoint("W", {"by": "first again"})
        assert [number for number, *_ in statuses(second)] == [1, 2]


def test_two_recoveries_at_once_by_threads(scene: Scene) -> None:
    """They all begin together; the one that wins ends when all others were told that they lost."""
    scene.begin({"n": 1})
    count = 4
    begin, all_lost = threading.Barrier(count), threading.Semaphore(0)
    outcomes: list[str] = []

    def resume(context: ExecutionContext) -> None:
        scene.runs.append("run")
        for _ in range(count - 1):
            assert all_lost.acquire(timeout=PATIENT_SECONDS)

    def recover(resumption: Resumption) -> None:
        begin.wait(PATIENT_SECONDS)
        try:
            outcomes.append(f"success {resumption.recover_from_checkpoint('W@1').success}")
        except LeaseHeldError:
            outcomes.append("lost")
            all_lost.release()

    scene.app.handlers.register("resume", resume)
    with scene.opened() as (service, resumption):
        threads = [threading.Thread(target=recover, args=(resumption,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["lost"] * (count - 1) + ["success True"]
        assert journal(service) == [(1, "recovering", 0), (1, "completed", 0)]
    assert scene.runs == ["run"]


def test_closing_leaves_a_pointer_to_the_latest_workflows(scene: Scene) -> None:
    scene.begin({"n": 1}, {"n": 2}, agent_id="mercury")
    with scene.opened() as (service, resumption):
        if scene.spoiler.kind == "memory":
            # What is in memory is never closed by these tests.
            resumption.files.rebuild()
        [latest] = resumption.files.latest()
        assert (latest["workflow_id"], latest["sequence"], latest["agent_id"]) == ("W", 2, "mercury")
        assert [finding for finding in service._engine.kit.store.check() if finding.harm] == []


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_an_erased_workflow_leaves_nothing_of_what_its_handler_said(kind: str, tmp_path: Path) -> None:
    marker = "MARKER-5f1c"
    scene = Scene(Spoiler(kind, tmp_path))

    def fail(context: ExecutionContext) -> None:
        raise ValueError(marker)

    def traces() -> list[str]:
        found = (path for path in tmp_path.rglob("*") if path.is_file())
        return [path.name for path in found if marker.encode() in path.read_bytes()]

    scene.app.handlers.register("resume", fail)
    scene.begin({"n": 1})
    with scene.opened() as (_, resumption):
        assert not resumption.recover_from_checkpoint("W@1").success
    assert traces()
    with scene.opened() as (service, resumption):
        service.erasure.workflow("W", reason="asked for")
        assert resumption.files.failures() == []
    assert traces() == []
