"""Trees before they are printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.cli.terminal_text import safe


@dataclass(slots=True)
class Branch:
    """A line of a tree, and what hangs below it."""

    text: str
    below: list[Branch] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the tree as plain lines, drawn with letters that every terminal has."""
        # A stack of its own: trees of forks may be deeper than calls may nest.
        waiting: list[tuple[Branch, str, str]] = [(self, "", "")]
        while waiting:
            branch, first, rest = waiting.pop()
            yield first + safe(branch.text)
            last = len(branch.below) - 1
            for place, one in reversed(list(enumerate(branch.below))):
                mark, gap = ("`- ", "   ") if place == last else ("|- ", "|  ")
                waiting.append((one, rest + mark, rest + gap))
