"""Values: compared by what they hold, and never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_Kind = TypeVar("_Kind")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(kind: type[_Kind]) -> type[_Kind]:
    """Make a class of values that every commit makes many of.

    The type checker holds them to be frozen, and refuses what would change one. Python does not look
    again each time one is made: a frozen dataclass takes several times as long for it. What callers of
    Holdfast get into their hands is frozen in both ways, by `dataclass(frozen=True)`.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
