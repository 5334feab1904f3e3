"""Showing what is masked in a state: to whoever may, with a reason, told before it is shown."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.application.insight.masks import Masks, masks_of
from holdfast.application.travel.travelling import Point
from holdfast.application.unmasking import obstacles, unmask
from holdfast.domain import plainjson
from holdfast.domain.access import Scope
from holdfast.domain.pointer import look_up, parse_pointer
from holdfast.server.acting import READING, Acting, begin
from holdfast.server.api.reading import check_meaning
from holdfast.server.desk import Desk
from holdfast.server.equal_commands import command
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Refusal

_Pointer = Annotated[str, Meta(max_length=4_000)]
_NAMED_MAX = 100


class WhatToReveal(msgspec.Struct, forbid_unknown_fields=True):
    """Which place of the state; the whole of it if none is named."""

    path: _Pointer = ""


class Reveal(Acting):
    """Which place of the state; the whole of it if none is named."""

    path: _Pointer = ""


class RevealPlan(msgspec.Struct):
    """What would be shown; nothing was."""

    checkpoint: str
    pointer: str
    #: How many secrets were hidden there, and how many values are sealed with keys of people.
    hidden: int
    sealed: int
    #: Where they are, the first of them.
    places: list[str]
    #: Why nothing would be shown.
    refusals: list[str]
    #: What would stay masked.
    warnings: list[str]
    command: str


class Revealed(msgspec.Struct):
    """What a place of a state holds; it is kept nowhere. `left` are the places that stay masked."""

    checkpoint: str
    pointer: str
    value: msgspec.Raw
    filled: int
    opened: int
    left: list[str]


def plan_reveal(desk: Desk, asked: Asked[None, WhatToReveal]) -> RevealPlan:
    """Tell what a reveal would show."""
    point, masks = _masked(desk, asked.path["checkpoint"], asked.body.path)
    desk.note_looked(point)
    refusals, warnings = _obstacles(desk, masks)
    if desk.kit.store.read_only:
        refusals.append("this server only reads, and so it cannot tell the trail")
    if not desk.service.audit.is_on:
        refusals.append("the trail is switched off, and what cannot be told is not shown")
    options = ["--reason=..."]
    return RevealPlan(
        str(point),
        asked.body.path,
        len(masks.hidden),
        len(masks.sealed),
        masks.pointers(asked.body.path)[:_NAMED_MAX],
        refusals,
        warnings,
        command(desk.kit.store.url, "reveal", [str(point), *filter(None, [asked.body.path])], options),
    )


def reveal(desk: Desk, asked: Asked[None, Reveal]) -> Revealed:
    """Show what is masked in a place of a state."""
    desk.check_writable()
    pointer = asked.body.path
    point, masks = _masked(desk, asked.path["checkpoint"], pointer)
    refusals, _ = _obstacles(desk, masks)
    if refusals:
        raise Refusal(422, "cannot_reveal", refusals[0], place=pointer)
    begin(desk, asked, "revealState", point.workflow_id)
    resolver = None if desk.resolver_of is None or not masks.hidden else desk.resolver_of(desk.kit)
    shown = unmask(desk.kit, desk.service.audit, point, pointer, resolver)
    value = msgspec.Raw(plainjson.dumps(shown.value))
    return Revealed(str(point), pointer, value, shown.filled, shown.opened, list(shown.left[:_NAMED_MAX]))


def _masked(desk: Desk, name: str, pointer: str) -> tuple[Point, Masks]:
    """Find a place of a state, and what is masked there."""
    place = parse_pointer(pointer)
    check_meaning(desk, name)
    point = desk.travel.at(name)
    return point, masks_of(look_up(point.tree, place))


def _obstacles(desk: Desk, masks: Masks) -> tuple[list[str], list[str]]:
    return obstacles(desk.kit, masks, has_resolver=desk.resolver_of is not None)


OPERATIONS = (
    Operation(
        "planReveal",
        "POST",
        "/checkpoints/{checkpoint}/reveal/plan",
        Scope.STATE_READ,
        "Tell what is masked in a place of a state, and whether it could be shown.",
        plan_reveal,
        body=WhatToReveal,
        result=RevealPlan,
        tag="checkpoints",
        problems=READING,
    ),
    Operation(
        "revealState",
        "POST",
        "/checkpoints/{checkpoint}/reveal",
        Scope.STATE_REVEAL,
        "Show a place of a state with what is masked in it; told in the trail with the reason.",
        reveal,
        body=Reveal,
        result=Revealed,
        tag="checkpoints",
        problems={**READING, 507: "The disk is full."},
    ),
)
