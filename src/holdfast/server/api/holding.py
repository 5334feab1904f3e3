"""Legal holds. Placing one needs `write`: nothing goes by it. Releasing one needs `admin`: things may go."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from holdfast.application.holding import Hold
from holdfast.domain.access import Scope
from holdfast.server.acting import CHANGING, READING, Acting, Name, begin
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Refusal
from holdfast.server.slices import Part, part_of
from holdfast.server.totals import Total


class HoldRow(msgspec.Struct):
    """What must stay, and why; a person is named by the pseudonym."""

    id: str
    workflow_id: str | None
    subject: str | None
    #: What must stay, for people.
    covers: str
    reason: str
    placed_by: str | None
    placed_at: str


class HoldPage(msgspec.Struct):
    """Some holds, the oldest first."""

    items: list[HoldRow]
    next_cursor: str | None
    total: Total = UNSET


class PlaceHold(Acting):
    """What must stay: a workflow, what is about a person, or the whole store where neither is named."""

    workflow_id: Name | None = None
    subject: Name | None = None


def list_holds(desk: Desk, asked: Asked[Part, None]) -> HoldPage:
    """List the holds that stand."""
    chosen, cursor, total = part_of(desk.service.holds.listing(), asked.query, lambda hold: hold.id)
    return HoldPage([hold_row(hold) for hold in chosen], cursor, total)


def place_hold(desk: Desk, asked: Asked[None, PlaceHold]) -> HoldRow:
    """Keep something from being removed."""
    body = asked.body
    if body.workflow_id is not None and body.subject is not None:
        raise Refusal(422, "invalid_request", "workflow_id and subject exclude each other")
    reason = begin(desk, asked, "placeHold", body.workflow_id)
    hold = desk.service.holds.place(workflow_id=body.workflow_id, subject=body.subject, reason=reason)
    return hold_row(hold)


def release_hold(desk: Desk, asked: Asked[None, Acting]) -> HoldRow:
    """Let what a hold covers be removed again."""
    reason = begin(desk, asked, "releaseHold")
    return hold_row(desk.service.holds.release(asked.path["hold"], reason=reason))


def holds_against(desk: Desk, workflow_id: str) -> list[HoldRow]:
    """List the holds that stand against removing anything of a workflow."""
    people = {subject.pseudonym for subject in desk.service.subjects.of(workflow_id)}
    return [
        hold_row(hold)
        for hold in desk.service.holds.listing()
        if hold.workflow_id == workflow_id
        or hold.subject in people
        or (hold.workflow_id is None and hold.subject is None)
    ]


def hold_row(hold: Hold) -> HoldRow:
    """Show a hold."""
    return HoldRow(
        hold.id,
        hold.workflow_id,
        hold.subject,
        hold.covers,
        hold.reason,
        hold.placed_by,
        hold.placed_at,
    )


OPERATIONS = (
    Operation(
        "listHolds",
        "GET",
        "/holds",
        Scope.READ,
        "List the legal holds that stand.",
        list_holds,
        query=Part,
        result=HoldPage,
        tag="holds",
        problems={409: READING[409]},
    ),
    Operation(
        "placeHold",
        "POST",
        "/holds",
        Scope.WRITE,
        "Keep a workflow, what is about a person, or everything from being removed.",
        place_hold,
        body=PlaceHold,
        result=HoldRow,
        status=201,
        acts=True,
        tag="holds",
        problems=CHANGING,
    ),
    Operation(
        "releaseHold",
        "POST",
        "/holds/{hold}/release",
        Scope.ADMIN,
        "Let what a hold covers be removed again.",
        release_hold,
        body=Acting,
        result=HoldRow,
        acts=True,
        tag="holds",
        problems=CHANGING,
    ),
)
