"""Loops that kill runs of a workflow at each of their writes, or at any moment, and run them again.

`python -m tests.process.executor_children NAME JSON` runs one loop in a process without threads, so that it
may fork, and prints its result as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.process.executor_trial import Life, Trial, decisions, description
from tests.process.outside import Outside
from tests.recovery.places import Place

#: Long enough for a kill to find an effect under way now and then.
PACE_SECONDS = 0.01


@dataclass
class Loop:
    """Trials over one store, one after another."""

    kind: str
    folder: str
    broken: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.place = Place(self.kind, Path(self.folder))

    def undisturbed(self, outside: Outside) -> dict[str, Any]:
        """Run the workflow once without a kill: that is what all the others have to come to."""
        trial = Trial(self.place, outside, "W-undisturbed")
        trial.live_on()
        assert trial.lives == 1 and trial.problems == [], trial.problems
        with self.place.open() as service:
            events, state = service.events(trial.workflow_id), trial.state(service)
        expected = {"told": trial.told, "state": description(state), "decisions": decisions(events)}
        trial.check(expected)
        assert trial.problems == [], trial.problems
        return expected

    def conclude(self, trial: Trial, expected: dict[str, Any]) -> None:
        """Bring a trial to its end and count it."""
        if not trial.problems:
            trial.live_on()
        trial.check(expected)
        self.counts += Counter(runs=1, kills=trial.kills, processes=trial.lives) + trial.unknown
        self.violations += [f"{trial.workflow_id}: {problem}" for problem in trial.problems]

    def told(self) -> dict[str, Any]:
        """Answer what came of it, with a last look at the trail."""
        with self.place.open() as service:
            report = service.audit.verify(payloads=True)
        if report.fault_count:
            self.violations.append(f"the trail is broken: {report.faults[:3]}")
        return {"counts": self.counts, "violations": self.violations}


def kill_each_write(
    kind: str, folder: str, *, stride: int, seed: int, broken: str | None = None, sought: str = "?"
) -> dict[str, Any]:
    """Kill a run before and after each of its writes; every other time, the next process as well.

    It is over early when a violation was found that says what is sought, for the negative controls.
    """
    loop, dice = Loop(kind, folder, broken), random.Random(seed)
    with Outside(Path(folder)) as outside:
        expected = loop.undisturbed(outside)
        is_over, number = False, 1
        while not is_over and not any(sought in violation for violation in loop.violations):
            for is_after in (False, True):
                trial = Trial(loop.place, outside, f"W-{number}-{int(is_after)}", broken)
                is_over = trial.live(Life(number, is_after)) != "killed" or is_over
                if dice.random() < 0.5 and not is_over:
                    trial.help(trial.live(Life(dice.randint(1, 20), dice.random() < 0.5)))
                loop.conclude(trial, expected)
            number += stride
        return loop.told()


def kill_at_random(kind: str, folder: str, *, runs: int, seed: int) -> dict[str, Any]:
    """Kill processes at any moment, again and again, until the workflow is done all the same."""
    loop, dice = Loop(kind, folder), random.Random(seed)
    with Outside(Path(folder)) as outside:
        expected = loop.undisturbed(outside)
        began = time.monotonic()
        Trial(loop.place, outside, "W-timed").live(Life(pace_seconds=PACE_SECONDS))
        seconds = time.monotonic() - began
        for number in range(runs):
            trial = Trial(loop.place, outside, f"W-{number}")
            for _ in range(dice.randint(1, 8)):
                life = Life(after_seconds=dice.uniform(0.001, seconds), pace_seconds=PACE_SECONDS)
                word = trial.live(life)
                if word == "completed" or trial.problems:
                    break
                trial.help(word)
            loop.conclude(trial, expected)
        return loop.told()


def main() -> None:
    name, options = sys.argv[1], json.loads(sys.argv[2])
    loops: dict[str, Callable[..., dict[str, Any]]] = {
        "kill_each_write": kill_each_write,
        "kill_at_random": kill_at_random,
    }
    print(json.dumps(loops[name](**options)))


if __name__ == "__main__":
    main()
