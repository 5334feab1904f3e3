"""An agent fails while the workflow lives: what failed is kept, it is restarted, else work is rolled back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast.application.recovery.partial_failure import PartialFailures, with_less_confidence
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointWriteError, InvalidIdError, PermissionDeniedError
from holdfast.domain.retry import RetryPolicy
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.resumptions import Worker, make_worker
from tests.canaries import CANARIES

POLICY = RetryPolicy(max_attempts=3, jitter=False)


class Scene:
    """A workflow with one agent that failed."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.pauses: list[float] = []
        engine = worker.service._engine
        self.failures = PartialFailures(
            worker.kit,
            engine.writer,
            engine.reader,
            worker.resumption.statuses,
            engine.wait,
            sleep=self.pauses.append,
            draw=lambda: 1.0,
        )
        self.state = WorkflowState(
            "W",
            phase=2,
            confidence={"mercury": 0.8, "overall": 0.6, "atlas": 0.9},
            agent_states={"mercury": {"status": "active", "confidence": 0.8, "progress": 0.75}},
            context={"draft": "good"},
        )
        worker.service.create_checkpoint("W", self.state, stage_id="build")
        self.state.context = {"draft": "half written"}

    def handle(self, restart: Callable[[WorkflowState], Any], **more: Any) -> Any:
        error = more.pop("error", ValueError("mercury lost the thread"))
        return self.failures.handle(
            self.state, "mercury", error, restart, **{"stage_id": "build", "policy": POLICY, **more}
        )


@pytest.fixture
def scene() -> Scene:
    return Scene(make_worker())


def failing(times: int, answer: Any = "done") -> Callable[[WorkflowState], Any]:
    tries: list[int] = []

    def restart(state: WorkflowState) -> Any:
        tries.append(1)
        if len(tries) <= times:
            raise RuntimeError(f"try {len(tries)}")
        return answer

    return restart


def test_what_failed_is_kept_before_anything_is_tried(scene: Scene) -> None:
    def restart(state: WorkflowState) -> None:
        found = scene.worker.service.get_by_id("W@2")
        assert found is not None and found.type is CheckpointType.ERROR_STATE
        assert (found.id.stage_id, found.id.agent_id, found.max_retries) == ("build", "mercury", 3)
        failure = found.agent_state["failure"]
        assert (failure["error_type"], failure["error_message"]) == ("ValueError", "mercury lost the thread")
        assert "ValueError" in failure["error_stacktrace"] and failure["failed_at"]

    outcome = scene.handle(restart)
    assert outcome.restarted
    kept = scene.worker.service.restore_checkpoint("W@2")
    assert kept.context == {"draft": "half written"}
    assert kept.agent_states["mercury"] == {
        "status": "failed",
        "confidence": 0.8,
        "progress": 0.75,
        "blockers": ["mercury lost the thread"],
    }


def test_an_agent_that_works_again_goes_on_with_a_little_less_confidence(scene: Scene) -> None:
    outcome = scene.handle(failing(1))
    assert outcome.restarted
    assert (outcome.attempts, outcome.answer, outcome.rolled_back_to) == (2, "done", None)
    assert outcome.errors == ("RuntimeError: try 1",)
    assert outcome.state.context == {"draft": "half written"}
    assert outcome.state.confidence == pytest.approx({"mercury": 0.648, "overall": 0.486, "atlas": 0.9})
    assert outcome.state.agent_states["mercury"]["confidence"] == pytest.approx(0.648)
    assert scene.state.agent_states["mercury"] == {"status": "active", "confidence": 0.8, "progress": 0.75}
    assert scene.worker.statuses() == [(1, "active", 0), (2, "completed", 1)]
    assert scene.pauses == [0.1]


def test_a_state_that_the_restart_answers_is_the_one_to_go_on_from(scene: Scene) -> None:
    async def restart(state: WorkflowState) -> WorkflowState:
        return WorkflowState("W", context={"draft": "written again"}, confidence=1.0)

    outcome = scene.handle(restart)
    assert outcome.state.context == {"draft": "written again"}
    assert outcome.state.confidence == pytest.approx(0.9)


def test_where_no_restart_helps_the_work_goes_on_from_the_checkpoint_before(scene: Scene) -> None:
    outcome = scene.handle(failing(9))
    assert not outcome.restarted
    assert outcome.attempts == 3
    assert str(outcome.rolled_back_to) == "W@1" and str(outcome.checkpoint) == "W@3"
    assert outcome.state.context == {"draft": "good"}
    assert outcome.state.confidence == pytest.approx({"mercury": 0.4, "overall": 0.3, "atlas": 0.9})
    assert outcome.state.decisions[-1]["description"] == "Rolled back to W@1 after 3 restarts failed"
    assert outcome.state.decisions[-1]["rationale"] == "RuntimeError: try 3"
    latest = scene.worker.service.load_latest("W")
    assert latest is not None and latest == outcome.state
    assert scene.worker.statuses() == [(1, "active", 0), (2, "failed", 3), (3, "active", 0)]
    assert scene.pauses == [0.1, 0.2]


def test_history_tells_the_failure_and_the_way_back(scene: Scene) -> None:
    scene.handle(failing(9))
    context = scene.worker.resumption.context_for("W@3")
    assert [str(one.id) for one in context.checkpoint_chain] == ["W@1", "W@3"]
    assert scene.worker.service.restore_checkpoint("W@2").context == {"draft": "half written"}


def test_what_is_not_worth_trying_is_rolled_back_at_once(scene: Scene) -> None:
    outcome = scene.handle(failing(0), error=PermissionDeniedError("no"))
    assert (outcome.restarted, outcome.attempts) == (False, 0)
    assert str(outcome.rolled_back_to) == "W@1"
    assert scene.worker.statuses()[1] == (2, "failed", 0)


def test_trying_ends_with_an_error_that_is_not_worth_it(scene: Scene) -> None:
    def restart(state: WorkflowState) -> None:
        raise PermissionDeniedError("no")

    assert scene.handle(restart).attempts == 1


def test_without_a_checkpoint_before_there_is_nothing_to_roll_back_to() -> None:
    scene = Scene(make_worker())
    scene.worker.service.delete("W@1")
    outcome = scene.handle(failing(9))
    assert not outcome.restarted
    assert outcome.rolled_back_to is outcome.checkpoint is None
    assert "no checkpoint before" in outcome.errors[-1]
    assert outcome.state.context == {"draft": "half written"}


def test_a_checkpoint_before_that_is_damaged_is_passed_over() -> None:
    store = FailingStore()
    scene = Scene(make_worker(store))
    scene.worker.service.create_checkpoint("W", {"draft": "later"})
    store.alter("records", lambda records: (data.replace(b'"seq":2', b'"seq":9') for data in records))
    outcome = scene.handle(failing(9))
    assert str(outcome.rolled_back_to) == "W@1"


def test_what_cannot_be_kept_is_not_restarted() -> None:
    store = FailingStore()
    scene = Scene(make_worker(store))
    started: list[int] = []
    store.fail("commit", CheckpointWriteError("no"))
    with pytest.raises(CheckpointWriteError):
        scene.handle(lambda state: started.append(1))
    assert started == []


def test_secrets_of_an_error_are_not_kept(scene: Scene) -> None:
    canary = CANARIES[0]
    outcome = scene.handle(failing(9), error=ValueError(canary.text))
    store = scene.worker.kit.store
    stored = b"".join([*store.events("W"), *store.records("W", 1, 3)])
    assert canary.secret.encode() not in stored
    assert canary.secret not in repr(outcome)


def test_an_agent_needs_a_name(scene: Scene) -> None:
    with pytest.raises(InvalidIdError):
        scene.failures.handle(scene.state, "", ValueError(), failing(0))


@pytest.mark.parametrize(("given", "expected"), [(0.8, 0.4), (1, 0.5), (None, None), (True, True)])
def test_confidence_is_lowered_where_it_is_a_number(given: Any, expected: Any) -> None:
    state = WorkflowState("W", confidence=given, agent_states={"a": {"confidence": given}, "b": "odd"})
    lowered = with_less_confidence(state, "a", 0.5)
    assert lowered.confidence == expected
    assert lowered.agent_states["a"]["confidence"] == expected
    assert with_less_confidence(state, "b", 0.5).agent_states == state.agent_states
    assert state.confidence is given


def test_work_is_never_rolled_back_to_another_failure(scene: Scene) -> None:
    assert scene.handle(failing(0)).restarted
    outcome = scene.handle(failing(9))
    assert str(outcome.error_checkpoint) == "W@3" and str(outcome.rolled_back_to) == "W@1"
    assert outcome.state.context == {"draft": "good"}
    assert outcome.state.agent_states["mercury"]["status"] == "active"


def test_what_a_restart_answered_is_not_lost_with_the_checkpoint_of_the_failure(scene: Scene) -> None:
    def restart(state: WorkflowState) -> str:
        for number in range(4):
            scene.worker.service.create_checkpoint("W", {"n": number})
        scene.worker.service.prune_checkpoints("W", 2, 0)
        if restarted:
            return "done"
        restarted.append(1)
        raise RuntimeError("not yet")

    restarted: list[int] = []
    outcome = scene.handle(restart)
    assert outcome.restarted and outcome.answer == "done" and outcome.attempts == 2
    assert "RuntimeError: not yet" in outcome.errors
    assert any("the checkpoint was pruned" in error for error in outcome.errors)


def test_what_a_restart_answered_is_not_lost_where_somebody_else_settled_the_failure(scene: Scene) -> None:
    def restart(state: WorkflowState) -> str:
        scene.worker.service.mark_failed("W@2", "somebody gave it up")
        return "done"

    outcome = scene.handle(restart)
    assert outcome.restarted and outcome.answer == "done"
    assert "is not recorded" in outcome.errors[0]
