"""Plain trees shown to people and handed to programs: tagged as in the format, so that nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from holdfast.cli.output import json_safe

_SHOWN_KEYS = 5
#: Stands for a value that is not there.
NOTHING = object()


def as_json_tree(plain: Any) -> Any:
    """Turn a plain tree into one that JSON has words for: bytes and odd numbers become tagged objects."""
    from holdfast.domain import plainjson

    data = plainjson.dumps(plain)
    try:
        return json.loads(data)
    except RecursionError:
        # Nested deeper than the decoder goes; `json_text` knows how to write it all the same.
        return plain


def same(one: Any, other: Any) -> bool:
    """Tell whether two plain trees are the same, down to the types and the order of keys."""
    from holdfast.domain import plainjson

    return plainjson.dumps(one) == plainjson.dumps(other)


def pretty(plain: Any) -> str:
    """Write a plain tree as indented JSON that a terminal shows and never obeys."""
    from holdfast.domain import plainjson

    compact = plainjson.dumps(plain).decode()
    try:
        return json_safe(json.dumps(json.loads(compact), indent=2, ensure_ascii=False))
    except RecursionError:
        # Nested too deep to be laid out; still the same JSON.
        return json_safe(compact)


def summary(plain: Any, width: int) -> str:
    """Tell in one line what a value is."""
    if isinstance(plain, dict) and plain and "$hf" not in plain:
        names = ", ".join(list(plain)[:_SHOWN_KEYS])
        more = ", ..." if len(plain) > _SHOWN_KEYS else ""
        return _shortened(f"{{{len(plain)}}} {names}{more}", width)
    if isinstance(plain, list) and plain:
        return _shortened(f"[{len(plain)}] last: {short_json(plain[-1], width)}", width)
    return short_json(plain, width)


def short_json(plain: Any, width: int) -> str:
    """Write a value as JSON, a message as who says what, cut where it becomes too long."""
    from holdfast.domain import plainjson

    said = _message(plain)
    if said is not None:
        return _shortened(said, width)
    return _shortened(plainjson.dumps(plain).decode(), width)


def _message(plain: Any) -> str | None:
    """Tell who says what; None if the value is no message as the frameworks write them."""
    if type(plain) is not dict or "content" not in plain:
        return None
    who = plain.get("role") or plain.get("type")
    if not isinstance(who, str):
        return None
    content, calls = plain["content"], plain.get("tool_calls")
    parts = content if isinstance(content, list) else [content]
    said = [
        part.get("text", f"[{part.get('type', 'data')}]") if type(part) is dict else part for part in parts
    ]
    called = (
        [call.get("name", "tool") for call in calls if type(call) is dict] if isinstance(calls, list) else []
    )
    text = " ".join([*(str(part) for part in said if part), *(f"-> {name}()" for name in called)])
    return f"{who}: {text}"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
