"""A writer of one large value that dies, or waits, in the middle of it.

`python -m tests.process.staging STORE WORKFLOW KIND MOMENT`
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import holdfast
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.staging import Staging

MARK = "said-by-a-killed-writer"
_LARGE_BYTES = 1_000_000


def state(kind: str) -> dict[str, Any]:
    """Answer a state too large for the journal: by one value, or by very many."""
    if kind == "value":
        return {"said": f"{MARK} " * 400_000}
    return {"said": [f"{MARK} {number}" for number in range(250_000)]}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wait() -> None:
    """Say that it is in the middle, and go on when it is told."""
    sys.stdout.write("staging\n")
    sys.stdout.flush()
    sys.stdin.readline()


class HalvingDisk(Disk):
    """A disk on which something happens in the middle of what is large."""

    happens = staticmethod(_die)

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        half = len(data) // 2 if len(data) > _LARGE_BYTES else len(data)
        super().write(handle, data[:half], offset)
        if half < len(data):
            self.happens()
            super().write(handle, data[half:], offset + half)


def place_and_die(self: Staging) -> None:
    """Die once what was staged lies in its place, before the journal is told of it."""
    is_chosen = self.is_chosen
    _PLACE(self)
    if is_chosen:
        _die()


_PLACE = Staging.place


def main(store: str, workflow_id: str, kind: str, moment: str) -> None:
    """Write one checkpoint."""
    with holdfast.open(store, session="writer", compression="none") as service:
        service.load_latest(workflow_id)
        if moment == "placed":
            Staging.place = place_and_die  # type: ignore[method-assign]
        else:
            HalvingDisk.happens = staticmethod(_wait if moment == "waiting" else _die)
            service._engine.kit.store._disk.__class__ = HalvingDisk  # type: ignore[attr-defined]
        service.create_checkpoint(workflow_id, state(kind))


if __name__ == "__main__":
    main(*sys.argv[1:])
