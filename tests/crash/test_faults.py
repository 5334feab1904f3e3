"""Every operation of a workload fails in every way: the caller is told, nothing acknowledged is lost."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from holdfast.adapters.filesystem.disk import Disk
from tests.crash.evidence import keep
from tests.crash.explorer import guarded, images, recovery_problems
from tests.crash.faulty_disk import FAULTS, Fault, FaultyDisk
from tests.crash.ledger import differences
from tests.crash.simulated_machine import Machine
from tests.crash.workload import Workload, open_on

NEVER = 10**9


class FaultyRun:
    """One run of the workload on a machine whose disk has a fault."""

    def __init__(self, fault: Fault, rng: random.Random) -> None:
        self.fault = fault
        self.machine = Machine(ordered=False)
        self.rng = rng
        self.problems: list[str] = []
        self.states = 0
        self.looked = 0
        self.workload = Workload(lambda: FaultyDisk(self.machine, fault), after_step=self._after_step)

    def run(self) -> list[str]:
        self.problems += guarded(self._run)
        self._cut_power(3)
        self.fault.gone = True
        self.problems += guarded(self._works_again)
        return self.problems

    def _run(self) -> list[str]:
        self.workload.run()
        return []

    def _after_step(self) -> None:
        """Cut the power soon after the fault, while its consequences are fresh."""
        if self.fault.struck and self.looked < 2:
            self.looked += 1
            self._cut_power(2)

    def _cut_power(self, samples: int) -> None:
        for image in images(self.machine, self.rng, samples):
            self.states += 1
            found = guarded(lambda image=image: recovery_problems(image, self.workload.ledger))
            self.problems += [f"after a power cut: {text}" for text in found]

    def _works_again(self) -> list[str]:
        """The fault is gone: those who live can commit again, and a new process finds everything."""
        w = self.workload
        found: list[str] = []
        for name in ("A", "B"):
            outcome = w.commit(name, w.draft(name, f"WF-{name}-again"))
            found += [] if outcome == [None] else [f"cannot commit again: {outcome}"]
            found += differences(w.stores[name], w.ledger)
        for disk in w.disks.values():
            disk.kill()
        return found + recovery_problems(self.machine, w.ledger)


def operations_of(name: str) -> int:
    """How many operations of the workload a fault can meet."""
    counting, machine = Fault(name, NEVER), Machine()
    Workload(lambda: FaultyDisk(machine, counting)).run()
    return counting.count


def points(campaign: bool) -> Iterator[Fault]:
    rng = random.Random(7)
    for name in FAULTS:
        total = operations_of(name)
        for persistent in (False, True):
            chosen = range(total) if campaign else sorted(rng.sample(range(total), 14))
            yield from (Fault(name, at, persistent) for at in chosen)


def test_no_fault_of_the_disk_loses_what_was_acknowledged(campaign: bool) -> None:
    rng = random.Random(11)
    counts: Counter[str] = Counter()
    violations: list[str] = []
    for fault in points(campaign):
        run = FaultyRun(fault, rng)
        problems = run.run()
        counts["faults"] += 1
        counts["faults that struck"] += bool(fault.struck)
        counts["power cuts"] += run.states
        counts["errors told"] += len(run.workload.errors)
        if problems:
            kind = "persistent" if fault.persistent else "once"
            violations.append(f"{fault.name} {kind} at {fault.at} ({fault.log[:1]}): {problems[0]}")
    keep("faults", counts, violations, campaign=campaign)
    assert violations == []
