"""One fault, one moment: what the large harnesses found, each as the smallest story that shows it."""

from __future__ import annotations

import errno
import os
import random

import pytest

from holdfast.adapters.filesystem.ring import SLOT_BYTES
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError
from tests.crash.explorer import images
from tests.crash.faulty_disk import Fault, FaultyDisk
from tests.crash.ledger import differences
from tests.crash.scenes import Killed, attempt, killed_before_sync, on, sound
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine
from tests.crash.workload import RING_BYTES, Workload, open_on


def faulty(machine: Machine, fault: Fault) -> Workload:
    return Workload(lambda: FaultyDisk(machine, fault))


def is_ring_sync(kind: str, path: str) -> bool:
    return kind == "sync" and "/ring-" in path


def test_an_opening_that_failed_keeps_nobody_out() -> None:
    machine = Machine()
    fault = Fault("EIO", 0, only=lambda kind, path: kind == "sync", gone=True)
    w = faulty(machine, fault)
    w.commit("A", w.draft("A", "WF-one"))
    w.disks["A"].kill()
    fault.gone = False
    with pytest.raises(CheckpointError):
        open_on(FaultyDisk(machine, fault))
    fault.gone = True
    assert differences(open_on(FaultyDisk(machine, fault)), w.ledger) == []


def test_closing_on_a_disk_that_became_read_only_is_quiet_and_loses_nothing() -> None:
    machine = Machine()
    fault = Fault("EROFS", 0, persistent=True, gone=True)
    w = faulty(machine, fault)
    w.commit("A", w.draft("A", "WF-one"))
    w.store("A").settle()
    fault.gone = False
    w.close("A")
    assert machine.handles == {}
    sound(machine, w.ledger)


def test_a_settled_point_that_did_not_reach_the_medium_recycles_nothing() -> None:
    machine = Machine()
    fault = Fault("EIO", 0, only=is_ring_sync, gone=True)
    w = faulty(machine, fault)
    for _ in range(6):
        w.commit("A", w.draft("A", "WF-one", pad=700))
    fault.gone = False
    with pytest.raises(CheckpointError):
        w.store("A").settle()
    for _ in range(6):
        attempt(w, "A", "WF-one")
    for image in images(machine, random.Random(1), 30):
        sound(image, w.ledger)


def test_a_commit_interrupted_in_its_sync_leaves_the_store_able_to_go_on() -> None:
    machine = Machine()
    w = on(machine)
    w.commit("A", w.draft("A", "WF-one"))
    commit = w.draft("A", "WF-one")

    def interrupt() -> None:
        raise KeyboardInterrupt

    w.disks["A"].before_sync(interrupt)
    with pytest.raises(KeyboardInterrupt):
        w.commit("A", commit)
    assert attempt(w, "A", "WF-one")
    assert attempt(w, "A", "WF-two")
    assert differences(w.stores["A"], w.ledger) == []
    for image in images(machine, random.Random(2), 20):
        sound(image, w.ledger)


@pytest.mark.parametrize("at", range(12))
def test_a_read_that_fails_while_following_others_makes_nobody_forget_their_frames(at: int) -> None:
    machine = Machine()
    fault = Fault("EIO", at, only=lambda kind, path: kind == "read" and "/ring-" in path, gone=True)
    w = faulty(machine, fault)
    w.store("A")
    for _ in range(3):
        w.commit("B", w.draft("B", "WF-one"))
    fault.gone = False
    attempt_reading(w.stores["A"])
    fault.gone = True
    assert attempt(w, "A", "WF-one")
    assert differences(w.stores["A"], w.ledger) == []
    assert differences(w.stores["B"], w.ledger) == []


def attempt_reading(store: FilesystemStore) -> None:
    try:
        store.head("WF-one")
    except CheckpointError as error:
        assert "Input/output error" in str(error)


@pytest.mark.parametrize("name", ["journal/ring-000001", "holdfast.json"])
def test_names_that_a_killed_creator_left_unsynced_are_durable_before_anything_is_acknowledged(
    name: str,
) -> None:
    machine = Machine(ordered=False)
    w = on(machine)

    def die(operation: str) -> None:
        if operation == f"rename {name}.tmp {name}":
            raise Killed

    machine.on_operation = die
    with pytest.raises(Killed):
        w.store("A")
    machine.on_operation = None
    w.disks["A"].kill()
    w.commit("A", w.draft("A", "WF-one"))
    for image in images(machine, random.Random(3), 20):
        sound(image, w.ledger)


def test_a_read_only_opening_tells_that_the_last_frame_is_damaged() -> None:
    machine = Machine()
    w = on(machine)
    w.commit("A", w.draft("A", "WF-one"))
    w.disks["A"].kill()
    ring = SimulatedDisk(machine)._inode("journal/ring-000001")
    assert ring is not None
    ring.data[9000] ^= 1
    store = open_on(SimulatedDisk(machine), read_only=True)
    assert ["journal" in finding.place for finding in store.check()] == [True]


def test_frames_that_dead_writers_never_synced_do_not_hold_the_ring_for_ever() -> None:
    machine = Machine()
    w = on(machine)
    w.store("B")
    for number in range(3):
        name = f"dead-{number}"
        w.store(name)
        killed_before_sync(w, name, "WF-dead", pad=RING_BYTES // 9)
    for _ in range(20):
        assert attempt(w, "B", "WF-one")
    for image in images(machine, random.Random(4), 20):
        sound(image, w.ledger)


def test_an_append_is_refused_while_frames_of_others_cannot_be_followed() -> None:
    machine = Machine()
    w = on(machine)
    w.store("A")
    w.commit("B", w.draft("B", "WF-one"))
    w.commit("B", w.draft("B", "WF-one"))
    ring = SimulatedDisk(machine)._inode("journal/ring-000001")
    assert ring is not None
    before = bytes(ring.data)
    ring.data[9000] ^= 1
    assert not attempt(w, "A", "WF-two")
    ring.data[:] = before
    assert attempt(w, "A", "WF-two")
    assert differences(w.stores["A"], w.ledger) == []


class TornSuperblocks(SimulatedDisk):
    """Writes some superblocks only by half, and says that the disk is full."""

    def __init__(self, machine: Machine, torn: set[int]) -> None:
        super().__init__(machine)
        self.torn = torn
        self.written = 0

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        if offset in (0, SLOT_BYTES) and bytes(data[:4]) == b"HFJS":
            self.written += 1
            if self.written in self.torn:
                super().write(handle, data[:50], offset)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(handle, data, offset)


@pytest.mark.parametrize("torn", [{3}, {4}, {5}, {4, 5}, {3, 4}, {4, 6}, {3, 4, 5, 6}])
def test_superblocks_that_were_written_by_half_leave_the_last_durable_one_in_force(torn: set[int]) -> None:
    machine = Machine()
    w = Workload(lambda: TornSuperblocks(machine, torn))
    for _ in range(3):
        for _ in range(6):
            attempt(w, "A", "WF-one")
        try:
            w.store("A").settle()
        except CheckpointError:
            assert w.disks["A"].written in torn
        for image in images(machine, random.Random(5), 10):
            sound(image, w.ledger)
    w.disks["A"].kill()
    sound(machine, w.ledger)
