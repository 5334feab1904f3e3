"""JSON Patch (RFC 6902) as it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.domain.json_patch import Op, Step
from holdfast.domain.tree import NOTHING

_Pointer = Annotated[str, Meta(max_length=2_000, pattern=r"^(/([^~/]|~[01])*)*$")]


class Edit(msgspec.Struct, forbid_unknown_fields=True):
    """One change: `value` goes with add, replace and test, `from` with move and copy."""

    op: Op
    path: _Pointer
    value: Any = UNSET
    source: _Pointer | UnsetType = msgspec.field(default=UNSET, name="from")


def steps(edits: Sequence[Edit]) -> list[Step]:
    """Read what was sent as the steps of a patch."""
    return [
        Step(
            edit.op,
            edit.path,
            NOTHING if edit.value is UNSET else edit.value,
            None if isinstance(edit.source, UnsetType) else edit.source,
        )
        for edit in edits
    ]
