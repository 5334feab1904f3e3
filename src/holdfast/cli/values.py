"""Plain trees shown to people and handed to programs: tagged as in the format, so that nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from holdfast.cli.output import json_safe
from holdfast.domain.json_reading import read_json

_SHOWN_KEYS = 5


def pretty(plain: Any) -> str:
    """Write a plain tree as indented JSON that a terminal shows and never obeys."""
    from holdfast.domain import plainjson

    compact = plainjson.dumps(plain).decode()
    try:
        return json_safe(json.dumps(read_json(compact), indent=2, ensure_ascii=False))
    except (ValueError, RecursionError):
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
    from holdfast.application.insight.state_nodes import message_text
    from holdfast.domain import plainjson

    said = message_text(plain, width)
    return _shortened(plainjson.dumps(plain).decode() if said is None else said, width)


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
