"""Committed but not yet applied operations, laid over the plain files for every reader."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from holdfast.adapters.filesystem.apply import last_whole, merge
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame, Kind, Operation
from holdfast.adapters.filesystem.journal import Appended
from holdfast.domain.value import value

_READ_AGAIN_MAX = 100
_offset_of, _end_of = attrgetter("offset"), attrgetter("end")


@value
class Pending:
    """A frame that is committed and perhaps not applied: where it lies, how it is chained, what it does."""

    lsn: int
    end: int
    previous: bytes
    digest: bytes
    operations: list[Operation]


class Overlay:
    """Pending operations by file, oldest first, and the frames they came in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: deque[Pending] = deque()
        #: Frames that came after those and are not found by file yet: most are applied before anybody asks.
        self._new: deque[Pending] = deque()
        self._by_path: defaultdict[str, deque[Operation]] = defaultdict(deque)
        #: Files of which something pending does more than to go on where the one before it ended.
        self._uneven: set[str] = set()
        self._drops = 0

    def add(self, frame: Frame | Appended, operations: list[Operation]) -> None:
        with self._lock:
            self._new.append(Pending(frame.lsn, frame.end, frame.previous, frame.digest, operations))

    def _sort(self) -> None:
        """Make everything that is pending be found by its file. Needs the lock."""
        while self._new:
            frame = self._new.popleft()
            self._frames.append(frame)
            for operation in frame.operations:
                pending = self._by_path[operation.path]
                if operation.kind is not Kind.WRITE or (pending and pending[-1].end != operation.offset):
                    self._uneven.add(operation.path)
                pending.append(operation)

    def drop(self, through: int) -> None:
        """Forget frames that the files hold by now."""
        with self._lock:
            first = self._frames or self._new
            self._drops += bool(first and first[0].end <= through)
            while self._frames and self._frames[0].end <= through:
                self._take_away(self._frames.popleft())
            while self._new and self._new[0].end <= through:
                self._new.popleft()

    def _take_away(self, frame: Pending) -> None:
        for operation in frame.operations:
            pending = self._by_path[operation.path]
            pending.popleft()
            if not pending:
                del self._by_path[operation.path]
                self._uneven.discard(operation.path)

    def renew(self, frames: Iterable[tuple[Frame, list[Operation]]]) -> None:
        """Take frames in the place of all that was pending, at once: who reads meanwhile misses nothing."""
        with self._lock:
            self._drops += 1
            self._frames.clear()
            self._by_path.clear()
            self._uneven.clear()
            self._new = deque(Pending(one.lsn, one.end, one.previous, one.digest, ops) for one, ops in frames)

    def of(self, path: str) -> tuple[Operation, ...]:
        return self.version(path)[1]

    def version(self, path: str) -> tuple[int, tuple[Operation, ...], bool]:
        """How often anything was dropped, what is pending for a file, and whether that only makes it grow."""
        with self._lock:
            self._sort()
            return self._drops, tuple(self._by_path.get(path, ())), path not in self._uneven

    def paths(self) -> list[str]:
        with self._lock:
            self._sort()
            return list(self._by_path)

    def through(self, lsn: int) -> list[Pending]:
        """Frames that end at or before a position."""
        with self._lock:
            return [frame for frame in (*self._frames, *self._new) if frame.end <= lsn]


class Files:
    """The one read path: a plain file with what is pending laid over it."""

    def __init__(self, disk: Disk, overlay: Overlay) -> None:
        self._disk = disk
        self._overlay = overlay

    def size(self, path: str) -> int | None:
        """Logical size of a file, or None if there is none."""
        # The overlay is read first: an operation applied in between is then seen twice, never missed.
        _, operations, is_even = self._overlay.version(path)
        size = self._disk.file_size(path)
        # Of many that only make it grow, the last one tells.
        for operation in operations[-1:] if is_even else operations:
            if operation.kind is Kind.UNLINK:
                size = None
            elif operation.kind is Kind.REPLACE:
                size = len(operation.data)
            else:
                size = max(size or 0, operation.end)
        return size

    def is_pending(self, path: str) -> bool:
        """Whether anything is committed of a file that it may not hold yet."""
        return bool(self._overlay.of(path))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """Bytes of a file (all of them, or a range), or None if there is no such file."""
        return self.read_parts(path, (offset, length))[0]

    def read_parts(self, path: str, *parts: tuple[int, int | None]) -> list[bytes | None]:
        """Several ranges of a file, each an offset and a length, read in this order."""
        for _ in range(_READ_AGAIN_MAX):
            drops, operations, is_even = self._overlay.version(path)
            is_whole = not is_even and last_whole(operations) is not None
            found: list[bytes | None] = [None] * len(parts)
            if not is_whole:
                found = self._read_disk(path, parts)
            # What is half applied while we read is still pending afterwards, and covers it whole.
            seen, operations, is_even = self._overlay.version(path)
            if seen == drops:
                break
        if not operations:
            return found
        laid = []
        for data, (offset, length) in zip(found, parts, strict=True):
            over = _touching(operations, offset, length) if is_even else operations
            laid.append(_laid_over(data, over, offset, length))
        return laid

    def _read_disk(self, path: str, parts: Sequence[tuple[int, int | None]]) -> list[bytes | None]:
        try:
            handle = self._disk.open(path)
        except FileNotFoundError:
            return [None] * len(parts)
        try:
            return [self._read_part(handle, offset, length) for offset, length in parts]
        finally:
            self._disk.close(handle)

    def _read_part(self, handle: int, offset: int, length: int | None) -> bytes:
        if length is None:
            length = max(self._disk.size(handle) - offset, 0)
        return self._disk.read(handle, length, offset)

    def list_folder(self, path: str) -> list[str]:
        """Names of files in a folder as they will be when everything is applied."""
        prefix = path + "/"
        # The overlay first, as in `size`: what is applied in between is then seen twice, never missed.
        overlaid = self._overlay.paths()
        names = set(self._disk.list_folder(path))
        for pending in overlaid:
            name = pending.removeprefix(prefix)
            if pending.startswith(prefix) and "/" not in name:
                names.add(name) if self.size(pending) is not None else names.discard(name)
        return sorted(names)

    def list_folders(self, path: str) -> list[str]:
        """Names of folders in a folder, also of those that only pending files will create."""
        prefix = path + "/"
        overlaid = self._overlay.paths()
        names = set(self._disk.list_folder(path))
        names.update(
            pending.removeprefix(prefix).split("/")[0]
            for pending in overlaid
            if pending.startswith(prefix) and "/" in pending.removeprefix(prefix)
        )
        return sorted(names)

    def walk(self, folder: str) -> list[str]:
        """Paths of all files below a folder, in no particular order."""
        overlaid = self._overlay.paths()
        found = set(_walk(self._disk, folder))
        for pending in overlaid:
            if pending.startswith(folder + "/"):
                found.add(pending) if self.size(pending) is not None else found.discard(pending)
        return list(found)


def _walk(disk: Disk, folder: str) -> Iterator[str]:
    for name in disk.list_folder(folder):
        path = f"{folder}/{name}"
        try:
            yield from list(_walk(disk, path))
        except NotADirectoryError:
            yield path


def _touching(grown: tuple[Operation, ...], offset: int, length: int | None) -> tuple[Operation, ...]:
    """Those of many writes, each where the one before it ended, that reach into a window.

    At least one: that there are any says that there is a file.
    """
    first = bisect_right(grown, offset, key=_end_of)
    last = len(grown) if length is None else bisect_left(grown, offset + length, key=_offset_of)
    return grown[first:last] or grown[-1:]


def _laid_over(
    data: bytes | None, operations: tuple[Operation, ...], offset: int, length: int | None
) -> bytes | None:
    base = last_whole(operations)
    if base is None:
        return _lay_over(data, operations, offset, length)
    whole = operations[base]
    data = None if whole.kind is Kind.UNLINK else _cut(whole.data, offset, length)
    return _lay_over(data, operations[base + 1 :], offset, length)


def _cut(data: bytes, offset: int, length: int | None) -> bytes:
    return data[offset:] if length is None else data[offset : offset + length]


def _lay_over(
    data: bytes | None, writes: Iterable[Operation], offset: int, length: int | None
) -> bytes | None:
    """What a window of a file holds once writes are carried out on it."""
    for position, written in merge(list(writes)):
        start, end = position - offset, position - offset + len(written)
        low, high = max(start, 0), end if length is None else min(end, length)
        have = data or b""
        if end > len(have):
            have = have.ljust(low if length is None else min(low, length), b"\0")
        data = have[:low] + written[low - start : high - start] + have[high:] if high > low else have
    return data
