"""A block device whose every write is known: a file served by a process of ours, below a loop device.

Writes and flushes are logged in the order in which they came; writes that hold a mark can be made to fail.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import mmap
import os
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine.images import Image, run

_ENTRY = struct.Struct("<qq")
_NUMBER = struct.Struct("<q")
_FLUSH = -1
#: Where the shared page has the number of log entries, of writes that shall fail, and of those that did.
_COUNT, _FAILING, _FAILED = 0, 8, 16
_WAIT_SECONDS = 20.0
_NAME = "image"
_REQUEST_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One write, or a flush: whatever was written before it is on the disk for good."""

    offset: int
    data: bytes

    @property
    def is_flush(self) -> bool:
        return self.offset == _FLUSH


class Page:
    """Numbers that all processes of a harness share."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, mmap.PAGESIZE)

    def read(self, place: int) -> int:
        return int(_NUMBER.unpack_from(self._map, place)[0])

    def write(self, place: int, number: int) -> None:
        _NUMBER.pack_into(self._map, place, number)

    @property
    def count(self) -> int:
        """How many entries the log has."""
        return self.read(_COUNT)

    @property
    def failed(self) -> int:
        """How many writes failed."""
        return self.read(_FAILED)

    def let_fail(self, writes: int) -> None:
        """Let the next writes that hold the mark fail."""
        self.write(_FAILING, writes)


class _Served:
    """The file, as the kernel asks for it."""

    use_ns = True

    def __init__(self, data: bytearray, log: Path, page: Page, mark: bytes) -> None:
        self._data, self._page, self._mark = data, page, mark
        self._log = log.open("ab", buffering=0)
        self._errors = importlib.import_module("mfusepy").FuseOSError

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path == f"/{_NAME}":
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": len(self._data)}
        raise self._errors(errno.ENOENT)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._data[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        left = self._page.read(_FAILING)
        if left and self._mark in data:
            self._page.let_fail(left - 1)
            self._page.write(_FAILED, self._page.failed + 1)
            raise self._errors(errno.EIO)
        self._data[offset : offset + len(data)] = data
        self._note(offset, data)
        return len(data)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._note(_FLUSH, b"")
        return 0

    def _note(self, offset: int, data: bytes) -> None:
        self._log.write(_ENTRY.pack(offset, len(data)) + data)
        self._page.write(_COUNT, self._page.count + 1)


def _operations() -> type[Any]:
    """Make the class that the package wants; it is imported only where it is needed."""
    package = importlib.import_module("mfusepy")
    return type("Operations", (_Served, package.Operations), {})


class _Device(Image):
    """The image behind a loop device that asks for no more at once than is served at once.

    Of a request that is served in pieces the loop device forgets that a later piece failed.
    """

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        with super().mounted() as mounted:
            device = next(
                line.split()[0]
                for line in Path("/proc/self/mounts").read_text().splitlines()
                if line.split()[1] == str(mounted)
            )
            limit = Path("/sys/block") / Path(device).name / "queue" / "max_sectors_kb"
            limit.write_text(str(_REQUEST_BYTES_MAX // 1024))
            yield mounted


@contextlib.contextmanager
def served(image: Image, folder: Path, page: Page, mark: bytes = b"") -> Iterator[tuple[Image, Path]]:
    """Serve the content of an image; give the image as it is served, and the log."""
    place, log = folder / "served", folder / "log"
    place.mkdir(exist_ok=True)
    log.write_bytes(b"")
    data = bytearray(image.file.read_bytes())
    pid = os.fork()
    if not pid:
        _serve(data, place, log, page, mark)
    try:
        _wait_for(place / _NAME)
        yield _Device(place / _NAME, image.mount_point), log
    finally:
        run(["umount", str(place)])
        os.waitpid(pid, 0)


def _serve(data: bytearray, place: Path, log: Path, page: Page, mark: bytes) -> None:
    try:
        package = importlib.import_module("mfusepy")
        operations = _operations()(data, log, page, mark)
        # The older library cuts writes into pages unless it is told not to; the newer one has no such option.
        options = {"big_writes": True} if package.fuse_version_major == 2 else {}
        package.FUSE(operations, str(place), foreground=True, nothreads=True, **options)
    finally:
        os._exit(0)


def _wait_for(path: Path) -> None:
    ends = time.monotonic() + _WAIT_SECONDS
    while not path.exists():
        if time.monotonic() > ends:
            raise RuntimeError(f"{path} was not served after {_WAIT_SECONDS} seconds")
        time.sleep(0.01)


def read_log(path: Path) -> list[Entry]:
    """Read everything that reached the device, in its order."""
    entries, data, at = list[Entry](), path.read_bytes(), 0
    while at < len(data):
        offset, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        entries.append(Entry(offset, data[at : at + length]))
        at += length
    return entries
