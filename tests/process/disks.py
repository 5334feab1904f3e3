"""Disks that kill the process at a chosen operation, or lie."""

from __future__ import annotations

import os
import signal

from holdfast.adapters.filesystem.disk import Disk


class KillingDisk(Disk):
    """Counts what changes the disk; at the chosen one the process is killed: before, halfway or after it."""

    def __init__(self, root: str, kill_at: int = 0, moment: str = "before") -> None:
        super().__init__(root)
        self.count = 0
        self._kill_at = kill_at
        self._moment = moment

    def kill_at(self, count: int) -> None:
        self._kill_at = count

    def _step(self) -> bool:
        self.count += 1
        if self.count == self._kill_at and self._moment == "before":
            die()
        return self.count == self._kill_at

    def make_folder(self, path: str) -> None:
        last = self._step()
        super().make_folder(path)
        die_if(last)

    def sync_folder(self, path: str) -> None:
        last = self._step()
        super().sync_folder(path)
        die_if(last)

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        last = self._step()
        if last and self._moment == "halfway":
            super().write(handle, memoryview(data)[: len(data) // 2], offset)
            die()
        super().write(handle, data, offset)
        die_if(last)

    def truncate(self, handle: int, size: int) -> None:
        last = self._step()
        super().truncate(handle, size)
        die_if(last)

    def sync(self, handle: int) -> None:
        last = self._step()
        super().sync(handle)
        die_if(last)

    def rename(self, source: str, target: str) -> None:
        last = self._step()
        super().rename(source, target)
        die_if(last)

    def unlink(self, path: str) -> None:
        last = self._step()
        super().unlink(path)
        die_if(last)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def die_if(last: bool) -> None:
    if last:
        die()


class ForgetfulDisk(Disk):
    """Forgets what is written below a path, for negative controls: it says yes and does nothing."""

    def __init__(self, root: str, forgets: str) -> None:
        super().__init__(root)
        self._forgets = forgets
        self._forgotten: set[int] = set()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self._forgotten.discard(handle)
        if path.startswith(self._forgets) and not path.endswith(".tmp"):
            self._forgotten.add(handle)
        return handle

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        if handle not in self._forgotten:
            super().write(handle, data, offset)
