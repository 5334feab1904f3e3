"""Looks at every state a power cut may leave while a workload runs, and recovers each of them."""

from __future__ import annotations

import hashlib
import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import StoreDamageWarning, StoreNotFoundError
from tests.crash.ledger import Ledger, Seen, differences, see_all
from tests.crash.simulated_disk import Endless, SimulatedDisk
from tests.crash.simulated_machine import Machine, choices
from tests.crash.trail_ledger import Told, see_trails
from tests.crash.workload import Workload, open_on


class Enough(BaseException):
    """One violation was asked for and found."""


@dataclass
class Explorer:
    """Enumerates crash states.

    Args:
        samples: How many of the legal images to look at after each operation, at most.
        repeat_every: Every so many states, recovery is repeated and work goes on after it.
        nest_every: Every so many states, the power is cut again during recovery.
    """

    ordered: bool = True
    samples: int = 4
    repeat_every: int = 5
    nest_every: int = 60
    seed: int = 1
    #: Stop at the first violation: for the tests that break something on purpose.
    first_only: bool = False
    #: Look only from this operation on.
    first_operation: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = Machine(self.ordered)
        self.workload = Workload(lambda: SimulatedDisk(self.machine), after_step=self.look)
        self._rng = random.Random(self.seed)
        self._known: set[bytes] = set()

    def run(self) -> None:
        self.machine.on_operation = self._after_operation
        try:
            self.workload.run()
        except Enough:
            return
        self.violations += [f"the workload itself failed: {error!r}" for error in self.workload.errors]

    def _after_operation(self, operation: str) -> None:
        self.counts["operations"] += 1
        # Half a change of the shared page is one of its versions from now on: no need to look at once.
        if operation != "page half":
            self.look()

    def look(self) -> None:
        """Cut the power now, in every way worth looking at."""
        if len(self.machine.log) < self.first_operation:
            return
        self.machine.on_operation = None
        for image in images(self.machine, self._rng, self.samples):
            digest = fingerprint(image, self.workload.ledger)
            if digest not in self._known:
                self._known.add(digest)
                self._examine(image)
        self.machine.on_operation = self._after_operation

    def _examine(self, image: Machine) -> None:
        self.counts["states"] += 1
        problems = list(self._problems(image))
        if problems:
            last = self.machine.log[-1] if self.machine.log else "nothing"
            where = f"after operation {len(self.machine.log)} ({last})"
            self.violations.append(f"{where}: {problems[0]}")
            if self.first_only:
                raise Enough

    def _problems(self, image: Machine) -> Iterator[str]:
        ledger = self.workload.ledger
        untouched = image.copy()
        yield from guarded(lambda: read_only_problems(image, ledger))
        yield from guarded(lambda: recovery_problems(image, ledger))
        if self.counts["states"] % self.repeat_every == 0:
            self.counts["repeated recoveries"] += 1
            yield from guarded(lambda: repeat_problems(image, ledger))
        if self.counts["states"] % self.nest_every == 0:
            yield from guarded(lambda: self._nested_problems(untouched))

    def _nested_problems(self, image: Machine) -> list[str]:
        """Cut the power again after every operation of the recovery."""
        expected = recovered(image.copy())
        found: list[str] = []

        def cut_again(operation: str) -> None:
            machine.on_operation = None
            for again in images(machine, self._rng, 3):
                self.counts["states during recovery"] += 1
                found.extend(guarded(partial(recovery_problems, again, self.workload.ledger)))
                if everything(open_on(SimulatedDisk(again))) != expected:
                    found.append(f"recovery cut after {operation!r} ended differently")
            machine.on_operation = cut_again

        machine = image
        machine.on_operation = cut_again
        recovered(machine)
        machine.on_operation = None
        return found


def images(machine: Machine, rng: random.Random, samples: int) -> Iterator[Machine]:
    """Machines that a power cut may leave."""
    units = machine.units()
    for choice in choices(units, rng, samples):
        yield machine.image(units, choice)


def fingerprint(image: Machine, ledger: Ledger) -> bytes:
    """Equal for states in which recovery meets the same bytes and owes the same."""
    digest = hashlib.sha256(f"{len(ledger.attempts)} {ledger.acknowledged}".encode())
    for path, data in sorted(image.files().items()):
        digest.update(f"{path} {len(data)} ".encode() + data)
    return digest.digest()


@contextmanager
def damage_is_an_error() -> Iterator[None]:
    """A power cut is no damage: whoever reports one here cries wolf."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", StoreDamageWarning)
        yield


def guarded(look: Callable[[], list[str]]) -> list[str]:
    """What a look found; an exception is a finding too."""
    try:
        with damage_is_an_error():
            return look()
    except (Exception, Endless) as error:
        calls = traceback.extract_tb(error.__traceback__)[-6:]
        return [f"{error!r} at {' < '.join(f'{call.name}:{call.lineno}' for call in reversed(calls))}"]


def recovered(machine: Machine) -> tuple[dict[str, Seen], Told]:
    """Recover, look at everything, die."""
    disk = SimulatedDisk(machine)
    found = everything(open_on(disk))
    disk.kill()
    return found


def everything(store: FilesystemStore) -> tuple[dict[str, Seen], Told]:
    return see_all(store), see_trails(store)


def read_only_problems(image: Machine, ledger: Ledger) -> list[str]:
    """An auditor who may not write looks first."""
    disk = SimulatedDisk(image)
    before = len(image.log)
    try:
        store = open_on(disk, read_only=True)
    except StoreNotFoundError as error:
        return [repr(error)] if ledger.acknowledged else []
    found = [f"read-only: {text}" for text in differences(store, ledger)]
    store.close()
    if len(image.log) != before:
        found.append(f"a read-only opening wrote: {image.log[before:]}")
    return found


def recovery_problems(image: Machine, ledger: Ledger) -> list[str]:
    disk = SimulatedDisk(image)
    found = differences(open_on(disk), ledger, recovered=True)
    disk.kill()
    return found


def repeat_problems(image: Machine, ledger: Ledger) -> list[str]:
    """Recover again and again, go on working, close: nothing changes, nothing is left behind."""
    first = recovered(image)
    found = [] if recovered(image) == first else ["recovering twice ended differently"]
    found += [f"left behind: {path}" for path in image.files() if ".tmp" in path]
    found += work_goes_on(image, ledger)
    return found


def work_goes_on(image: Machine, ledger: Ledger) -> list[str]:
    """New commits follow on what was recovered, and are there after the next opening."""
    later = Workload(lambda: SimulatedDisk(image), Ledger(list(ledger.attempts)), drafts=1000)
    for workflow_id in (*ledger.workflows(), "WF-new"):
        outcomes = later.commit("A", later.draft("A", workflow_id, group=99, day=2))
        if outcomes != [None]:
            return [f"work cannot go on: {outcomes}"]
    found = differences(later.stores["A"], later.ledger)
    later.close("A")
    found += [f"{len(image.handles)} descriptors left open"] if image.handles else []
    store: FilesystemStore = open_on(SimulatedDisk(image))
    return found + differences(store, later.ledger)
