"""What a forked child inherits and must not keep: a descriptor of its parent's keeps the parent's locks."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Inherited(Protocol):
    """Something that holds descriptors with locks."""

    def let_go(self) -> None:
        """Close them, in a forked child, without unlocking."""


_HELD: weakref.WeakSet[Inherited] = weakref.WeakSet()


def hold(held: Inherited) -> None:
    """Let a forked child let go of it."""
    _HELD.add(held)


def drop(held: Inherited) -> None:
    """Say that it holds nothing any more."""
    _HELD.discard(held)


def _after_fork() -> None:
    for held in list(_HELD):
        held.let_go()


os.register_at_fork(after_in_child=_after_fork)
