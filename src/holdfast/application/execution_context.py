"""What a handler is given to go on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

from holdfast.domain.checkpoint import Checkpoint
from holdfast.domain.errors import InvalidStateError, LeaseLostError
from holdfast.domain.state import WorkflowState


class ExecutionContext:
    """The states at a checkpoint, and the checkpoints that led to it, read when first asked for.

    Attributes:
        checkpoint: where the work goes on from.
        workflow_state: the state of the workflow; change it freely.
        warnings: what is different from an undisturbed run.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        workflow_state: WorkflowState,
        load_chain: Callable[[], Sequence[Checkpoint]],
        *,
        is_over: Event | None = None,
        warnings: Sequence[str] = (),
        open_service: Callable[[], Any] | None = None,
    ) -> None:
        self.checkpoint = checkpoint
        self.workflow_state = workflow_state
        self.warnings = tuple(warnings)
        self._load_chain = load_chain
        self._chain: tuple[Checkpoint, ...] | None = None
        self._stage_state: dict[str, Any] | None = None
        self._agent_state: dict[str, Any] | None = None
        self._is_over = is_over or Event()
        self._open_service = open_service

    @property
    def workflow_id(self) -> str:
        """The workflow that goes on."""
        return self.checkpoint.id.workflow_id

    @property
    def service(self) -> Any:
        """The CheckpointService to record with: others are kept from the workflow while it is recovered.

        Raises:
            InvalidStateError: the context was made without one.
            LeaseLostError: the work is not this handler's any more, see `is_over`.
        """
        if self.is_over:
            raise LeaseLostError(
                "nobody waits for this handler any more, and others may have the workflow",
                place=str(self.checkpoint.id),
                hint="Look at `is_over` in loops, and stop.",
            )
        if self._open_service is None:
            raise InvalidStateError("this context has no service", place=str(self.checkpoint.id))
        return self._open_service()

    @property
    def checkpoint_chain(self) -> tuple[Checkpoint, ...]:
        """The checkpoint and those that it continues, the oldest first.

        Raises:
            CheckpointRecoveryError: a parent that was named is not in the store.
            CheckpointCorruptError: one of them is not what was committed.
        """
        if self._chain is None:
            self._chain = tuple(self._load_chain())
        return self._chain

    @property
    def stage_state(self) -> dict[str, Any]:
        """What the stage of the checkpoint kept, merged in order; of all stages, where it is of none."""
        if self._stage_state is None:
            own = self.checkpoint.id.stage_id
            self._stage_state = _merged(
                one.stage_state for one in self.checkpoint_chain if own in (None, one.id.stage_id)
            )
        return self._stage_state

    @property
    def agent_state(self) -> dict[str, Any]:
        """What the agent of the checkpoint kept, merged in order; of all agents, where it is of none."""
        if self._agent_state is None:
            own = self.checkpoint.id.agent_id
            self._agent_state = _merged(
                one.agent_state for one in self.checkpoint_chain if own in (None, one.id.agent_id)
            )
        return self._agent_state

    @property
    def is_over(self) -> bool:
        """True once nobody waits any more: the time is over, or the workflow was taken by somebody else.

        A handler that is no coroutine looks at this in its loops, and stops.
        """
        return self._is_over.is_set()

    def apply_workflow_state(self, state: WorkflowState | Mapping[str, Any]) -> None:
        """Replace the state of the workflow, or merge a plain mapping into its context."""
        if isinstance(state, WorkflowState):
            if state.workflow_id not in ("", self.workflow_id):
                raise InvalidStateError(
                    f"the state belongs to workflow {state.workflow_id!r}", place=self.workflow_id
                )
            self.workflow_state = state
        else:
            self.workflow_state.context = {**self.workflow_state.context, **state}

    def apply_stage_state(self, state: Mapping[str, Any]) -> None:
        """Merge an update into the state of the stage."""
        self.stage_state.update(state)

    def apply_agent_state(self, state: Mapping[str, Any]) -> None:
        """Merge an update into the state of the agent."""
        self.agent_state.update(state)

    def __repr__(self) -> str:
        return f"ExecutionContext({self.checkpoint.id})"


def _merged(states: Any) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for state in states:
        merged.update(state)
    return merged
