"""What waited and was refused once the store could be written: its callers had been told that it waits."""

from __future__ import annotations

import threading

from holdfast.application.storage_faults import reason_of
from holdfast.domain.unwritten import Unwritten, together


class Refusals:
    """Remembers of each workflow how many were refused, why, and where they are. Safe to use from threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._of: dict[str, Unwritten] = {}

    def add(self, workflow_id: str, problem: Exception, place: str | None) -> None:
        """Take up one that is kept in a place; None: it is lost."""
        refused = Unwritten(1, reason_of(problem), place, place is None, is_refused=True)
        with self._mutex:
            self._of[workflow_id] = together(self._of.get(workflow_id, Unwritten()), refused)

    def of(self, workflow_id: str) -> Unwritten:
        """Tell of those of a workflow."""
        return self._of.get(workflow_id, Unwritten())

    def forget(self, workflow_id: str) -> None:
        """Tell no more of those of a workflow: whoever begins with it now begins with what the store has."""
        with self._mutex:
            self._of.pop(workflow_id, None)
