"""Every call of a scenario that changes files fails once, or is the last one before death: `strace`.

There are two scenarios: a store is made and first written to; one that has grown is opened, written to,
pruned, erased from, settled and closed. Both are those of a careful caller: an error is noted and the store
opened again. Afterwards it is opened, checked, written to and checked again. A caller that acknowledges first
must be found out.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.machine.apart import checked
from tests.machine.images import workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES, Scenario
from tests.machine.subjects import FILES, Told
from tests.machine.tracing import Fault, Traced, faults_for, traced
from tests.process.child import Report, start

NAME = "system calls"
#: The next commit begins a group: with a keyframe, an erasure and a prune.
GROWN_COMMITS = 30
#: The order in which cases are taken: each part sees all kinds of them.
_SHUFFLE = 9


@dataclass(frozen=True, slots=True)
class Stage:
    """A store to begin with, if any, what was told of it, and how much is done to it."""

    store: str
    #: Where it lies; copies that are hurt have names of the same length: the same calls are made there.
    folder: Path
    commits: int
    lines: tuple[str, ...] = ()

    def copy(self, name: str) -> Scenario:
        """Make a copy that may be hurt."""
        place = self.folder.with_name(name)
        shutil.copytree(self.folder, place)
        return Scenario(self.store, str(place), self.commits)

    def told(self, seen: Traced) -> Told:
        """Give everything that was ever acknowledged."""
        told = Told()
        told.note_all((*self.lines, *seen.lines))
        return told


def stages(store: str, folder: Path) -> list[Stage]:
    """Make what the scenarios begin with."""
    new, grown = folder / "0000new", folder / "00grown"
    for place in (new, grown):
        place.mkdir()
    child = start(_grow, Scenario(store, str(grown), GROWN_COMMITS))
    if child.end():
        raise RuntimeError("the scenario failed without a fault")
    return [Stage(store, new, 2), Stage(store, grown, 2, tuple(child.lines))]


def _grow(report: Report, _: int, scenario: Scenario) -> None:
    scenario.play(report)


def _play(report: Report, scenario: Scenario, lies: bool) -> None:
    scenario.play_carefully(report, lies=lies)


def run(order: Order) -> Outcome:
    """Take the cases of one part: seed 1 the first so many, seed 2 the next."""
    outcome = Outcome(NAME, order)
    with workshop() as folder:
        cases = [
            (stage, fault) for stage in stages(order.store, folder) for fault in _faults_of(stage, folder)
        ]
        outcome.counts["cases in all"] = len(cases)
        random.Random(_SHUFFLE).shuffle(cases)
        first = (order.seed - 1) * order.cases
        for stage, fault in cases[first : first + order.cases]:
            if not outcome.goes_on:
                break
            _try(outcome, stage, fault, folder)
    return outcome


def _faults_of(stage: Stage, folder: Path) -> list[Fault]:
    scenario = stage.copy("counted")
    seen = traced(folder / "log", None, _play, scenario, False)
    if seen.status:
        raise RuntimeError(f"the scenario failed without a fault: {seen.said}")
    shutil.rmtree(scenario.folder)
    return faults_for(seen.calls_below(scenario.folder))


def _try(outcome: Outcome, stage: Stage, fault: Fault, folder: Path) -> None:
    scenario = stage.copy(f"{outcome.cases:07d}")
    seen = traced(folder / "log", fault, _play, scenario, outcome.order.lies)
    told = stage.told(seen)
    outcome.blame(f"{stage.folder.name}, {fault}", [*ended(seen, fault), *look(scenario, told)])
    outcome.cases += 1
    outcome.acknowledged += told.count - len([line for line in stage.lines if line.startswith("ack")])
    outcome.count(fault.what)
    outcome.count("errors told", told.errors)
    outcome.count("met another call", int(not seen.was_hit(fault, scenario.folder)))
    shutil.rmtree(scenario.folder)


def ended(seen: Traced, fault: Fault) -> list[str]:
    """Say whether a process ended as it should: by itself, or by the kill."""
    if seen.status == 0 or (fault.what == "KILL" and seen.status == -9):
        return []
    return [f"an error that is not ours escaped ({seen.status}): {seen.said[-300:]}"]


def look(scenario: Scenario, told: Told) -> list[str]:
    """Open, check, write, check."""
    mark = f"{scenario.root}/holdfast.json" if scenario.store == FILES else scenario.root
    found = checked(scenario.check, told) if told.count or os.path.exists(mark) else []
    return found or checked(scenario.go_on) or checked(scenario.check, told)


HARNESS = Harness(NAME, STORES, run, programs=("strace",), needs_root=False)

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=200))
