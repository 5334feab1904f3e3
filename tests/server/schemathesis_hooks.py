"""What schemathesis is told about this API: things that are there, and that a key is used for one request."""

from __future__ import annotations

import itertools
import json
import os
from typing import Any
from zlib import crc32

import schemathesis

#: Values of path parameters by name, beside those that nobody would think of.
KNOWN: dict[str, list[str]] = json.loads(os.environ["HOLDFAST_KNOWN"])
_KEYS = itertools.count()


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Ask for something that is there two times out of three: nothing is behind a name that is not."""
    for name, value in (path_parameters or {}).items():
        known, chance = KNOWN.get(name, []), crc32(repr(value).encode())
        if known and chance % 3:
            path_parameters = {**(path_parameters or {}), name: known[chance // 3 % len(known)]}
    return path_parameters


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Give each request that has a key one of its own: the second use of one is refused."""
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"key-{next(_KEYS)}"
