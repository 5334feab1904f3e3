"""Values: compared by what they hold, and never changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

_Kind = TypeVar("_Kind")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(kind: type[_Kind]) -> type[_Kind]:
    """Make a class of values that every commit makes many of, or that every process needs to begin.

    The type checker holds them to be frozen, and refuses what would change one. Python does not look
    again each time one is made: a frozen dataclass takes several times as long for it. What callers of
    Holdfast get into their hands is frozen in both ways, by `dataclass(frozen=True)`.

    How they are compared, hashed and shown is not written and compiled for each class, as a dataclass does
    it: making dataclasses was a third of the time until the first checkpoint.
    """
    made = dataclass(slots=True, repr=False, eq=False)(kind)
    everything: tuple[Field[Any], ...] = fields(made)  # type: ignore[arg-type]
    held = _getter([one.name for one in everything if one.compare])
    shown = [one.name for one in everything if one.repr]
    for method in (_eq(held), _hash(held), _repr(shown)):
        # What a class says itself stands.
        if method.__name__ not in vars(kind):
            setattr(made, method.__name__, method)
    return made


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Answer what reads fields into a tuple: items of tuples are equal already where they are the same."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _eq(held: Callable[[Any], tuple[Any, ...]]) -> Callable[..., Any]:
    def __eq__(self: Any, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return held(self) == held(other)

    return __eq__


def _hash(held: Callable[[Any], tuple[Any, ...]]) -> Callable[..., Any]:
    def __hash__(self: Any) -> int:
        return hash(held(self))

    return __hash__


def _repr(names: list[str]) -> Callable[..., Any]:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.__class__.__qualname__}({shown})"

    return __repr__
