"""Readers and writers that meet another process between any two operations of either."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.record import Removal
from tests.crash.explorer import guarded, recovery_problems
from tests.crash.ledger import differences, sha256
from tests.crash.scenes import (
    InterruptedDisk,
    TearingDisk,
    on,
    settle_until,
)
from tests.crash.simulated_disk import SimulatedDisk, WouldBlock
from tests.crash.simulated_machine import Machine
from tests.crash.workload import Workload, open_on


def look_between_all_operations(watched: Callable[[Workload, Machine], FilesystemStore]) -> list[str]:
    """Another process reads everything between any two operations of one that commits and settles."""
    machine = Machine()
    w = Workload(lambda: TearingDisk(machine))
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": 1}\n' * 30, events=2))
    reader = watched(w, machine)
    found: list[str] = []

    def look(operation: str) -> None:
        machine.on_operation = None
        # Each look reads everything: what must come to an end is one of them.
        machine.steps = 0
        try:
            found.extend(f"after {operation}: {text}" for text in differences(reader, w.ledger))
        except WouldBlock as blocked:
            found.append(f"after {operation}: a reader waits: {blocked}")
        machine.on_operation = look

    machine.on_operation = look
    for _ in range(3):
        w.commit("A", w.draft("A", "WF-one", events=2))
        w.commit("A", w.draft("A", "WF-two", pad=100))
        w.store("A").settle()
    w.remove("A", "WF-one", Removal((1,)))
    w.commit("A", w.draft("A", "WF-one"))
    w.close("A")
    return found


def test_hazard_06_a_writing_neighbour_never_sees_half_a_line_or_misses_a_commit() -> None:
    assert look_between_all_operations(lambda w, machine: w.store("B")) == []


def test_hazard_06_a_read_only_neighbour_never_sees_half_a_line_or_misses_a_commit() -> None:
    assert (
        look_between_all_operations(lambda w, machine: open_on(SimulatedDisk(machine), read_only=True)) == []
    )


def interrupted_read(look: int, settled_operations: int, *, read_only: bool) -> tuple[int, list[str]]:
    """Read everything while a neighbour commits and settles, dying on the way; answers the looks taken."""
    machine = Machine()
    w = Workload(lambda: TearingDisk(machine))
    w.commit("A", w.draft("A", "WF-one", keyframe=b'{"state": 1}\n' * 9, events=2))
    w.commit("A", w.draft("A", "WF-one", blobs={sha256(b"blob"): b"blob"}))
    w.store("A").settle()
    disk = InterruptedDisk(machine)
    reader = open_on(disk, read_only=read_only)

    def work() -> None:
        w.commit("A", w.draft("A", "WF-one", events=2))
        w.remove("A", "WF-one", Removal((1,)))
        w.commit("A", w.draft("A", "WF-one"))
        settle_until(machine, w, settled_operations)
        w.disks["A"].kill()

    disk.looks, disk.interruption, disk.neighbour = 0, look, work
    try:
        events = [json.loads(line) for line in reader.events("WF-one")]
        heads = [reader.head("WF-one").sequence, *(entry.sequence for entry in reader.entries("WF-one"))]
        # The first checkpoint is removed meanwhile, so only the others must be there.
        kept = [e.sequence for e in reader.entries("WF-one") if e.sequence > 1]
        records = [next(iter(reader.records("WF-one", s, s))) for s in kept]
        blob = reader.blob(sha256(b"blob"))
    except Exception as error:
        return disk.looks, [f"look {look}, {settled_operations} operations: {error!r}"]
    last, head, listed = len(events), heads[0], heads[1:]
    found = [] if last in (3, 5, 6) and head in (2, 3, 4) and blob == b"blob" else [f"{last} events, {head}"]
    found += [] if [e["seq"] for e in events] == list(range(1, last + 1)) else [f"events {events}"]
    found += [] if listed in ([1, 2], [1, 2, 3], [1, 2, 3, 4]) else [f"listed {listed}"]
    found += [] if all(record.endswith(b'"}\n') for record in records) else ["half a record"]
    return disk.looks, found


@pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "writing"])
def test_hazard_06_a_reader_interrupted_anywhere_by_a_dying_neighbour_sees_whole_commits(
    read_only: bool, campaign: bool
) -> None:
    found: list[str] = []
    look = 1
    while True:
        looks = 0
        for operations in range(0, 40, 1 if campaign else 9):
            looks, problems = interrupted_read(look, operations, read_only=read_only)
            found += problems
        if looks < look:
            break
        look += 1
    assert found == []
    assert look > 10


# -- two processes at the same instant ------------------------------------------------------------


def commits_inside_commits() -> list[str]:
    """Let B commit between any two operations of A's commit, as far as the locks let it."""
    found: list[str] = []
    for moment in itertools.count():
        machine = Machine()
        w = on(machine)
        w.store("A")
        w.commit("B", w.draft("B", "WF-two"))
        ours, start = w.draft("A", "WF-one"), len(machine.log)

        def squeeze_in(
            operation: str, w: Workload = w, machine: Machine = machine, at: int = start + moment
        ) -> None:
            if len(machine.log) == at + 1:
                with suppress(WouldBlock):
                    w.commit("B", w.draft("B", "WF-two"))

        machine.on_operation = squeeze_in
        w.commit("A", ours)
        if len(machine.log) <= start + moment:
            return found
        machine.on_operation = None
        found += guarded(partial(differences, w.stores["A"], w.ledger))
        found += guarded(partial(recovery_problems, machine.copy(), w.ledger))
    return found


def test_commits_of_two_processes_never_overwrite_each_other() -> None:
    assert commits_inside_commits() == []


def test_it_goes_red_without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDisk, "lock", lambda self, handle, **how: True)
    assert commits_inside_commits() != []
