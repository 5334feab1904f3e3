"""Having a workflow for a run, and noticing when it is lost."""

from __future__ import annotations

import os
from collections.abc import Callable


class Claim:
    """The lease of a run, and what to do when it is lost."""

    def __init__(self) -> None:
        self._is_lost = False
        self._pid = os.getpid()
        self.on_lost: Callable[[], object] = lambda: None

    @property
    def is_lost(self) -> bool:
        """Whether nothing may be done under it: somebody else has the workflow, or this is a forked child."""
        return self._is_lost or self._pid != os.getpid()

    def lose(self) -> None:
        """Note that somebody else has the workflow now."""
        self._is_lost = True
        self.on_lost()
