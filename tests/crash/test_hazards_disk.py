"""The hazards of a shared journal, each by its number in the storage notes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.adapters.filesystem.ring import Ring
from holdfast.domain.record import Removal
from tests.crash.explorer import damage_is_an_error, images, recovery_problems
from tests.crash.faulty_disk import Fault, FaultyDisk
from tests.crash.ledger import Ledger, differences, sha256
from tests.crash.scenes import (
    attempt,
    killed_before_sync,
    on,
    settle_until,
    sound,
)
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Inode, Machine
from tests.crash.workload import Workload, open_on


def ring_of(machine: Machine) -> Inode:
    found = SimulatedDisk(machine)._inode("journal/ring-000001")
    assert found is not None
    return found


# -- 1 -------------------------------------------------------------------------------------------


def three_frames_without_a_sync() -> tuple[Machine, Workload]:
    """Three processes append one frame each and die; a fourth that lives on keeps the store open."""
    machine = Machine()
    w = on(machine)
    # Every subset of their sectors is looked at: so these are few.
    w.tells = False
    w.commit("D", w.draft("D", "WF-one"))
    for name in ("A", "B", "C"):
        w.store(name)
    for name in ("A", "B", "C"):
        killed_before_sync(w, name, "WF-one")
    w.disks["D"].kill()
    w.stores.clear()
    return machine, w


def ring_images(machine: Machine) -> Iterator[Machine]:
    """Any subset of the ring's sectors on the medium, with the oldest and the newest shared page."""
    units, ring = machine.units(), ring_of(machine)
    sectors = [index for index, unit in enumerate(units) if unit.target is ring and unit.part >= 0]
    for rest in (0, 1):
        others = [rest * (unit.versions - 1) for unit in units]
        for kept in itertools.product((0, 1), repeat=len(sectors)):
            choice = list(others)
            for index, keep in zip(sectors, kept, strict=True):
                choice[index] = keep * (units[index].versions - 1)
            yield machine.image(units, choice)


def hazard_01_problems() -> list[str]:
    machine, w = three_frames_without_a_sync()
    rng = random.Random(5)
    found: list[str] = []
    for image in ring_images(machine):
        with damage_is_an_error():
            found += recovery_problems(image, w.ledger)
            again = Workload(
                partial(SimulatedDisk, image), Ledger(list(w.ledger.attempts)), drafts=5, tells=False
            )
            # As long as the first of the three: the two after it would fit on exactly.
            again.commit("E", again.draft("E", "WF-one"))
            for second in images(image, rng, 4):
                found += recovery_problems(second, again.ledger)
    return found


def test_hazard_01_a_torn_group_is_never_damage_and_never_comes_back() -> None:
    assert hazard_01_problems() == []


def test_hazard_01_goes_red_without_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchained(self: Ring, lsn: int, chain: bytes) -> Iterator[object]:
        while (frame := self.frame(lsn)) is not None:
            yield frame
            lsn = frame.end

    monkeypatch.setattr(Ring, "chained", unchained)
    assert hazard_01_problems() != []


# -- 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filled", range(0, 15_000, 1_500))
def test_hazard_02_one_process_appended_and_another_synced_both_are_there(filled: int) -> None:
    machine = Machine()
    w = on(machine)
    w.store("B")
    w.store("A")
    # Moves the end of the journal, so that some of the frames wrap around the ring.
    while filled > 0:
        w.commit("B", w.draft("B", "WF-filler", pad=300))
        filled -= 1_500
    w.store("B").settle()
    for number in range(3):
        w.commit("B", w.draft("B", "WF-filler", pad=300 + number))
    killed_before_sync(w, "A", "WF-one", pad=700)
    w.commit("B", w.draft("B", "WF-two", pad=700))
    w.ledger.attempts[-2].acknowledged = True
    for image in images(machine, random.Random(filled), 12):
        sound(image, w.ledger)


# -- 3 -------------------------------------------------------------------------------------------


def failing(w: Workload, name: str, fault: Fault, machine: Machine) -> None:
    """Open a process's store on a disk that will have a fault."""
    disk = FaultyDisk(machine, fault)
    w.disks[name] = disk
    w.stores[name] = open_on(disk)


def is_ring_sync(kind: str, path: str) -> bool:
    return kind == "sync" and "/ring-" in path


def test_hazard_03_a_failed_sync_is_nobodys_acknowledgement() -> None:
    machine = Machine()
    w = on(machine)
    fault = Fault("EIO", 0, only=is_ring_sync, gone=True)
    w.commit("A", w.draft("A", "WF-one"))
    failing(w, "B", fault, machine)
    told: list[bool] = []

    def b_fails_meanwhile() -> None:
        fault.gone = False
        told.append(attempt(w, "B", "WF-two"))
        # The kernel has told B and tells nobody else.
        for handle in machine.handles.values():
            handle.seen_failures = handle.inode.failures

    w.disks["A"].before_sync(b_fails_meanwhile)
    told.append(attempt(w, "A", "WF-one"))
    assert told == [False, False]
    for image in images(machine, random.Random(1), 20):
        sound(image, w.ledger)
    assert attempt(w, "A", "WF-one")
    assert attempt(w, "B", "WF-two")
    assert SimulatedDisk(machine).list_folder("journal").count("ring-000002") == 1
    for image in images(machine, random.Random(2), 20):
        sound(image, w.ledger)


def test_hazard_03_reads_after_a_failed_sync_still_show_what_was_acknowledged() -> None:
    machine = Machine()
    w = on(machine)
    fault = Fault("EIO", 0, only=is_ring_sync, gone=True)
    failing(w, "A", fault, machine)
    w.commit("A", w.draft("A", "WF-one"))
    fault.gone = False
    assert not attempt(w, "A", "WF-one")
    assert differences(w.stores["A"], w.ledger) == []


def test_hazard_03_what_a_failed_sync_lost_is_not_trusted_after_a_kill_without_a_power_cut() -> None:
    machine = Machine()
    w = on(machine)
    fault = Fault("EIO", 0, only=is_ring_sync, gone=True)
    failing(w, "A", fault, machine)
    w.commit("A", w.draft("A", "WF-one"))
    fault.gone = False
    assert not attempt(w, "A", "WF-one")
    w.disks["A"].kill()
    rng = random.Random(3)

    def cut(operation: str) -> None:
        machine.on_operation = None
        for image in images(machine, rng, 6):
            sound(image, w.ledger)
        machine.on_operation = cut

    machine.on_operation = cut
    open_on(SimulatedDisk(machine))


# -- 4 -------------------------------------------------------------------------------------------


def is_settling(kind: str, path: str) -> bool:
    return kind in ("write", "sync", "create") and not path.startswith("journal/")


@pytest.mark.parametrize("name", ["EIO", "ENOSPC"])
def test_hazard_04_without_settling_the_ring_fills_up_and_then_commits_are_refused(name: str) -> None:
    machine = Machine()
    fault = Fault(name, 0, persistent=True, only=is_settling, gone=True)
    w = Workload(lambda: FaultyDisk(machine, fault))
    w.commit("A", w.draft("A", "WF-one"))
    w.store("A").settle()
    fault.gone = False
    while attempt(w, "A", "WF-full"):
        assert w.drafts < 100
    assert w.ledger.acknowledged > 5
    fault.gone = True
    assert differences(w.stores["A"], w.ledger) == []
    for image in images(machine, random.Random(4), 20):
        sound(image, w.ledger)
    assert attempt(w, "A", "WF-full")
    w.close("A")
    for image in images(machine, random.Random(5), 20):
        sound(image, w.ledger)


# -- 6 -------------------------------------------------------------------------------------------


def half_applied_machine() -> tuple[Machine, Workload]:
    machine = Machine()
    w = on(machine)
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": 1}\n' * 30))
    w.commit("A", w.draft("A", "WF-one", events=3))
    w.store("A").settle()
    w.commit("A", w.draft("A", "WF-one", events=2, blobs={sha256(b"blob"): b"blob"}))
    w.commit("A", w.draft("A", "WF-two", pad=300))
    w.remove("A", "WF-one", Removal((1,)))
    w.commit("A", w.draft("A", "WF-one", pad=300))
    return machine, w


def test_hazard_06_an_applier_killed_between_two_writes_is_taken_over() -> None:
    for last in itertools.count():
        machine, w = half_applied_machine()
        w.store("B")
        reader = open_on(SimulatedDisk(machine), read_only=True)
        if not settle_until(machine, w, last):
            break
        w.disks["A"].kill()
        assert differences(reader, w.ledger) == []
        assert differences(w.stores["B"], w.ledger) == []
        w.stores["B"].settle()
        assert differences(w.stores["B"], w.ledger) == []
        for image in images(machine, random.Random(last), 3):
            sound(image, w.ledger)
    assert last > 20
