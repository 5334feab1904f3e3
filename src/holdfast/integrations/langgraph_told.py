"""What is told of the channels of a checkpoint, as one text: versions, what was seen of them, kinds.

Names are told apart from texts that are said of them. A channel may be called `token`, and a text behind such
a name is hidden as a secret; a version is none, and a thread without it could not go on.
"""

from __future__ import annotations

import json
from typing import Any


def write_told(told: dict[str, Any]) -> str:
    """Write it down; numbers are never hidden, and versions are numbers but for those that were imported."""
    is_text = any(type(version) is str for version in told["versions"].values())
    plain = {} if is_text else {name: part for name, part in told.items() if name != "kinds"}
    names: dict[str, int] = {}
    numbered = _numbered({name: part for name, part in told.items() if name not in plain}, names)
    return json.dumps([plain, list(names), numbered], separators=(",", ":"))


def read_told(text: str) -> dict[str, Any]:
    """Read what was written down."""
    plain, names, numbered = json.loads(text)
    return {**plain, **_named(numbered, names)}


def _numbered(told: Any, names: dict[str, int]) -> Any:
    if type(told) is dict:
        return {names.setdefault(name, len(names)): _numbered(item, names) for name, item in told.items()}
    return [_numbered(item, names) for item in told] if type(told) is list else told


def _named(told: Any, names: list[str]) -> Any:
    if type(told) is dict:
        return {names[int(number)]: _named(item, names) for number, item in told.items()}
    return [_named(item, names) for item in told] if type(told) is list else told
