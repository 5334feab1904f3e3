"""What was recorded and is not in the store, told to people."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Commits of a workflow that the store does not have.

    Attributes:
        commits: how many.
        reason: what kept them from being written.
        place: the second store that all of them are in; None: they are not kept there.
        is_lost: whether they are nowhere any more, not even in memory.
    """

    commits: int = 0
    reason: str = ""
    place: str | None = None
    is_lost: bool = False

    @property
    def message(self) -> str:
        """Say how many there are, why, and where; empty if there are none."""
        if not self.commits:
            return ""
        many = "1 commit is" if self.commits == 1 else f"{self.commits:,} commits are"
        return f"{many} not in the store, but {self._where} ({self.reason})"

    @property
    def hint(self) -> str:
        """Say what to do about it; empty if there is nothing."""
        if not self.commits:
            return ""
        if self.place is None and not self.is_lost:
            return "Call `flush()` once the store can be written, before the service is closed."
        again = "Once the store can be written, run it again: what it does not have is done again."
        if self.is_lost:
            return f'{again} With on_fault = "degrade", emergency_path on another disk keeps what waits.'
        return f"{again} `holdfast list --store {self.place}` shows what was kept."

    @property
    def text(self) -> str:
        """Say all of it in one line."""
        return f"{self.message}. {self.hint}" if self.commits else ""

    @property
    def _where(self) -> str:
        if self.is_lost:
            return "LOST"
        return "in memory only" if self.place is None else f"kept in {self.place}"
