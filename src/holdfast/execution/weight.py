"""How much a value weighs, roughly and at once: enough to tell what no store refuses for its size."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

#: What is below that is far from the limits of every store.
_LIGHT_BYTES = 64 * 1024
#: What one value takes beside its own bytes.
_VALUE_BYTES = 16
#: More parts than that weigh too much by themselves.
_PARTS_MAX = _LIGHT_BYTES // _VALUE_BYTES + 1


def is_light(value: Any) -> bool:
    """Tell whether a value is small for sure; of what is nobody's usual type, nothing is."""
    weight, rest = 0, [value]
    while rest:
        one = rest.pop()
        weight += _VALUE_BYTES
        if isinstance(one, str | bytes):
            weight += len(one)
        elif isinstance(one, Mapping):
            weight += _VALUE_BYTES * len(one)
            rest += (part for item in islice(one.items(), _PARTS_MAX) for part in item)
        elif isinstance(one, list | tuple):
            weight += _VALUE_BYTES * len(one)
            rest += one[:_PARTS_MAX]
        elif isinstance(one, int) and not isinstance(one, bool):
            weight += one.bit_length() // 2
        elif one is not None and not isinstance(one, bool | float):
            return False
        if weight > _LIGHT_BYTES:
            return False
    return True
