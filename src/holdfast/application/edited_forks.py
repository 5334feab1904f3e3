"""Forks that begin with another state than that of the point they were forked from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.resolve import name_taken
from holdfast.application.service import CheckpointService
from holdfast.application.travel.travelling import Point
from holdfast.domain.errors import InvalidStateError, StateTooLargeError
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.json_patch import Step, patched
from holdfast.domain.state import WorkflowState
from holdfast.ports import Store

#: What names a state among others.
_OWN = ("workflow_id", "session_id", "checkpoint_id")
#: Listings hold it as a number of every store.
_PHASE_MAX = 2**31 - 1


def is_taken(store: Store, workflow_id: str) -> bool:
    """Tell whether there is a workflow of that name."""
    head = store.head(check_workflow_id(workflow_id))
    return bool(head.sequence or head.event_seq)


def check_free(store: Store, workflow_id: str) -> None:
    """Refuse the name of a workflow that is there.

    Raises:
        CheckpointConflictError: there is one.
    """
    if is_taken(store, workflow_id):
        raise name_taken(workflow_id)


def edited_state(kit: Kit, point: Point, new_workflow_id: str, steps: Sequence[Step]) -> WorkflowState:
    """Answer the state at a point with its edits; secrets that were taken out of it stay hidden.

    Everything that could be wrong with it is looked at here: nothing is made that is then left half done.

    Raises:
        EditError: an edit does not fit.
        InvalidStateError: what comes out is no state.
        CheckpointSchemaError: the state holds values that only the program knows.
        CheckpointWriteError: it cannot be stored, or is too large.
    """
    fields: dict[str, Any] = kit.registry.revive(point.tree)
    # What holds its default is not stored, and can be changed all the same.
    changed = patched({**_defaults(), **fields}, steps)
    if any(changed.get(name) != fields.get(name) for name in _OWN):
        raise _no_state(f"{', '.join(_OWN)} are not for edits", new_workflow_id)
    state = WorkflowState.from_fields({**changed, "workflow_id": new_workflow_id})
    _check_kinds(state)
    size_bytes = len(kit.packer.pack(state.to_fields()))
    if size_bytes > kit.limit_bytes:
        raise StateTooLargeError(f"the state has {size_bytes} bytes, the limit is {kit.limit_bytes}")
    return state


def fork_edited(
    service: CheckpointService, point: str, new_workflow_id: str, state: WorkflowState
) -> CheckpointID:
    """Fork, and put the changed state on top: what came from the other workflow stays to be seen.

    Beside `Recording.fork`, which reads the fork's own state to change it: that is told as a look at it.
    """
    service.fork_workflow(point, new_workflow_id)
    return service.create_checkpoint(new_workflow_id, state, type="workflow_start", force=True)


def _defaults() -> dict[str, Any]:
    blank = WorkflowState()
    left_out = {"extra", *_OWN}
    return {
        one.name: getattr(blank, one.name) for one in dataclasses.fields(blank) if one.name not in left_out
    }


def _check_kinds(state: WorkflowState) -> None:
    """Refuse a field of another kind than a new state has there."""
    blank = WorkflowState(state.workflow_id)
    for one in dataclasses.fields(blank):
        usual, found = getattr(blank, one.name), getattr(state, one.name)
        if usual is not None and type(found) is not type(usual):
            raise _no_state(f"{one.name} is a {type(usual).__name__}", state.workflow_id)
    phase = state.phase
    if phase is not None and (type(phase) is not int or not 0 <= phase <= _PHASE_MAX):
        raise _no_state(f"phase is a number from 0 to {_PHASE_MAX}, or null", state.workflow_id)


def _no_state(why: str, workflow_id: str) -> InvalidStateError:
    return InvalidStateError(f"with the edits this is no state: {why}", place=workflow_id)
