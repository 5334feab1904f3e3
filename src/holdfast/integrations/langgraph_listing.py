"""What a listing answers: everything about a checkpoint at once, and its state when somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.integrations.framework import framework

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langgraph.checkpoint.base import CheckpointTuple


class Once:
    """Something that is made when it is first asked for."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._made: Any = None

    def __call__(self) -> Any:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made


class Listed(CheckpointTuple):
    """A tuple as LangGraph knows it, whose `checkpoint` and `pending_writes` are read on demand."""

    __slots__ = ()

    @property
    def checkpoint(self) -> Any:
        return self[1]

    @property
    def pending_writes(self) -> Any:
        return self[4]

    def __iter__(self) -> Iterator[Any]:
        return iter((self[0], self.checkpoint, self[2], self[3], self.pending_writes))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return tuple(iter(self))[key]
        found: Any = tuple.__getitem__(self, key)
        return found() if isinstance(found, Once) else found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(CheckpointTuple(*self))


def listed(
    config: Any,
    checkpoint: Callable[[], Any],
    metadata: Any,
    parent_config: Any,
    writes: Callable[[], Any],
) -> Listed:
    """Make a tuple of which two parts are made on demand."""
    parts = (config, Once(checkpoint), metadata, parent_config, Once(writes))
    return tuple.__new__(Listed, parts)
