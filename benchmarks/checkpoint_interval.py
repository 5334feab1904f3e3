"""How much time a run loses with checkpoints at fixed intervals, and at learnt ones: a simulation.

Every policy meets the same failures. What is lost is everything but the work itself: checkpoints, work done
again, and restarts. Run it alone with `python -m benchmarks.checkpoint_interval`.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from benchmarks.measure import Row
from holdfast.execution.adaptive import AdaptiveInterval, AdaptiveSettings

MINUTE = 60.0
HOUR = 60 * MINUTE
WORK_SECONDS = 24 * HOUR
RESTART_SECONDS = 30.0
RUNS = 40


class Policy(Protocol):
    """Decides when the next checkpoint is made, and is told what happens."""

    @property
    def interval_seconds(self) -> float:
        """How long to run from the end of a checkpoint to the next."""

    def ran(self, seconds: float) -> None:
        """Hear how long the run went on."""

    def failed(self) -> None:
        """Hear that it failed."""

    def paid(self, cost_seconds: float) -> None:
        """Hear what a checkpoint cost."""

    def restarted(self) -> Policy:
        """Tell what a new process knows of this one."""


class Fixed:
    """Hears nothing."""

    def __init__(self, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds

    def ran(self, seconds: float) -> None: ...

    def failed(self) -> None: ...

    def paid(self, cost_seconds: float) -> None: ...

    def restarted(self) -> Policy:
        return self


class Adaptive(AdaptiveInterval):
    """Survives each failure as in a real run: by what was stored with a checkpoint, or with a restart."""

    def __init__(self, settings: AdaptiveSettings | None = None) -> None:
        super().__init__(settings)
        self._stored = self.as_plain()

    def paid(self, cost_seconds: float) -> None:
        super().paid(cost_seconds)
        self._store()

    def failed(self) -> None:
        super().failed()
        self._store()

    def _store(self) -> None:
        self._stored = self.as_plain()

    def restarted(self) -> Policy:
        return self.from_plain(self._stored, self.settings)


class Deaf(Adaptive):
    """Is never told of a failure: the control that shows what telling it is worth."""

    def failed(self) -> None: ...


class Careless(Adaptive):
    """Is never told a cost: the other control."""

    def paid(self, cost_seconds: float) -> None:
        self._store()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A world to run in.

    Attributes:
        mtbf_seconds: mean time between failures in each half of the planned time.
        cost_seconds: cost of a checkpoint at the beginning of the work, and at its end.
    """

    name: str
    mtbf_seconds: tuple[float, float]
    cost_seconds: tuple[float, float]

    def cost(self, done_seconds: float) -> float:
        first, last = self.cost_seconds
        return first + (last - first) * done_seconds / WORK_SECONDS

    def failures(self, source: random.Random) -> Iterator[float]:
        """Tell the times at which something breaks; no failure remembers the one before."""
        before, after = self.mtbf_seconds
        at, half = 0.0, WORK_SECONDS / 2
        while (at := at + source.expovariate(1 / before)) < half:
            yield at
        at = half
        while True:
            yield (at := at + source.expovariate(1 / after))


def steady(name: str, mtbf_seconds: float, cost_seconds: float) -> Scenario:
    return Scenario(name, (mtbf_seconds, mtbf_seconds), (cost_seconds, cost_seconds))


#: Checkpoints are about the same in these; how often a run fails is not.
FAILURE_SCENARIOS = (
    steady("calm: fails once a day", 24 * HOUR, 2.0),
    steady("rough: fails every half hour", 30 * MINUTE, 2.0),
    Scenario("worse: failures 16 times as often", (8 * HOUR, 30 * MINUTE), (5.0, 5.0)),
    Scenario("better: failures 16 times as rare", (30 * MINUTE, 8 * HOUR), (5.0, 5.0)),
)
#: The other way round.
COST_SCENARIOS = (
    steady("cheap: a checkpoint takes 0.1 s", 4 * HOUR, 0.1),
    steady("dear: a checkpoint takes a minute", 4 * HOUR, 60.0),
    Scenario("growing: from 1 s to 2 min each", (4 * HOUR, 4 * HOUR), (1.0, 120.0)),
)
SCENARIOS = FAILURE_SCENARIOS + COST_SCENARIOS
FIXED = {"1 min": MINUTE, "5 min": 5 * MINUTE, "10 min": 10 * MINUTE, "1 h": HOUR}
POLICIES: dict[str, Callable[[], Policy]] = {
    **{name: partial(Fixed, seconds) for name, seconds in FIXED.items()},
    "adaptive": Adaptive,
}


def lost_seconds(scenario: Scenario, policy: Policy, seed: int) -> float:
    """Run one workflow to its end and tell how much longer it took than its work."""
    failures = scenario.failures(random.Random(f"{scenario.name} {seed}"))
    now, saved, breaks_at = 0.0, 0.0, next(failures)
    while saved < WORK_SECONDS:
        step = min(policy.interval_seconds, WORK_SECONDS - saved)
        cost = scenario.cost(saved + step)
        if now + step + cost <= breaks_at:
            now, saved = now + step + cost, saved + step
            policy.ran(step + cost)
            policy.paid(cost)
            continue
        policy.ran(breaks_at - now)
        policy = policy.restarted()
        policy.failed()
        now = breaks_at + RESTART_SECONDS
        # What breaks while it is down breaks nothing.
        breaks_at = next(at for at in failures if at > now)
    return now - WORK_SECONDS


def mean_lost_hours(policy: Callable[[], Policy], scenarios: Iterable[Scenario], runs: int = RUNS) -> float:
    """Tell the hours lost, in the mean over scenarios and many runs of each."""
    worlds = [(scenario, seed) for scenario in scenarios for seed in range(runs)]
    return statistics.fmean(lost_seconds(scenario, policy(), seed) for scenario, seed in worlds) / HOUR


def run(folder: Path, runs: int = RUNS) -> list[Row]:
    """Answer the rows of the table; nothing is written to the folder."""
    rows = [_row(scenario.name, _by_policy((scenario,), runs)) for scenario in SCENARIOS]
    means = _by_policy(SCENARIOS, runs)
    best = min(means[name] for name in FIXED)
    held = means["adaptive"] < best
    return [*rows, _row("all of them, in the mean", means, f"< {best:.2f} h, the best fixed", held=held)]


def _by_policy(scenarios: Iterable[Scenario], runs: int) -> dict[str, float]:
    return {name: mean_lost_hours(policy, scenarios, runs) for name, policy in POLICIES.items()}


def _row(what: str, hours: dict[str, float], bar: str = "", *, held: bool | None = None) -> Row:
    told = ", ".join(f"{name} {lost:.2f}" for name, lost in hours.items())
    return Row("hours lost in a day of work, by checkpoint interval", what, told, bar, held)


if __name__ == "__main__":
    for row in run(Path()):
        print(f"{row.what:<40} {row.value}  {row.bar}")
