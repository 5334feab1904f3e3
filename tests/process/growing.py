"""A process that makes the journal grow, and is killed at one of its operations on the disk meanwhile.

`python -m tests.process.growing STORE OPERATION` says how many there were if it is not killed.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from holdfast import CheckpointService
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.bootstrap import build_kit
from holdfast.config import Config

JOURNAL_BYTES = 256 * 1024
_KINDS = ("write", "sync", "sync_folder", "rename", "unlink", "truncate", "sync_all")


class Mortal(Disk):
    """A disk whose process is killed right before one of its changes, counted from a moment on."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.left: int | None = None
        self.count = 0

    def _met(self) -> None:
        if self.left is not None:
            self.count += 1
            if self.count == self.left:
                os.kill(os.getpid(), signal.SIGKILL)


def _counted(name: str) -> Any:
    def operation(disk: Mortal, *given: Any, **named: Any) -> Any:
        disk._met()
        return getattr(Disk, name)(disk, *given, **named)

    return operation


for _name in _KINDS:
    setattr(Mortal, _name, _counted(_name))


def main() -> None:
    disk = Mortal(sys.argv[1])
    store = FilesystemStore.open("", disk=disk, journal_bytes=JOURNAL_BYTES, background=False)
    service = CheckpointService(build_kit(store, Config(retain=False, background=False)))
    disk.left = int(sys.argv[2])
    service.append_event("WF-large", "SAID", {"text": "x" * JOURNAL_BYTES})
    disk.left = None
    sys.stdout.write(str(disk.count))
    service.close()


if __name__ == "__main__":
    main()
