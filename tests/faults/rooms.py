"""Where a store lies that a scene takes the room away from, and gives it back."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

from holdfast.adapters.filesystem.disk import Disk

#: A ring of this size is filled by few commits.
JOURNAL_BYTES = 256 * 1024
_TMPFS_BYTES = 24 * 1024 * 1024
_CHUNK = b"\xa5" * 65536


class LimitedRoom:
    """Files may not grow beyond a limit of the process (RLIMIT_FSIZE)."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        _, self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(self) -> None:
        """Leave room for the journal only, which is there in full length already."""
        ring = max(path.stat().st_size for path in Path(self.folder).rglob("journal/*"))
        self._limit(ring)

    def shut(self) -> None:
        """Leave no room at all."""
        self._limit(0)

    def give_back(self) -> None:
        self._limit(self._hard)

    def _limit(self, size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._hard))


class TmpfsRoom:
    """A small file system of its own, in memory, that is filled to the last block."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS_BYTES}", "tmpfs", folder]
        subprocess.run(command, check=True, capture_output=True)
        self._filler = Path(folder) / "filler"

    def fill(self) -> None:
        """Use up every block."""
        handle = os.open(self._filler, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        size = len(_CHUNK)
        while size:
            try:
                os.write(handle, _CHUNK[:size])
            except OSError:
                size //= 2
        os.close(handle)

    def give_back(self) -> None:
        os.truncate(self._filler, 0)


class QuotaRoom:
    """Files that may not take more than a quota together, counted before every write."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._quota_bytes: int | None = None
        write = Disk.write

        def write_within(disk: Disk, handle: int, data: bytes | memoryview, offset: int) -> None:
            growth = max(0, offset + len(data) - os.fstat(handle).st_size)
            if growth and self._quota_bytes is not None and self._used() + growth > self._quota_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(disk, handle, data, offset)

        # In a process of its own.
        whole: Any = Disk
        whole.write = write_within

    def fill(self) -> None:
        self._quota_bytes = self._used()

    def give_back(self) -> None:
        self._quota_bytes = None

    def _used(self) -> int:
        return sum(path.stat().st_size for path in Path(self.folder).rglob("*") if path.is_file())


def can_mount() -> bool:
    """Tell whether a process here may have a file system of its own."""
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
