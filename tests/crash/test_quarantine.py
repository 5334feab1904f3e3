"""Setting aside, releasing and dropping: wherever the power is cut, it was done as a whole or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.application.quarantine_files import parts_of_report, reports
from holdfast.application.quarantine_marks import is_quarantined
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.trail import read_fields
from tests.crash.explorer import images
from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine

JOURNAL_BYTES = 1024 * 1024
TYPES = (AuditType.CHECKPOINT_QUARANTINED, AuditType.QUARANTINE_RELEASED, AuditType.QUARANTINE_DROPPED)


def open_store(machine: Machine) -> FilesystemStore:
    disk = SimulatedDisk(machine)
    return FilesystemStore.open(disk.root, disk=disk, background=False, journal_bytes=JOURNAL_BYTES)


def open_service(machine: Machine) -> CheckpointService:
    config = Config(session="s-1", background=False, retain=False, compression="none")
    return CheckpointService(build_kit(open_store(machine), config))


def standing(machine: Machine) -> str:
    """Open what a power cut left; tell how far it had come, and that everything agrees on it."""
    store = open_store(machine)
    try:
        found = reports(store)
        kinds = [read_fields(line)["type"] for line in store.leaves()]
        told = [kind for kind in kinds if kind in TYPES]
        for report in found:
            assert parts_of_report(store, report.name)["record"]
        if not told or told[-1] == AuditType.QUARANTINE_DROPPED:
            assert found == [] and not is_quarantined(store, "WF", 2)
        else:
            [report] = found
            assert report.bars == is_quarantined(store, "WF", 2)
            assert report.bars == (told[-1] == AuditType.CHECKPOINT_QUARANTINED)
        return str(told[-1]) if told else ""
    finally:
        store.close()


def states_during(machine: Machine, act: Callable[[], object], seed: int) -> set[str]:
    """Cut the power after each operation of a call; tell what was found there."""
    rng, seen = random.Random(seed), set[str]()

    def look(operation: str) -> None:
        machine.on_operation = None
        seen.update(standing(image) for image in images(machine, rng, 2))
        machine.on_operation = look

    machine.on_operation = look
    act()
    machine.on_operation = None
    assert {standing(image) for image in images(machine, rng, 5)} == {max(seen, key=_order)}
    return seen


def _order(type: str) -> int:
    return ["", *TYPES].index(type)


@pytest.mark.parametrize("lines", [1, 170], ids=["one piece", "two pieces"])
def test_setting_aside_releasing_and_dropping_are_done_as_a_whole_or_not_at_all(lines: int) -> None:
    machine = Machine()
    service = open_service(machine)
    digits = random.Random(3)
    for n in range(3):
        service.create_checkpoint(
            "WF", {"n": n, "lines": [digits.randbytes(900).hex() for _ in range(lines)]}
        )
    service._engine.kit.store.settle()
    quarantine = service.quarantine
    kept = []
    seen = states_during(machine, lambda: kept.append(quarantine.put("WF", 2, "a drill")), 1)
    assert seen == {"", TYPES[0]}
    assert (len(kept[0].files) > 1) == (lines > 1)
    # Nothing was wrong with it: it verifies, and may be released.
    assert states_during(machine, lambda: quarantine.release(kept[0].name, "well"), 2) == {TYPES[0], TYPES[1]}
    assert states_during(machine, lambda: quarantine.drop(kept[0].name, "closed"), 3) == {TYPES[1], TYPES[2]}
    service.close()
