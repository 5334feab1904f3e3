"""The steps that Holdfast goes down when nothing can be made durable, and up again.

Down at once, to where things work. Up one step at a time, and only after several successes in a row: a disk
that is full again a moment later must not make everybody run up and down.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from holdfast.domain.value import value


class Mode(StrEnum):
    """How much of what is recorded becomes durable."""

    FULL = "full"
    #: States wait in memory; events still fit into the space that the store keeps for them.
    EVENT_ONLY = "event_only"
    #: Everything waits in memory.
    MEMORY_ONLY = "memory_only"
    #: Memory does not suffice either: what waits is in a second store.
    EMERGENCY = "emergency"

    @property
    def depth(self) -> int:
        """How many steps below full."""
        return _ORDER.index(self)


_ORDER = tuple(Mode)


@value
class Climb:
    """How trust is regained.

    Attributes:
        successes: writes in a row that have to succeed for one step up.
        pause_seconds: how long the store is left alone after a fault.
        pause_max_seconds: no pause is longer, however many faults there were in a row.
    """

    successes: int = 2
    pause_seconds: float = 0.5
    pause_max_seconds: float = 30.0


@value
class Ladder:
    """Where Holdfast stands; a step is a new value."""

    mode: Mode = Mode.FULL
    #: Successes in a row since the last fault or step.
    successes: int = 0
    #: Faults since the last success that was followed by another.
    faults: int = 0

    def fault(self, mode: Mode) -> Ladder:
        """Go down to a mode, or stay where that is not below."""
        lower = max(self.mode, mode, key=lambda step: step.depth)
        return Ladder(lower, faults=self.faults + 1)

    def success(self, climb: Climb) -> Ladder:
        """Count a write of everything that waited; go up one step where that makes enough of them."""
        successes = self.successes + 1
        if successes < climb.successes:
            return replace(self, successes=successes)
        if self.mode is Mode.FULL:
            return Ladder()
        return Ladder(_ORDER[self.mode.depth - 1])

    def events_pass(self) -> Ladder:
        """Go up from memory to events: they can be written, states cannot yet."""
        return replace(self, mode=Mode.EVENT_ONLY, successes=0) if self.mode.depth > 1 else self

    def pause_seconds(self, climb: Climb) -> float:
        """Tell how long to leave the store alone: twice as long after each fault in a row."""
        if not self.faults:
            return 0.0
        return min(climb.pause_seconds * 2.0 ** min(self.faults - 1, 32), climb.pause_max_seconds)
