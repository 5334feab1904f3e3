"""A period of the log: which of its entries were made then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.errors import CheckpointError
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import read_fields


@dataclass(frozen=True, slots=True)
class Period:
    """From a moment on, and until before another; empty where there is no such end."""

    since: str = ""
    until: str = ""

    @classmethod
    def between(cls, since: datetime | None, until: datetime | None) -> Period | None:
        """Answer the period between two moments; None where neither is given."""
        if since is None and until is None:
            return None
        return cls(timestamp_text(since) if since else "", timestamp_text(until) if until else "")

    def __str__(self) -> str:
        return f"from {self.since or 'the beginning'} to {self.until or 'the end'}"

    def has(self, line: bytes) -> bool:
        """Tell whether an entry was made then; of a damaged one that is not known."""
        try:
            made_at = str(read_fields(line)["ts"])
        except CheckpointError:
            return False
        return made_at >= self.since and (not self.until or made_at < self.until)

    def stretch(self, lines: Iterable[bytes]) -> tuple[int, int]:
        """Answer the places of the first and the last entry of the period; (0, -1) where it has none.

        Clocks differ, so what lies between may be a little earlier or later: left out, it would be a gap.
        """
        first, last = 0, -1
        for place, line in enumerate(lines):
            if self.has(line):
                first, last = (first if last >= 0 else place), place
        return first, last
