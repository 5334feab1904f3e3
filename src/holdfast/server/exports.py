"""Exports that wait to be fetched: the last few, gone with the server."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

_KEPT_MAX = 5


class Exports:
    """The last few exports, as files in a folder of this server's own."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._folder: str | None = None
        self._kept: list[Path] = []

    def place(self) -> Path:
        """Answer where the next one goes; the oldest makes room."""
        with self._mutex:
            self._folder = self._folder or tempfile.mkdtemp(prefix="holdfast-exports-")
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix="", suffix=".zip")
            os.close(descriptor)
            self._kept.append(Path(name))
            while len(self._kept) > _KEPT_MAX:
                self._kept.pop(0).unlink(missing_ok=True)
            return Path(name)

    def find(self, name: str) -> Path | None:
        """Answer one that is kept; None if there is none."""
        with self._mutex:
            found = [path for path in self._kept if path.stem == name]
        return found[0] if found else None

    def close(self) -> None:
        """Remove all of them."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
