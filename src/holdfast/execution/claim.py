"""Having a workflow for a run, and noticing when it is lost."""

from __future__ import annotations

from collections.abc import Callable


class Claim:
    """The lease of a run, and what to do when it is lost."""

    def __init__(self) -> None:
        self.is_lost = False
        self.on_lost: Callable[[], object] = lambda: None

    def lose(self) -> None:
        """Note that somebody else has the workflow now."""
        self.is_lost = True
        self.on_lost()
