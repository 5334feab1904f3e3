"""What is different between two checkpoints, or points between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.application.insight.differences import Change, changes, edits, patch
from holdfast.application.insight.state_nodes import preview
from holdfast.application.travel.travelling import Point
from holdfast.domain import plainjson
from holdfast.domain.access import Scope
from holdfast.domain.pointer import parse_pointer
from holdfast.server.acting import READING
from holdfast.server.api.reading import Text, check_meaning
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.packing import packed

_PATCH = "application/json-patch+json"
_VALUE_BYTES_MAX = 16 * 1024
_LOOK_AGAIN = {"Cache-Control": "private, no-cache"}


class DiffQuery(msgspec.Struct):
    """Compared with what, and how it is told.

    `ignore` are pointers with commas between them, to places that are left out. Without `base` it is compared
    with the checkpoint before.
    """

    base: Text | None = None
    form: Literal["tree", "patch", "stat"] = "tree"
    ignore: Annotated[str, Meta(max_length=4_000)] = ""
    limit: Annotated[int, Meta(ge=1, le=5_000)] = 1_000


class Counts(msgspec.Struct):
    """How many differences of each kind; text that grew was changed."""

    added: int
    removed: int
    changed: int
    moved: int


class DiffChange(msgspec.Struct):
    """One difference. `old` and `new` are left out where there is none, or where it is large.

    What moved came from `source`. Of text that grew, `new` is what was added.
    """

    kind: Literal["added", "removed", "changed", "moved", "grew"]
    pointer: str
    source: str | None
    preview: str
    text: str | None
    old: msgspec.Raw | UnsetType = UNSET
    new: msgspec.Raw | UnsetType = UNSET


class FieldCounts(msgspec.Struct):
    """How many differences one field of the state has."""

    field: str
    counts: Counts


class Diff(msgspec.Struct):
    """What is different. `changes` are the first of them where `is_cut` is true; `counts` are of all."""

    from_: str | None = msgspec.field(name="from")
    to: str
    counts: Counts
    fields: list[FieldCounts]
    changes: list[DiffChange]
    is_cut: bool


def show_diff(desk: Desk, asked: Asked[DiffQuery, None]) -> Answer:
    """Tell what is different between two states."""
    query = asked.query
    ignore = [parse_pointer(text) for text in query.ignore.split(",") if text]
    old, new = _pair(desk, asked.path["checkpoint"], query.base)
    found = edits(old.tree if old else {}, new.tree, ignore)
    desk.note_looked(*(point for point in (old, new) if point is not None))
    if query.form == "patch":
        return packed(asked, plainjson.dumps(patch(found)), _LOOK_AGAIN, _PATCH)
    told = changes(found)
    listed = told[: query.limit] if query.form == "tree" else []
    diff = Diff(
        str(old) if old else None,
        str(new),
        _counts(told),
        _by_field(told),
        [_shown(change) for change in listed],
        query.form == "tree" and len(told) > query.limit,
    )
    return packed(asked, diff, _LOOK_AGAIN)


def _pair(desk: Desk, name: str, base: str | None) -> tuple[Point | None, Point]:
    """Answer the two points; the checkpoint before one where no other is named."""
    check_meaning(desk, name)
    new = desk.travel.at(name)
    if base is not None:
        check_meaning(desk, base)
        return desk.travel.at(base), new
    return desk.travel.before(new), new


def _counts(told: Sequence[Change]) -> Counts:
    kinds = Counter("changed" if one.kind == "grew" else one.kind for one in told)
    return Counts(kinds["added"], kinds["removed"], kinds["changed"], kinds["moved"])


def _by_field(told: Sequence[Change]) -> list[FieldCounts]:
    """Count the differences of each field, in the order in which they are told."""
    fields: dict[str, list[Change]] = {}
    for change in told:
        path = change.edit.path
        fields.setdefault(str(path[0]) if path else "", []).append(change)
    return [FieldCounts(field, _counts(found)) for field, found in fields.items()]


def _shown(change: Change) -> DiffChange:
    edit = change.edit
    old: Any = edit.old if edit.op != "add" else UNSET
    new: Any = edit.new if edit.op != "remove" else UNSET
    if change.kind == "grew":
        old, new = UNSET, edit.new[len(edit.old) :]
    seen = new if edit.op != "remove" else old
    return DiffChange(
        change.kind, change.pointer, change.source, preview(seen), change.text, _value(old), _value(new)
    )


def _value(plain: Any) -> msgspec.Raw | UnsetType:
    data = b"" if plain is UNSET else plainjson.dumps(plain)
    return msgspec.Raw(data) if 0 < len(data) <= _VALUE_BYTES_MAX else UNSET


OPERATIONS = (
    Operation(
        "getDiff",
        "GET",
        "/checkpoints/{checkpoint}/diff",
        Scope.STATE_READ,
        "Tell what is different between two states.",
        show_diff,
        query=DiffQuery,
        result=Diff,
        also=(_PATCH,),
        tag="checkpoints",
        problems={**READING, 409: "Several have such a name, or what is stored is damaged."},
    ),
)
