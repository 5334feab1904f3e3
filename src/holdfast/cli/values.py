"""Plain trees shown to people and handed to programs: tagged as in the format, so that nothing is lost."""

from __future__ import annotations

import json
from typing import Any

from holdfast.cli.output import json_safe

_SHOWN_KEYS = 5


def as_json_tree(plain: Any) -> Any:
    """Turn a plain tree into one that JSON has words for: bytes and odd numbers become tagged objects."""
    from holdfast.domain import plainjson

    return json.loads(plainjson.dumps(plain))


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
    if isinstance(plain, dict) and "$hf" in plain:
        return _shortened(f"{plain.get('t', plain['$hf'])} {_text(plain.get('v', ''))}", width)
    if isinstance(plain, dict):
        names = ", ".join(list(plain)[:_SHOWN_KEYS])
        more = ", ..." if len(plain) > _SHOWN_KEYS else ""
        return _shortened(f"{{{len(plain)}}} {names}{more}", width) if plain else "{}"
    if isinstance(plain, list):
        return _shortened(f"[{len(plain)}] last: {_text(plain[-1])}", width) if plain else "[]"
    return _shortened(_text(plain), width)


def _text(plain: Any) -> str:
    from holdfast.domain import plainjson

    return plainjson.dumps(plain).decode()


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 3]}..."
