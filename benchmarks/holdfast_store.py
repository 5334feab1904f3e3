"""A service on a disk that counts its syncs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import CountingDisk
from holdfast import CheckpointService
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.bootstrap import build_kit
from holdfast.config import Config


def counted(folder: Path, extra_seconds: float = 0.0) -> tuple[CheckpointService, CountingDisk]:
    """Open a store below a folder; keep everything, so that growth is seen."""
    disk = CountingDisk(str(folder / "store"), extra_seconds)
    store = FilesystemStore.open("", disk=disk)
    return CheckpointService(build_kit(store, Config(retain=False))), disk
