"""A disk that fails at a chosen operation, once or from then on, as real ones do."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.crash.simulated_disk import SimulatedDisk
from tests.crash.simulated_machine import Machine

#: What may go wrong; `SHORT` writes half of the bytes before the disk is full.
SHORT = -1
FAULTS = {
    "EIO": errno.EIO,
    "ENOSPC": errno.ENOSPC,
    "EROFS": errno.EROFS,
    "EMFILE": errno.EMFILE,
    "EACCES": errno.EACCES,
    "short": SHORT,
}

#: Kinds of operation that a fault can meet. The rest would fail for another reason.
_MEETS = {
    "EIO": {"read", "write", "sync", "sync folder", "rename", "unlink", "truncate", "open", "create", "list"},
    "ENOSPC": {"write", "create", "rename", "sync", "mkdir", "truncate"},
    "EROFS": {"open to write", "create", "write", "rename", "unlink", "mkdir", "truncate"},
    "EMFILE": {"open", "open to write", "create", "list", "sync folder", "rename", "unlink", "mkdir"},
    "EACCES": {"open", "open to write", "create", "rename", "unlink", "mkdir", "list"},
    "short": {"write"},
}


@dataclass
class Fault:
    """Which operation fails, how, and for how long. All processes of a machine share one.

    Args:
        at: Index, among the operations this fault can meet, of the first one that fails.
        persistent: Whether everything the fault can meet fails from then on.
    """

    name: str
    at: int
    persistent: bool = False
    only: Callable[[str, str], bool] = lambda kind, path: True
    count: int = 0
    struck: int = 0
    gone: bool = False
    log: list[str] = field(default_factory=list)

    def strikes(self, kind: str, path: str) -> bool:
        if self.gone or kind not in _MEETS[self.name] or not self.only(kind, path):
            return False
        index, self.count = self.count, self.count + 1
        hit = index >= self.at if self.persistent else index == self.at
        if hit:
            self.struck += 1
            self.log.append(f"{kind} {path}")
        return hit

    def error(self, path: str) -> OSError:
        number = FAULTS[self.name]
        number = errno.ENOSPC if number == SHORT else number
        return OSError(number, os.strerror(number), path)


class FaultyDisk(SimulatedDisk):
    """A process's door to a machine whose disk has a fault."""

    def __init__(self, machine: Machine, fault: Fault) -> None:
        super().__init__(machine)
        self.fault = fault
        self._paths: dict[int, str] = {}

    def _meet(self, kind: str, path: str) -> None:
        if self.fault.strikes(kind, path):
            raise self.fault.error(path)

    def _make_one(self, parent: str, name: str) -> None:
        self._meet("mkdir", f"{parent}/{name}")
        super()._make_one(parent, name)

    def list_folder(self, path: str) -> list[str]:
        self._meet("list", path)
        return super().list_folder(path)

    def sync_folder(self, path: str) -> None:
        self._meet("sync folder", path)
        super().sync_folder(path)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        is_new = create and self.file_size(path) is None
        self._meet("create" if is_new else "open to write" if write else "open", path)
        handle = super().open(path, write=write, create=create)
        self._paths[handle] = path
        return handle

    def read(self, handle: int, length: int, offset: int) -> bytes:
        self._meet("read", self._paths[handle])
        return super().read(handle, length, offset)

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        path = self._paths[handle]
        if self.fault.strikes("write", path):
            if self.fault.name == "short":
                super().write(handle, data[: len(data) // 2], offset)
            raise self.fault.error(path)
        super().write(handle, data, offset)

    def truncate(self, handle: int, size: int) -> None:
        self._meet("truncate", self._paths[handle])
        super().truncate(handle, size)

    def sync(self, handle: int) -> None:
        self._let_others_run()
        path = self._paths[handle]
        if self.fault.strikes("sync", path):
            # The pages count as clean from now on and never reach the medium.
            self.fail_sync(handle)
            raise self.fault.error(path)
        super().sync(handle)

    def sync_all(self) -> bool:
        self._meet("sync", "")
        return super().sync_all()

    def rename(self, source: str, target: str) -> None:
        self._meet("rename", source)
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._meet("unlink", path)
        super().unlink(path)
