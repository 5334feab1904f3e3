"""Processes that open one store at once: run as `python -m tests.process.opening NAME JSON`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from tests.process.child import Child, Report, start
from tests.process.children import TellingStore
from tests.process.commits import Acknowledged
from tests.process.writers import JOURNAL_BYTES, compete, examine

OPENERS = 4
JOURNAL = "journal"


@dataclass(frozen=True, slots=True)
class Signal:
    """Something that one process waits for and another one tells."""

    reading: int
    writing: int

    @classmethod
    def create(cls) -> Signal:
        return cls(*os.pipe())

    def wait(self) -> None:
        os.read(self.reading, 1)

    def tell(self, times: int = 1) -> None:
        os.write(self.writing, b"." * times)

    def close(self) -> None:
        os.close(self.reading)
        os.close(self.writing)


class HastyDisk(Disk):
    """Takes no lock, and is overtaken between its first look at the journal and what it does then."""

    def __init__(self, root: str, looked: Signal, overtaken: Signal) -> None:
        super().__init__(root)
        self._looked = looked
        self._overtaken = overtaken
        self._has_looked = False

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        return True

    def unlock(self, handle: int) -> None:
        pass

    def list_folder(self, path: str) -> list[str]:
        names = super().list_folder(path)
        if path == JOURNAL and not self._has_looked:
            self._has_looked = True
            self._looked.tell()
            self._overtaken.wait()
        return names


def _open_at_once(report: Report, _: int, root: str, gate: Signal, who: int) -> None:
    gate.wait()
    store = TellingStore.open(root, journal_bytes=JOURNAL_BYTES)
    compete(store, f"WF-{who}", 3, str(who), report)
    store.close()


def at_once(options: dict[str, Any]) -> dict[str, Any]:
    """Open a store where there is none in several processes at once; then each commits."""
    violations: list[str] = []
    for number in range(options["rounds"]):
        root, gate = f"{options['root']}/{number}", Signal.create()
        children = [start(_open_at_once, root, gate, who) for who in range(OPENERS)]
        gate.tell(OPENERS)
        violations += [f"round {number}: {text}" for text in _outcome(root, children)]
        gate.close()
    return {"violations": violations[:20]}


def _outcome(root: str, children: list[Child]) -> list[str]:
    told, failed = Acknowledged(), 0
    for child in children:
        failed += child.end() != 0
        for line in child.lines:
            told.note(line)
    return ["an opener failed"] * failed + examine(root, told)


def _commit_and_leave(report: Report, _: int, disk: Disk, before: Signal | None, after: Signal) -> None:
    """End without closing: what was acknowledged is in the journal, and nowhere else."""
    if before is not None:
        before.wait()
    store = TellingStore.open(disk.root, journal_bytes=JOURNAL_BYTES, background=False, disk=disk)
    compete(store, f"WF-{type(disk).__name__}", 3, "w", report)
    after.tell()


def without_locks(options: dict[str, Any]) -> dict[str, Any]:
    """Let one process recover the store without the locks while another one creates it, for the control."""
    root, looked, overtaken = f"{options['root']}/store", Signal.create(), Signal.create()
    children = [
        start(_commit_and_leave, HastyDisk(root, looked, overtaken), None, looked),
        start(_commit_and_leave, Disk(root), looked, overtaken),
    ]
    return {"violations": _outcome(root, children)}


LOOPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "at_once": at_once,
    "without_locks": without_locks,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
