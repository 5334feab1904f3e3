"""A state as a tree that is opened node by node: what a place holds, without all that lies below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from holdfast.application.insight.masks import has_masks
from holdfast.domain import plainjson
from holdfast.domain.pointer import pointer_text
from holdfast.domain.tree import TAG

#: What is shorter than this is told as it is.
VALUE_BYTES_MAX = 512
PREVIEW_CHARS = 120
_SHOWN_NAMES = 6
_PREVIEW_DEPTH = 3
#: Scalars that a tag stands for, where JSON has no word for them.
_SCALAR_TAGS = frozenset({"str", "int", "float", "date", "datetime", "timedelta", "uuid", "decimal", "bytes"})


@dataclass(frozen=True, slots=True)
class Node:
    """What one place holds.

    Attributes:
        key: the name or the index it has above; None for the whole.
        kind: object, array, string, number, boolean, null, bytes, or what a tag says: tuple, datetime.
        count: members, items, characters or bytes.
        size_bytes: of it all as JSON.
        preview: what it is, in a few characters.
        is_masked: whether something in it was hidden, or is sealed with a person's key.
        value: the JSON of it where that is short, else None.
    """

    key: str | int | None
    pointer: str
    kind: str
    count: int | None
    size_bytes: int
    preview: str
    is_masked: bool
    value: bytes | None


def node_at(value: Any, pointer: tuple[str, ...]) -> Node:
    """Tell what a place of a plain tree holds."""
    key = pointer[-1] if pointer else None
    return _node(key, pointer_text(pointer), value)


def children_of(value: Any, pointer: tuple[str, ...], after: int, limit: int) -> Iterator[Node]:
    """Tell what lies right below a place, from so many on, in the order of the state."""
    members = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    above = pointer_text(pointer)
    for key, item in islice(members, after, after + limit):
        yield _node(key, above + pointer_text((key,)), item)


def count_below(value: Any) -> int:
    """Count what lies right below a place."""
    return len(value) if type(value) in (dict, list) else 0


def _node(key: str | int | None, pointer: str, value: Any) -> Node:
    data = plainjson.dumps(value)
    short = data if len(data) <= VALUE_BYTES_MAX else None
    is_masked = has_masks(value, data)
    return Node(key, pointer, kind_of(value), _count(value), len(data), preview(value), is_masked, short)


def kind_of(value: Any) -> str:
    """Name what a value is; a tagged object is what its tag says."""
    if type(value) is dict:
        tag = value.get(TAG)
        return tag if isinstance(tag, str) and tag else "object"
    if type(value) is list:
        return "array"
    if type(value) is str:
        return "string"
    if type(value) is bool:
        return "boolean"
    return "null" if value is None else "bytes" if isinstance(value, bytes) else "number"


def _count(value: Any) -> int | None:
    return len(value) if isinstance(value, dict | list | str | bytes) else None


def preview(value: Any, width: int = PREVIEW_CHARS) -> str:
    """Write the beginning of a value, however large it is."""
    if isinstance(value, bytes):
        shown = value[: width // 2].hex(" ", 4)
        return _cut(shown, width, is_more=len(value) > width // 2)
    if type(value) is dict and TAG in value and value[TAG] in _SCALAR_TAGS:
        return _cut(f"{value[TAG]} {_short(value.get('v'), width, 1)}", width)
    said = message_text(value, width)
    if said is not None:
        return _cut(said, width)
    if type(value) is dict and TAG not in value and value:
        names = ", ".join(_cut(str(name), width) for name in islice(value, _SHOWN_NAMES))
        return _cut(f"{{{len(value)}}} {names}", width, is_more=len(value) > _SHOWN_NAMES)
    if type(value) is list and value:
        first = message_text(value[0], width) or _short(value[0], width, 1)
        return _cut(f"[{len(value)}] {first}", width, is_more=len(value) > 1)
    return _cut(_short(value, width, 1), width)


def message_text(value: Any, width: int) -> str | None:
    """Tell who says what, as much as may be shown; None if it is no message as frameworks write them."""
    if type(value) is not dict or "content" not in value:
        return None
    who = value.get("role") or value.get("type")
    if not isinstance(who, str):
        return None
    content, calls = value["content"], value.get("tool_calls")
    parts = islice(content, width) if isinstance(content, list) else [content]
    called = islice(calls, width) if isinstance(calls, list) else ()
    said = [_said(part, width) for part in parts]
    said += [f"-> {call.get('name', 'tool')}()" for call in called if type(call) is dict]
    return f"{who}: {' '.join(filter(None, said))}"


def _said(part: Any, width: int) -> str:
    """Answer the text of a part of a message, and one letter more than fits if it is longer."""
    text = part.get("text", f"[{part.get('type', 'data')}]") if type(part) is dict else part
    if isinstance(text, str):
        return text[: width + 1]
    return _short(text, width, 1) if text else ""


def _short(value: Any, width: int, depth: int) -> str:
    """Write JSON of as much of a value as may be shown."""
    return plainjson.dumps(_bounded(value, width, depth)).decode()


def _bounded(value: Any, width: int, depth: int) -> Any:
    if isinstance(value, str | bytes):
        return value[:width]
    if type(value) not in (dict, list):
        return value
    if depth > _PREVIEW_DEPTH:
        return {} if type(value) is dict else []
    if type(value) is list:
        return [_bounded(item, width, depth + 1) for item in islice(value, _SHOWN_NAMES)]
    members = islice(value.items(), _SHOWN_NAMES)
    return {name[:width]: _bounded(item, width, depth + 1) for name, item in members}


def _cut(text: str, width: int, *, is_more: bool = False) -> str:
    if len(text) > width:
        return f"{text[: width - 3]}..."
    return f"{text[: width - 4]} ..." if is_more else text
