"""What a run was given is told once: its checkpoint holds it, and writes that say the same refer to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ormsgpack

from holdfast.integrations.langgraph_values import PLAIN_ONLY, Kind

#: The channel that holds what a run was given, in the checkpoint that it begins with.
START = "__start__"
#: The kind of a write whose value is the member of the same name of what the run was given. Of messages the
#: write tells the ids: LangGraph gives a message its id in place, before or after the write is recorded.
GIVEN = "given"
#: What a checkpoint tells of delta channels, which are rebuilt from the writes of many checkpoints.
COUNTERS = "counters_since_delta_snapshot"
#: What is no longer than that is told again: nobody would gain by looking for it elsewhere.
_SMALL_BYTES = 256


def packed_members(value: Any, kind: Kind) -> tuple[Any, dict[str, bytes]]:
    """Pack the large members of what a run was given, with how to read each, so that writes can be compared.

    Answers also what is to be stored: what is packed is a copy of its own, which nobody changes in between.
    """
    if type(value) is not dict:
        return value, {}
    stored, packed = dict(value), dict[str, bytes]()
    for name, member in value.items():
        if len(data := _plain(member)) > _SMALL_BYTES:
            stored[name] = ormsgpack.unpackb(data)
            packed[name] = _compared(stored[name], kind_of(kind, name))
    return stored, packed


def told_as_given(
    writes: Sequence[list[Any]],
    given: Mapping[str, bytes],
    names: Sequence[str],
    metadata: Mapping[str, Any],
) -> list[list[Any]]:
    """Tell by its name alone what each of some writes says that the run was given.

    Args:
        writes: index, channel, value and kind of each.
        given: what `packed_members` answered for the checkpoint that they are on.
        names: channels that have a value in it. Another one may be a delta channel: rebuilding that must not
            take a state for each of its writes.
        metadata: of that checkpoint.
    """
    fit = given.keys() & set(names) - set(metadata.get(COUNTERS) or ())
    return [
        [index, channel, _ids(value) if kind == "messages" else None, GIVEN]
        if channel in fit and _compared(value, kind) == given[channel]
        else [index, channel, value, kind]
        for index, channel, value, kind in writes
    ]


def kind_of(kind: Kind, name: str) -> Kind:
    """Answer how to read a member of what is read in some way."""
    found: Kind = kind["dict"].get(name) if type(kind) is dict and "dict" in kind else None
    return found


def with_ids(value: Any, ids: Any) -> Any:
    """Answer what a run was given with the ids that a write tells, if it tells any.

    Raises:
        TypeError, ValueError: they are not of these messages.
    """
    if ids is None:
        return value
    return [{**fields, "id": told} for fields, told in zip(value, ids, strict=True)]


def _ids(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [fields.get("id") for fields in messages]


def _compared(value: Any, kind: Kind) -> bytes:
    """Pack a value with how to read it, messages without their ids."""
    return _plain([with_ids(value, [None] * len(value)) if kind == "messages" else value, kind])


def _plain(value: Any) -> bytes:
    """Pack plain data; nothing for what is not plain."""
    try:
        return ormsgpack.packb(value, None, PLAIN_ONLY)
    except (TypeError, ValueError):
        return b""
