"""Beginning a new workflow where another one was, with a changed state if that is wanted."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.application.travel.travelling import Point
from holdfast.domain.access import Scope
from holdfast.domain.errors import CheckpointConflictError, StateTooLargeError
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.state import WorkflowState
from holdfast.server.acting import CHANGING, READING, Acting, Name, begin
from holdfast.server.desk import Desk
from holdfast.server.equal_commands import assignment, command
from holdfast.server.json_patch import Edit, EditError, patched
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Detail, Refusal

_Edits = Annotated[list[Edit], Meta(max_length=1_000)]
#: What names a state among others.
_OWN = ("workflow_id", "session_id", "checkpoint_id")
#: Listings hold it as a number of every store.
_PHASE_MAX = 2**31 - 1


class WhatToFork(msgspec.Struct, forbid_unknown_fields=True):
    """The new workflow."""

    new_workflow_id: Name
    #: JSON Patch (RFC 6902), applied to the state.
    edits: _Edits = msgspec.field(default_factory=list)


class Fork(Acting):
    """The new workflow."""

    new_workflow_id: Name
    edits: _Edits = msgspec.field(default_factory=list)


class ForkPlan(msgspec.Struct):
    """What would be made; nothing was changed."""

    forked_from: str
    new_workflow_id: str
    #: How many checkpoints it would begin with: one more for edits.
    checkpoints: int
    edits: int
    #: Why nothing would be made.
    refusals: list[str]
    #: What the state is without.
    warnings: list[str]
    #: Empty where the command line has no way to say it.
    command: str


class Forked(msgspec.Struct):
    """A workflow that was begun."""

    #: Its newest checkpoint.
    id: str
    workflow_id: str
    forked_from: str
    edits: int


def plan_fork(desk: Desk, asked: Asked[None, WhatToFork]) -> ForkPlan:
    """Tell what a fork would make."""
    body = asked.body
    check_workflow_id(body.new_workflow_id)
    _check_scope(asked, body.edits)
    point = desk.travel.at(asked.path["checkpoint"])
    if body.edits:
        _edited(desk, point, body.new_workflow_id, body.edits)
        desk.note_looked(point)
    is_taken = _is_taken(desk, body.new_workflow_id)
    return ForkPlan(
        str(point),
        body.new_workflow_id,
        2 if body.edits else 1,
        len(body.edits),
        [f"there is a workflow {body.new_workflow_id} already"] if is_taken else [],
        [*point.notes, *(f"event {one.seq} ({one.type}): {one.reason}" for one in point.skipped[:20])],
        _command(str(point), body),
    )


def fork(desk: Desk, asked: Asked[None, Fork]) -> Forked:
    """Begin a new workflow; the other one is left as it is."""
    body = asked.body
    check_workflow_id(body.new_workflow_id)
    _check_scope(asked, body.edits)
    point = desk.travel.at(asked.path["checkpoint"])
    if _is_taken(desk, body.new_workflow_id):
        raise CheckpointConflictError(
            "there is a workflow of that name already",
            place=body.new_workflow_id,
            hint="Give the new workflow another name.",
        )
    changed = _edited(desk, point, body.new_workflow_id, body.edits) if body.edits else None
    begin(desk, asked, "fork", body.new_workflow_id)
    made: CheckpointID = desk.service.fork_workflow(str(point), body.new_workflow_id)
    if changed is not None:
        # A change on top of what was forked: what came from the other workflow stays to be seen.
        made = desk.service.create_checkpoint(
            body.new_workflow_id, changed, type="workflow_start", force=True
        )
    return Forked(str(made), body.new_workflow_id, str(point), len(body.edits))


def _check_scope(asked: Asked[None, Any], edits: list[Edit]) -> None:
    """Let nobody find out by edits that fit, or do not, what is in a state."""
    if edits and not asked.identity.may(Scope.STATE_READ):
        raise Refusal(403, "scope_missing", f"edits need the scope {Scope.STATE_READ}")


def _is_taken(desk: Desk, workflow_id: str) -> bool:
    head = desk.kit.store.head(workflow_id)
    return bool(head.sequence or head.event_seq)


def _edited(desk: Desk, point: Point, new_workflow_id: str, edits: list[Edit]) -> WorkflowState:
    """Answer the state with its edits; secrets that were taken out of it stay hidden.

    Everything that could be wrong with it is looked at here: nothing is made that is then left half done.

    Raises:
        Refusal: an edit does not fit, or what comes out is no state.
        CheckpointSchemaError: the state holds values that only the program knows.
        CheckpointWriteError: it cannot be stored, or is too large.
    """
    fields: dict[str, Any] = desk.kit.registry.revive(point.tree)
    try:
        changed = patched(fields, edits)
    except EditError as error:
        raise _misfit(error) from None
    if any(changed.get(name) != fields.get(name) for name in _OWN):
        raise _no_state(f"{', '.join(_OWN)} are not for edits")
    state = WorkflowState.from_fields({**changed, "workflow_id": new_workflow_id})
    _check_kinds(state)
    size_bytes = len(desk.kit.packer.pack(state.to_fields()))
    if size_bytes > desk.kit.limit_bytes:
        raise StateTooLargeError(f"the state has {size_bytes} bytes, the limit is {desk.kit.limit_bytes}")
    return state


def _check_kinds(state: WorkflowState) -> None:
    """Refuse a field of another kind than a new state has there."""
    blank = WorkflowState(state.workflow_id)
    for one in dataclasses.fields(blank):
        usual, found = getattr(blank, one.name), getattr(state, one.name)
        if usual is not None and type(found) is not type(usual):
            raise _no_state(f"{one.name} is a {type(usual).__name__}")
    phase = state.phase
    if phase is not None and (type(phase) is not int or not 0 <= phase <= _PHASE_MAX):
        raise _no_state(f"phase is a number from 0 to {_PHASE_MAX}, or null")


def _no_state(why: str) -> Refusal:
    return Refusal(422, "invalid_state", f"with the edits this is no state: {why}", place="edits")


def _misfit(error: EditError) -> Refusal:
    place = f"edits[{error.index}]"
    said = f"{place}: {error.why}"
    return Refusal(422, "edit_does_not_fit", said, place=place, errors=[Detail(error.why, place)])


def _command(point: str, body: WhatToFork) -> str:
    """Write the equal command, if there is one."""
    if not all(map(_can_say, body.edits)):
        return ""
    return command(
        "fork", [point, body.new_workflow_id], [assignment(edit.path, edit.value) for edit in body.edits]
    )


def _can_say(edit: Edit) -> bool:
    """Tell whether `--set` means the same: it sets what is there, or a key, or adds to the end of a list."""
    last = edit.path.rpartition("/")[2]
    is_set = edit.op == "replace" or (edit.op == "add" and not last.isdecimal())
    return is_set and edit.path != "" and "=" not in edit.path


OPERATIONS = (
    Operation(
        "planFork",
        "POST",
        "/checkpoints/{checkpoint}/fork/plan",
        Scope.READ,
        "Tell what a fork would make; edits need the scope `state:read` too.",
        plan_fork,
        body=WhatToFork,
        result=ForkPlan,
        tag="recovery",
        problems=READING,
    ),
    Operation(
        "fork",
        "POST",
        "/checkpoints/{checkpoint}/fork",
        Scope.RECOVER,
        "Begin a new workflow from a checkpoint or a point; edits need the scope `state:read` too.",
        fork,
        body=Fork,
        result=Forked,
        status=201,
        acts=True,
        tag="recovery",
        problems=CHANGING,
    ),
)
