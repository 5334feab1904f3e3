"""JSON that somebody else may have written or changed: what cannot be read is a `ValueError`, whatever it is.

The decoder of the standard library answers a text that is nested deep enough with a `RecursionError`, which
nobody thinks of who reads a file. So nothing else in Holdfast calls it, but for `plainjson`, which reads what
callers may nest as deep as they like: records, keyframes and events.
"""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes) -> Any:
    """Read JSON.

    Raises:
        ValueError: it is none, or nested too deep.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_object(text: str | bytes) -> dict[str, Any]:
    """Read JSON that is an object.

    Raises:
        ValueError: it is none.
    """
    found = read_json(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found
