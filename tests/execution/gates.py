"""Stores on disk that are opened by a URL, and that stop taking commits while a run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.config import Config
from holdfast.ports import Store
from tests.application.shelters import GatedStore


class Gates:
    """The stores of the scheme `gated:`, and a second store below a folder of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.url = f"gated:{folder}/store"
        self.second = folder / "second"
        self._takes = "everything"
        self._stores: list[GatedStore] = []
        monkeypatch.setitem(bootstrap.SCHEMES, "gated", self._open)
        monkeypatch.setenv("HOLDFAST_EMERGENCY_PATH", str(self.second))

    @property
    def kept(self) -> list[str]:
        """Name the second stores that were made."""
        return sorted(f"file:{path}/store" for path in self.second.glob("*"))

    def without_a_second(self) -> None:
        """Let there be no room for a second store either."""
        self.second.write_text("a file, where there should be a folder")

    def shut(self) -> None:
        """Take nothing any more."""
        self._let("nothing")

    def open(self) -> None:
        """Take everything again."""
        self._let("everything")

    def _let(self, takes: str) -> None:
        self._takes = takes
        for store in self._stores:
            store.takes = takes

    def _open(self, path: str, config: Config, read_only: bool, create: bool) -> Store:
        store = GatedStore(FilesystemStore.open(path, read_only=read_only, create=create))
        store.takes = self._takes
        self._stores.append(store)
        return store
