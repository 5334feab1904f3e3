"""What a handler is given: states, the checkpoint, and its parents once somebody asks for them."""

from __future__ import annotations

from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from holdfast.application.execution_context import ExecutionContext
from holdfast.domain.checkpoint import Checkpoint, CheckpointType
from holdfast.domain.errors import InvalidStateError, LeaseLostError
from holdfast.domain.ids import CheckpointID
from holdfast.domain.state import WorkflowState

NOON = datetime(2026, 1, 11, 12, tzinfo=UTC)


def checkpoint(
    sequence: int, stage: str | None = None, agent: str | None = None, **states: Any
) -> Checkpoint:
    checkpoint_id = CheckpointID("W", sequence, NOON, "sha256:" + "0" * 64, stage_id=stage, agent_id=agent)
    return Checkpoint(checkpoint_id, CheckpointType.STAGE_COMPLETE, NOON, NOON, **states)


CHAIN = (
    checkpoint(1, "plan", stage_state={"goal": "x", "step": 1}),
    checkpoint(2, "plan", "atlas", agent_state={"in": 1}),
    checkpoint(3, "build", "mercury", agent_state={"in": 2}, stage_state={"step": 7}),
    checkpoint(4, "build", "mercury", agent_state={"out": 3}, stage_state={"files": ["a"]}),
)


def context(chain: tuple[Checkpoint, ...] = CHAIN, **more: Any) -> ExecutionContext:
    return ExecutionContext(chain[-1], WorkflowState("W", context={"a": 1}), lambda: chain, **more)


def test_parents_are_read_when_they_are_asked_for_and_once() -> None:
    reads: list[int] = []

    def load() -> tuple[Checkpoint, ...]:
        reads.append(1)
        return CHAIN

    given = ExecutionContext(CHAIN[-1], WorkflowState("W"), load)
    assert given.workflow_id == "W" and given.checkpoint is CHAIN[-1]
    assert reads == []
    assert given.checkpoint_chain == CHAIN
    assert given.stage_state and given.agent_state and given.checkpoint_chain
    assert reads == [1]


def test_states_of_stage_and_agent_are_merged_in_order_along_the_chain() -> None:
    given = context()
    assert given.stage_state == {"step": 7, "files": ["a"]}
    assert given.agent_state == {"in": 2, "out": 3}


def test_a_checkpoint_of_the_workflow_has_them_all() -> None:
    given = context((*CHAIN, checkpoint(5)))
    assert given.stage_state == {"goal": "x", "step": 7, "files": ["a"]}
    assert given.agent_state == {"in": 2, "out": 3}


def test_updates_are_merged() -> None:
    given = context()
    given.apply_stage_state({"step": 8})
    given.apply_agent_state({"more": True})
    given.apply_workflow_state({"b": 2})
    assert given.stage_state == {"step": 8, "files": ["a"]}
    assert given.agent_state == {"in": 2, "out": 3, "more": True}
    assert given.workflow_state.context == {"a": 1, "b": 2}
    assert CHAIN[-1].stage_state == {"files": ["a"]}


def test_a_whole_state_replaces_the_one_before_and_another_workflows_is_refused() -> None:
    given = context()
    whole = WorkflowState("W", phase=3)
    given.apply_workflow_state(whole)
    assert given.workflow_state is whole
    with pytest.raises(InvalidStateError, match="'V'"):
        given.apply_workflow_state(WorkflowState("V"))


def test_a_handler_can_see_that_nobody_waits_any_more() -> None:
    over = Event()
    given = context(is_over=over, warnings=["careful"])
    seen = [given.is_over]
    over.set()
    seen.append(given.is_over)
    assert seen == [False, True]
    assert given.warnings == ("careful",)
    assert not context().is_over


def test_it_shows_where_the_work_goes_on_from() -> None:
    assert repr(context()) == "ExecutionContext(W@4)"


def test_a_context_that_was_made_without_a_service_says_so() -> None:
    with pytest.raises(InvalidStateError, match="has no service"):
        assert context().service


def test_a_handler_that_nobody_waits_for_can_record_nothing_more() -> None:
    is_over = Event()
    given = context(is_over=is_over, open_service=lambda: "a service")
    assert given.service == "a service"
    is_over.set()
    with pytest.raises(LeaseLostError, match="nobody waits"):
        _ = given.service
