"""States, opened node by node or given as JSON; every look is told in the trail."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.application.insight.state_nodes import Node, children_of, count_below, node_at
from holdfast.application.travel.travelling import Point
from holdfast.domain import plainjson
from holdfast.domain.access import Scope
from holdfast.domain.ids import parse_ref
from holdfast.domain.pointer import look_up, parse_pointer
from holdfast.server.acting import READING
from holdfast.server.api.reading import Limit, check_meaning
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.packing import unchanged
from holdfast.server.ranges import ranged

_FOR_EVER = "private, max-age=31536000, immutable"
_LOOK_AGAIN = "private, no-cache"


class StateQuery(msgspec.Struct):
    """Which place of the state, and how; `after` and `limit` are of what lies right below it."""

    path: Annotated[str, Meta(max_length=4_000)] = ""
    form: Literal["node", "value"] = "node"
    after: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Limit = 100


class ChildNode(msgspec.Struct):
    """What lies right below a place; its `value` is there where it is short.

    `is_masked`: something in it was hidden before it was stored, or is sealed with a person's key.
    """

    key: str | int | None
    pointer: str
    kind: str
    count: int | None
    size_bytes: int
    preview: str
    is_masked: bool
    value: msgspec.Raw | UnsetType = UNSET


class StateNode(msgspec.Struct):
    """What one place of a state holds. Ask for more with `after` set to `next` while that is not null."""

    checkpoint: str
    pointer: str
    kind: str
    count: int | None
    size_bytes: int
    preview: str
    is_masked: bool
    children: list[ChildNode]
    next: int | None
    notes: list[str]
    value: msgspec.Raw | UnsetType = UNSET


def show_state(desk: Desk, asked: Asked[StateQuery, None]) -> Answer:
    """Show a place of a state."""
    query, name = asked.query, asked.path["checkpoint"]
    pointer = parse_pointer(query.path)
    check_meaning(desk, name)
    point = desk.travel.at(name)
    place = look_up(point.tree, pointer)
    headers = _headers(name, point, query)
    if known := unchanged(asked, headers):
        return known
    desk.note_looked(point)
    if query.form == "value":
        return ranged(asked, plainjson.dumps(place), headers)
    children = [_child(one) for one in children_of(place, pointer, query.after, query.limit)]
    told = query.after + len(children)
    node = node_at(place, pointer)
    shown = StateNode(
        str(point),
        node.pointer,
        node.kind,
        node.count,
        node.size_bytes,
        node.preview,
        node.is_masked,
        children,
        told if told < count_below(place) else None,
        point.remarks,
        _value(node),
    )
    return ranged(asked, shown, headers)


def _child(node: Node) -> ChildNode:
    return ChildNode(
        node.key,
        node.pointer,
        node.kind,
        node.count,
        node.size_bytes,
        node.preview,
        node.is_masked,
        _value(node),
    )


def _value(node: Node) -> msgspec.Raw | UnsetType:
    return UNSET if node.value is None else msgspec.Raw(node.value)


def _headers(name: str, point: Point, query: StateQuery) -> dict[str, str]:
    """Name this answer; that of a checkpoint with a number never changes."""
    ref = parse_ref(name)
    is_fixed = ref.sequence is not None and not ref.back and not point.notes
    told = (point.workflow_id, sorted(point.facts.items()), len(point.notes), query)
    etag = f'"{hashlib.sha256(ascii(told).encode()).hexdigest()[:32]}"'
    return {"ETag": etag, "Cache-Control": _FOR_EVER if is_fixed else _LOOK_AGAIN}


OPERATIONS = (
    Operation(
        "getState",
        "GET",
        "/checkpoints/{checkpoint}/state",
        Scope.STATE_READ,
        "Show a place of a state: a node of its tree, or the JSON of it.",
        show_state,
        query=StateQuery,
        result=StateNode | msgspec.Raw,
        tag="checkpoints",
        has_ranges=True,
        problems={
            **READING,
            206: "The bytes that Range asks for.",
            304: "It is what If-None-Match names.",
            409: "Several have such a name, or what is stored is damaged.",
            416: "It has no such bytes.",
        },
    ),
)
