"""File systems of our own: in a file behind a loop device, or in memory; and the end of their power."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY = Path("/dev/shm")
MEGABYTE = 1024 * 1024
#: _IOR('X', 125, u32): stop the file system at once; 2: without writing its log.
SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
#: XFS makes none that is smaller.
XFS_BYTES_MIN = 320 * MEGABYTE

MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}


class Image:
    """A file system in a file, mounted through a loop device that goes with the mount."""

    def __init__(self, file: Path, mount_point: Path) -> None:
        self.file = file
        self.mount_point = mount_point
        mount_point.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        run(["mount", "-o", "loop", str(self.file), str(self.mount_point)])
        try:
            yield self.mount_point
        finally:
            run(["umount", str(self.mount_point)])

    def cut_power(self) -> None:
        """Stop the file system as it is on its device: what was not synced is gone."""
        handle = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)


def make_image(folder: Path, file_system: str, size_bytes: int, *options: str) -> Image:
    """Make an empty file system in a folder."""
    file = folder / "image"
    with file.open("wb") as image:
        image.truncate(max(size_bytes, XFS_BYTES_MIN) if file_system == "xfs" else size_bytes)
    run([*MAKE[file_system], *options, str(file)])
    return Image(file, folder / "mounted")


@contextlib.contextmanager
def in_memory(folder: Path, *, size_bytes: int, inodes: int) -> Iterator[Path]:
    """Mount a small tmpfs."""
    folder.mkdir()
    run(["mount", "-t", "tmpfs", "-o", f"size={size_bytes},nr_inodes={inodes}", "tmpfs", str(folder)])
    try:
        yield folder
    finally:
        run(["umount", str(folder)])


@contextlib.contextmanager
def workshop() -> Iterator[Path]:
    """Give a folder that is gone afterwards: in memory where there is room, for images are large."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def run(command: list[str]) -> None:
    """Run a program that must succeed; what it says belongs to the error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
