"""Every operation of a workload fails in every way: the caller is told, nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.disk import Disk as RealDisk
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.ring import Ring
from tests.crash.evidence import keep
from tests.crash.explorer import guarded, images, recovery_problems
from tests.crash.faulty_disk import FAULTS, Fault, FaultyDisk
from tests.crash.ledger import differences
from tests.crash.simulated_machine import Machine
from tests.crash.workload import LARGE_STATE, Workload

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
            self.problems += guarded(self._read_by_the_living)

    def _read_by_the_living(self) -> list[str]:
        """While the disk can be read, who has the store open sees all that was acknowledged."""
        self.fault.gone = True
        stores = self.workload.stores.items()
        found = [
            f"{name} reads: {text}" for name, s in stores for text in differences(s, self.workload.ledger)
        ]
        self.fault.gone = False
        return found

    def _cut_power(self, samples: int) -> None:
        for image in images(self.machine, self.rng, samples):
            self.states += 1
            found = guarded(partial(recovery_problems, image, self.workload.ledger))
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
            chosen = range(total) if campaign else sorted(rng.sample(range(total), 2))
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


def is_folder_sync(kind: str, path: str) -> bool:
    return kind == "sync folder" and path == "journal"


@pytest.mark.parametrize("persistent", [False, True], ids=["once", "for good"])
def test_a_new_ring_whose_name_may_be_lost_takes_nothing_from_the_old_one(persistent: bool) -> None:
    counting, machine = Fault("EIO", NEVER, only=is_folder_sync), Machine()
    Workload(lambda: FaultyDisk(machine, counting)).run()
    assert counting.count > 2
    for at in range(counting.count):
        run = FaultyRun(Fault("EIO", at, persistent, only=is_folder_sync), random.Random(at))
        assert run.run() == []


# -- the harness goes red when the protocol is broken --------------------------------------------


def first_violation(only: Callable[[str, str], bool]) -> list[str]:
    """Fail every operation of one kind in turn until something breaks."""
    for at in range(200):
        fault = Fault("EIO", at, only=only)
        problems = FaultyRun(fault, random.Random(at)).run()
        if problems or not fault.struck:
            return problems
    return []


def test_it_goes_red_when_a_failed_sync_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def sync_twice(self: Ring) -> None:
        try:
            self._disk.sync(self.handle)
        except OSError:
            self._disk.sync(self.handle)

    monkeypatch.setattr(Ring, "sync", sync_twice)
    assert first_violation(lambda kind, path: kind == "sync" and "/ring-" in path) != []


def test_it_goes_red_when_files_whose_sync_failed_are_not_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = Page.mark
    monkeypatch.setattr(
        Page, "mark", lambda self, cell, generation: 0 if cell == Page.REDO else real(self, cell, generation)
    )
    assert first_violation(lambda kind, path: kind == "sync" and "journal/" not in path) != []


# -- on the real disk ----------------------------------------------------------------------------


def test_writes_and_reads_that_stop_short_are_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, read = os.pwrite, os.pread
    monkeypatch.setattr(os, "pwrite", lambda handle, data, offset: write(handle, data[:1000], offset))
    monkeypatch.setattr(os, "pread", lambda handle, length, offset: read(handle, min(length, 700), offset))
    w = Workload(lambda: RealDisk(str(tmp_path / "store")))
    w.commit("A", w.draft("A", "WF-one", keyframe=LARGE_STATE, pad=900))
    w.commit("A", w.draft("A", "WF-one", pad=900))
    w.close("A")
    assert differences(w.store("A"), w.ledger) == []
    w.close("A")
