"""The rounds of a run: every workload by every contender, then all of it again."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.compare.driver import Child, Places, PythonOf
from benchmarks.compare.lanes import Lane
from benchmarks.compare.sizes import Sizes
from benchmarks.peers.environment import EnvironmentUnavailableError


@dataclass(slots=True)
class Results:
    """Every number of every round, and who was there."""

    machine: dict[str, Any]
    sizes: dict[str, Any]
    at: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M"))
    rounds: int = 0
    seconds: float = 0.0
    lanes: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def problems(self) -> list[str]:
        """Tell whatever must fail a run: states that were not equal, and contenders that broke."""
        return [
            f"{one['lane']}, {one['workload']}, round {one['round']}{_outcome(one['answer'])}"
            for one in self.answers
            if _outcome(one["answer"])
        ]


class Run:
    """One run: children that wait for their turn, places that are used once."""

    def __init__(
        self, lanes: Sequence[Lane], places: Places, results: Results, keep: Callable[[Results], None]
    ) -> None:
        self._lanes = lanes
        self._places = places
        self.results = results
        self._keep = keep
        self._children: dict[str, Child] = {}
        #: Seconds of each workload in the last round that had it.
        self._took: dict[str, float] = {}

    def start(self, python_of: PythonOf, logs: Path) -> None:
        """Make environments and start processes; whoever has none is told, not left out."""
        logs.mkdir(parents=True, exist_ok=True)
        for lane in self._lanes:
            told: dict[str, Any] = {"title": lane.title, "store": lane.store, "durability": lane.durability}
            try:
                tell(f"{lane.name}: getting ready")
                child = Child(lane, python_of, logs / f"{lane.name}.txt")
                child.start()
                told["versions"] = child.versions
                self._children[lane.name] = child
            except (EnvironmentUnavailableError, OSError) as error:
                told["not_run"] = str(error)
            if not told.get("versions", True):
                del self._children[lane.name]
                told["not_run"] = f"its process did not start, see {lane.name}.txt"
            self.results.lanes[lane.name] = told

    def stop(self) -> None:
        for child in self._children.values():
            child.stop()

    def rounds(self, sizes: Sizes, count: int, seconds: float) -> None:
        """Go round and round; no round begins that would probably not end in time."""
        began = time.monotonic()
        for number in range(1, count + 1):
            self._round(sizes, number)
            self.results.rounds = number
            self.results.seconds = time.monotonic() - began
            self._keep(self.results)
            following = sum(self._took[workload] for workload, *_ in sizes.workloads(number + 1))
            if number < count and self.results.seconds + following > seconds:
                tell(f"stopped after {number} of {count} rounds: another would not end in time")
                return

    def _round(self, sizes: Sizes, number: int) -> None:
        for workload, kind, arguments in sizes.workloads(number):
            began = time.monotonic()
            # Nobody comes always after the same one.
            turned = [*self._lanes[number:], *self._lanes[:number]]
            for lane in turned:
                if lane.name in self._children and lane.only in (None, kind):
                    answer = self._asked(lane, kind, arguments)
                    tell(f"round {number}, {workload}, {lane.name}{_outcome(answer)}")
                    self.results.answers.append(
                        {"round": number, "workload": workload, "lane": lane.name, "answer": answer}
                    )
            self._took[workload] = time.monotonic() - began

    def _asked(self, lane: Lane, kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
        url = self._places.new(lane.store)
        try:
            return self._children[lane.name].ask(kind, arguments, url)
        except (BrokenPipeError, subprocess.TimeoutExpired) as error:
            return {"failed": f"{type(error).__name__}: {error}"}
        finally:
            self._places.clear(url)


def _outcome(answer: dict[str, Any]) -> str:
    return next(
        (f": {kind.replace('_', ' ')}: {answer[kind]}" for kind in ("failed", "not_equal") if kind in answer),
        "",
    )


def tell(line: str) -> None:
    print(f"compare: {line}", file=sys.stderr, flush=True)
