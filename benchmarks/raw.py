"""What the machine itself costs: the yardstick for every ratio."""

from __future__ import annotations

import os
from pathlib import Path


class RawAppend:
    """Append bytes to a growing file and sync: the least a durable write can do."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def __call__(self, data: bytes) -> None:
        os.write(self._handle, data)
        os.fdatasync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


class RawReplace:
    """The usual checkpoint file: temporary file, sync, rename, sync of the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def __call__(self, data: bytes) -> None:
        temporary = self._folder / "checkpoint.tmp"
        handle = os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.write(handle, data)
        os.fsync(handle)
        os.close(handle)
        os.replace(temporary, self._folder / "checkpoint.json")
        os.fsync(self._handle)

    def close(self) -> None:
        os.close(self._handle)
