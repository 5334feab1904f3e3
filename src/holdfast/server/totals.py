"""How many there are in all: counted only for whoever asks, and no further than a request may look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import UNSET, UnsetType

#: So many are looked at; of more nobody is told a number.
COUNTED_MAX = 100_000

#: Left out where nobody asked; null: there are more to be looked at than that.
Total: TypeAlias = int | UnsetType | None


def total_of(matches: Iterable[bool], *, is_asked: bool) -> Total:
    """Count what matches, if that is asked for."""
    if not is_asked:
        return UNSET
    count = 0
    for looked_at, is_match in enumerate(matches):
        if looked_at == COUNTED_MAX:
            return None
        count += is_match
    return count
