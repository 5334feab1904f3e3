"""What every harness here is asked and answers: so many cases of a seed, or why it could not run."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VIOLATIONS_MAX = 10
TEXT_MAX = 400


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for."""

    store: str
    cases: int
    seed: int
    #: No case begins after so long.
    seconds: float = 3600.0
    #: The negative control: the promise is broken on purpose, and the harness must find it.
    lies: bool = False
    began: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    harness: str
    order: Order
    cases: int = 0
    acknowledged: int = 0
    violations: list[str] = field(default_factory=list)
    #: What else was counted.
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def goes_on(self) -> bool:
        """Tell whether another case is to begin: one violation ends it, for what follows rests on it."""
        is_in_time = time.monotonic() - self.order.began < self.order.seconds
        return self.cases < self.order.cases and not self.violations and is_in_time

    def count(self, name: str, number: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + number

    def blame(self, where: str, found: Sequence[str]) -> None:
        """Take in violations, with the words that lead back to them."""
        texts = [f"seed {self.order.seed}, {where}: {text}"[:TEXT_MAX] for text in found]
        self.violations += texts[: VIOLATIONS_MAX - len(self.violations)]

    def told(self, not_run: str = "") -> dict[str, Any]:
        """Give it for machines."""
        order = self.order
        return {
            "harness": self.harness,
            "store": order.store,
            "cases": self.cases,
            "acknowledged": self.acknowledged,
            "counts": self.counts,
            "violations": self.violations,
            "is_control": order.lies,
            "seed": order.seed,
            "seconds": round(time.monotonic() - order.began, 1),
            "not_run": not_run,
        }


@dataclass(frozen=True, slots=True)
class Harness:
    """One way to hurt stores, and what the machine must have for it."""

    name: str
    stores: tuple[str, ...]
    run: Callable[[Order], Outcome]
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    needs_root: bool = True

    def missing(self) -> str:
        """Say what keeps it from running here; empty if nothing does."""
        if self.needs_root and os.geteuid() != 0:
            return "only root may do this"
        absent = [f"the program {name} is missing" for name in self.programs if not shutil.which(name)]
        absent += [
            f"the package {name} is missing" for name in self.modules if not importlib.util.find_spec(name)
        ]
        absent += [f"{path} is missing" for path in self.paths if not Path(path).exists()]
        return "; ".join(absent)


def main(harness: Harness, cases: int) -> int:
    """Do what the command line says, and print the outcome as JSON."""
    parser = argparse.ArgumentParser(description=harness.name)
    parser.add_argument("--store", choices=harness.stores, default=harness.stores[0])
    parser.add_argument("--cases", type=int, default=cases)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3600.0, help="no case begins after so long")
    parser.add_argument("--control", action="store_true", help="break the promise: it must go red")
    given = parser.parse_args()
    order = Order(given.store, given.cases, given.seed, given.seconds, given.control)
    missing = harness.missing()
    outcome = Outcome(harness.name, order) if missing else harness.run(order)
    sys.stdout.write(json.dumps(outcome.told(missing), indent=2) + "\n")
    return int(bool(outcome.violations) != order.lies) if not missing else 0
