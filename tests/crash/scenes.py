"""Short scenes that several tests play: processes that die, stop, or read at a bad moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.domain.errors import CheckpointWriteError
from tests.crash.explorer import damage_is_an_error, recovery_problems
from tests.crash.ledger import Ledger
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine
from tests.crash.workload import Workload


class Killed(BaseException):
    """The process is gone: no handler runs."""


def on(machine: Machine) -> Workload:
    return Workload(lambda: SimulatedDisk(machine))


def killed_before_sync(w: Workload, name: str, workflow_id: str, *, pad: int = 40) -> None:
    """A process appends a commit and dies before its sync."""

    def die() -> None:
        raise Killed

    commit = w.draft(name, workflow_id, pad=pad)
    w.disks[name].before_sync(die)
    with pytest.raises(Killed):
        w.commit(name, commit)
    w.disks[name].kill()
    del w.stores[name]


def sound(machine: Machine, ledger: Ledger) -> None:
    with damage_is_an_error():
        assert recovery_problems(machine, ledger) == []


def attempt(w: Workload, name: str, workflow_id: str) -> bool:
    try:
        return w.commit(name, w.draft(name, workflow_id)) == [None]
    except CheckpointWriteError:
        return False


def settle_until(machine: Machine, w: Workload, last: int) -> bool:
    """Settle, and kill the settling process after so many operations; False if it finished before."""
    seen = 0

    def stop(operation: str) -> None:
        nonlocal seen
        seen += 1
        if seen > last:
            raise Killed

    machine.on_operation = stop
    try:
        w.store("A").settle()
    except Killed:
        return True
    finally:
        machine.on_operation = None
    return False


class TearingDisk(SimulatedDisk):
    """Writes in two pieces, and lets others look in between."""

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        half = len(data) // 2
        super().write(handle, data[:half], offset)
        super().write(handle, data[half:], offset + half)


class InterruptedDisk(SimulatedDisk):
    """Lets a neighbour work once, just before the chosen one of this process's looks at the disk."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.looks = 0
        self.interruption = -1
        self.neighbour: Callable[[], None] = lambda: None

    def _look(self) -> None:
        self.looks += 1
        if self.looks == self.interruption:
            self.neighbour()

    def read(self, handle: int, length: int, offset: int) -> bytes:
        self._look()
        return super().read(handle, length, offset)

    def size(self, handle: int) -> int:
        self._look()
        return super().size(handle)

    def file_size(self, path: str) -> int | None:
        self._look()
        return super().file_size(path)

    def list_folder(self, path: str) -> list[str]:
        self._look()
        return super().list_folder(path)
