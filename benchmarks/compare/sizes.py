"""How much is measured: enough to tell, more, or as little as shows that everything works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sizes:
    """Steps and turns of every workload."""

    #: Steps for each size of a constant state, in bytes.
    constant: dict[int, int]
    image_steps: int
    #: Saves of each writer, for each number of writers.
    writers: dict[int, int]
    kill_at: int
    #: A chat is looked at after so many turns; the last is its end.
    turns: tuple[int, ...]
    #: Whoever has talked for so long stops.
    turn_seconds: float
    #: Whether every round has a chat; otherwise the first alone.
    has_chats: bool = False

    def workloads(self, number: int) -> list[tuple[str, str, dict[str, Any]]]:
        """List name, kind and arguments of what a round measures; the rounds count from 1."""
        listed: list[tuple[str, str, dict[str, Any]]] = [
            (f"constant-{size}", "constant", {"size": size, "steps": steps})
            for size, steps in self.constant.items()
        ]
        listed.append(("images", "images", {"steps": self.image_steps}))
        listed += [
            (f"writers-{count}", "writers", {"count": count, "each": each})
            for count, each in self.writers.items()
        ]
        listed.append(("resume", "resume", {"kill_at": self.kill_at}))
        if number == 1 or self.has_chats:
            listed.append(("chat", "chat", {"marks": self.turns, "budget_seconds": self.turn_seconds}))
        return listed


TURNS = (125, 250, 500, 1_000, 2_000)

SMALL = Sizes({2_000: 12, 20_000: 12}, 6, {8: 3}, 12, (10, 20), 10.0)
USUAL = Sizes({2_000: 100, 20_000: 200, 1_000_000: 20}, 20, {8: 50, 64: 10}, 300, TURNS, 20.0)
FULL = Sizes(
    {2_000: 500, 20_000: 500, 1_000_000: 60}, 60, {8: 100, 64: 25}, 500, TURNS, 600.0, has_chats=True
)
