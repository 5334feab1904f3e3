"""What an object looks like, member by member: two that look alike are the same to whoever uses them.

What they print does not tell, where a set is in them: equal sets may be in another order.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from holdfast.integrations.framework import framework

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langchain_core.messages.base import TextAccessor
    from langgraph.types import Send
    from pydantic import BaseModel

#: What is in it, hashed and compared: types and order and all, but for the order of sets.
Face = tuple[Any, ...]
#: Writes what has no members that are known here.
Write = Callable[[Any], Any]

_SCALARS = frozenset({str, bytes, int, float, bool, type(None)})


def face_of(value: Any, write: Write) -> Face:
    """Describe a value so that only what is the same, of the same types, is described alike."""
    kind = type(value)
    if kind in _SCALARS or kind is TextAccessor:
        # A number that is none equals nothing, not even itself. A text that may be called is a text.
        return str if kind is TextAccessor else kind, repr(value)
    members = _members(value)
    if members is not None:
        return kind, *(face_of(member, write) for member in members)
    if kind is set or kind is frozenset:
        return kind, frozenset(Counter(face_of(member, write) for member in value).items())
    return kind, repr(value), write(value)


def _members(value: Any) -> list[Any] | None:
    """Answer what a value consists of, in order; None for what is not known to consist of anything."""
    kind = type(value)
    if kind is dict:
        return [part for pair in value.items() for part in pair]
    if kind in (list, tuple, deque) or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return [*value]
    if isinstance(value, BaseModel):
        return [_seen(value), value.__pydantic_extra__ or {}]
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return [value.node, value.arg, value.timeout] if kind is Send else None


def _seen(model: BaseModel) -> dict[str, Any]:
    """Answer the fields of a model but those that it neither shows nor writes."""
    fields = type(model).model_fields
    return {
        name: item
        for name, item in model.__dict__.items()
        if name in fields and (fields[name].repr or not fields[name].exclude)
    }
