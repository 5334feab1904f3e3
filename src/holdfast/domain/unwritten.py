"""What was recorded and is not in the store, told to people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Commits of a workflow that the store does not have.

    Attributes:
        commits: how many.
        reason: what kept them from being written.
        place: the second store that all of them are in; None: they are not kept there.
        is_lost: whether they are nowhere any more, not even in memory.
        is_refused: whether the store will never take them, however well it can be written.
        others: more of them, which fared otherwise and not worse.
    """

    commits: int = 0
    reason: str = ""
    place: str | None = None
    is_lost: bool = False
    is_refused: bool = False
    others: Unwritten | None = None

    @property
    def message(self) -> str:
        """Say how many there are, why, and where; empty if there are none."""
        if not self.commits:
            return ""
        many = "1 commit is" if self.commits == 1 else f"{self.commits:,} commits are"
        told = f"{many} not in the store, but {self._where} ({self.reason})"
        return told if self.others is None else f"{told}; {self.others.message}"

    @property
    def hint(self) -> str:
        """Say what to do about it; empty if there is nothing."""
        if not self.commits:
            return ""
        if self.place is None and not self.is_lost:
            return "Call `flush()` once the store can be written, before the service is closed."
        first = "See to why it refused them, and" if self.is_refused else "Once the store can be written,"
        again = f"{first} run it again: what it does not have is done again."
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


def together(*several: Unwritten) -> Unwritten:
    """Tell of several as of one: what fared alike is counted together, and the worst comes first."""
    counts: Counter[Unwritten] = Counter()
    for one in several:
        part: Unwritten | None = one
        while part is not None:
            counts[replace(part, commits=0, others=None)] += part.commits
            part = part.others
    told: Unwritten | None = None
    for alike in sorted(counts, key=_safety, reverse=True):
        if counts[alike]:
            told = replace(alike, commits=counts[alike], others=told)
    return told or Unwritten()


def _safety(told: Unwritten) -> int:
    """Rank what is kept above what is in memory only, and that above what is lost."""
    if told.is_lost:
        return 0
    return 1 if told.place is None else 2
