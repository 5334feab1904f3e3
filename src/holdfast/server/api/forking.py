"""Beginning a new workflow where another one was, with a changed state if that is wanted."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.application.edited_forks import check_free, edited_state, fork_edited, is_taken
from holdfast.application.travel.travelling import Point
from holdfast.domain.access import Scope
from holdfast.domain.errors import InvalidStateError
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.json_patch import EditError
from holdfast.domain.state import WorkflowState
from holdfast.server.acting import CHANGING, READING, Acting, Name, begin
from holdfast.server.api.reading import check_meaning
from holdfast.server.desk import Desk
from holdfast.server.equal_commands import assignment, command
from holdfast.server.json_patch import Edit, steps
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Detail, Refusal

_Edits = Annotated[list[Edit], Meta(max_length=1_000)]


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


def _point(desk: Desk, asked: Asked[Any, Any]) -> Point:
    check_meaning(desk, asked.path["checkpoint"])
    return desk.travel.at(asked.path["checkpoint"])


def plan_fork(desk: Desk, asked: Asked[None, WhatToFork]) -> ForkPlan:
    """Tell what a fork would make."""
    body = asked.body
    check_workflow_id(body.new_workflow_id)
    _check_scope(asked, body.edits)
    point = _point(desk, asked)
    if body.edits:
        _edited(desk, point, body.new_workflow_id, body.edits)
        desk.note_looked(point)
    is_new_taken = is_taken(desk.kit.store, body.new_workflow_id)
    return ForkPlan(
        str(point),
        body.new_workflow_id,
        2 if body.edits else 1,
        len(body.edits),
        [f"there is a workflow {body.new_workflow_id} already"] if is_new_taken else [],
        [*point.notes, *(f"event {one.seq} ({one.type}): {one.reason}" for one in point.skipped[:20])],
        _command(desk.kit.store.url, str(point), body),
    )


def fork(desk: Desk, asked: Asked[None, Fork]) -> Forked:
    """Begin a new workflow; the other one is left as it is."""
    body = asked.body
    check_workflow_id(body.new_workflow_id)
    _check_scope(asked, body.edits)
    point = _point(desk, asked)
    check_free(desk.kit.store, body.new_workflow_id)
    changed = _edited(desk, point, body.new_workflow_id, body.edits) if body.edits else None
    begin(desk, asked, "fork", body.new_workflow_id)
    if changed is None:
        made = desk.service.fork_workflow(str(point), body.new_workflow_id)
    else:
        made = fork_edited(desk.service, str(point), body.new_workflow_id, changed)
    return Forked(str(made), body.new_workflow_id, str(point), len(body.edits))


def _check_scope(asked: Asked[None, Any], edits: list[Edit]) -> None:
    """Let nobody find out by edits that fit, or do not, what is in a state."""
    if edits and not asked.identity.may(Scope.STATE_READ):
        raise Refusal(403, "scope_missing", f"edits need the scope {Scope.STATE_READ}")


def _edited(desk: Desk, point: Point, new_workflow_id: str, edits: list[Edit]) -> WorkflowState:
    """Answer the state with its edits.

    Raises:
        Refusal: an edit does not fit, or what comes out is no state.
    """
    try:
        return edited_state(desk.kit, point, new_workflow_id, steps(edits))
    except EditError as error:
        raise _misfit(error) from None
    except InvalidStateError as wrong:
        raise Refusal(422, wrong.code, wrong.message, place="edits") from None


def _misfit(error: EditError) -> Refusal:
    place = f"edits[{error.index}]"
    said = f"{place}: {error.why}"
    return Refusal(422, "edit_does_not_fit", said, place=place, errors=[Detail(error.why, place)])


def _command(store: str, point: str, body: WhatToFork) -> str:
    """Write the equal command, if there is one."""
    if not all(map(_can_say, body.edits)):
        return ""
    edits = [assignment(edit.path, edit.value) for edit in body.edits]
    return command(store, "fork", [point, body.new_workflow_id], edits)


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
