"""Carrying journal operations out on the plain files, and making the result durable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation

TEMPORARY_SUFFIX = ".tmp"

#: Above this many files one sync of the whole file system is cheaper than one for each.
SYNC_EACH_MAX = 256


class RenameFailed(OSError):
    """A finished file could not be moved into its place."""


class Applier:
    """Writes operations to files in batches and remembers which ones to sync before settling."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._touched: set[str] = set()
        self._folders: set[str] = set()

    def apply(self, operations: Iterable[Operation]) -> None:
        """Carry operations out, each file opened once. Redoing them changes nothing."""
        by_path: dict[str, list[Operation]] = {}
        for operation in operations:
            by_path.setdefault(operation.path, []).append(operation)
        try:
            for path, listed in by_path.items():
                self._apply_to(path, listed)
        except OSError:
            # On a full disk what goes makes the room for what could not be written, the next time.
            for path, listed in by_path.items():
                if listed[-1].kind is Kind.UNLINK:
                    with suppress(OSError):
                        self._unlink(path)
            raise

    def apply_afresh(self, operations: Sequence[Operation]) -> None:
        """Carry operations out on files of which the kernel may believe what is not true."""
        paths = {operation.path for operation in operations if operation.kind is Kind.WRITE}
        is_many = len(paths) > SYNC_EACH_MAX
        with suppress(OSError):
            if is_many:
                self._disk.sync_all()
        for path in paths:
            self._disk.forget(path, sync=not is_many)
        self.apply(operations)

    def _apply_to(self, path: str, operations: list[Operation]) -> None:
        base = last_whole(operations)
        if base is not None:
            # What came before it is gone: a lease that was renewed often is written once.
            whole = operations[base]
            self._replace(path, whole.data) if whole.kind is Kind.REPLACE else self._unlink(path)
            operations = operations[base + 1 :]
        if operations:
            self._write(path, operations)

    def _write(self, path: str, writes: list[Operation]) -> None:
        handle = self._open(path)
        try:
            for offset, data in merge(writes):
                self._disk.write(handle, data, offset)
        finally:
            self._disk.close(handle)
        self._touched.add(path)

    def _open(self, path: str) -> int:
        try:
            return self._disk.open(path, write=True)
        except FileNotFoundError:
            self._folders.update(ancestors(path))
            return self._create(path)

    def _create(self, path: str) -> int:
        try:
            return self._disk.open(path, write=True, create=True)
        except FileNotFoundError:
            self._disk.make_folder(path.rpartition("/")[0])
            return self._disk.open(path, write=True, create=True)

    def stage(self, temporary: str, data: bytes) -> None:
        """Write a file that no journal frame carries, under a temporary name, durably."""
        try:
            self._fill(temporary, data)
        except OSError:
            with suppress(OSError):
                self._disk.unlink(temporary)
            raise

    def place(self, temporary: str, path: str) -> None:
        """Move a staged file where it belongs."""
        self._disk.make_folder(path.rpartition("/")[0])
        self._move(temporary, path)

    def _replace(self, path: str, data: bytes) -> None:
        self._fill(path + TEMPORARY_SUFFIX, data)
        self._move(path + TEMPORARY_SUFFIX, path)

    def _fill(self, temporary: str, data: bytes) -> None:
        handle = self._create(temporary)
        try:
            self._disk.truncate(handle, 0)
            self._disk.write(handle, data, 0)
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _move(self, temporary: str, path: str) -> None:
        self._folders.update(ancestors(path))
        try:
            self._disk.rename(temporary, path)
        except OSError as error:
            raise RenameFailed(error.errno, error.strerror, path) from error
        self._touched.discard(path)

    def _unlink(self, path: str) -> None:
        try:
            self._disk.unlink(path)
        except FileNotFoundError:
            return
        self._folders.add(path.rpartition("/")[0])
        self._touched.discard(path)

    def adopt(self, paths: Iterable[str]) -> None:
        """Take over what was applied before, by whichever process: these files must be synced by us now."""
        for path in paths:
            self._touched.add(path)
            self._folders.update(ancestors(path))

    def sync(self) -> None:
        """Make everything applied so far durable. On failure all of it stays to be synced."""
        if len(self._touched) + len(self._folders) > SYNC_EACH_MAX and self._disk.sync_all():
            self._touched.clear()
            self._folders.clear()
            return
        for path in sorted(self._touched):
            self._sync_file(path)
        for folder in sorted(self._folders, key=len, reverse=True):
            self._sync_folder(folder)
        self._touched.clear()
        self._folders.clear()

    def _sync_file(self, path: str) -> None:
        try:
            handle = self._disk.open(path, write=True)
        except FileNotFoundError:
            return
        try:
            self._disk.sync(handle)
        finally:
            self._disk.close(handle)

    def _sync_folder(self, folder: str) -> None:
        try:
            self._disk.sync_folder(folder)
        except FileNotFoundError:
            return


def ancestors(path: str) -> list[str]:
    """Every folder above a path, the root included."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts) + 1)]


def last_whole(operations: Sequence[Operation]) -> int | None:
    """Index of the last operation that sets the file as a whole."""
    for index in range(len(operations) - 1, -1, -1):
        if operations[index].kind is not Kind.WRITE:
            return index
    return None


def merge(writes: list[Operation]) -> list[tuple[int, bytes]]:
    """Neighbouring writes as one."""
    runs: list[tuple[int, list[bytes]]] = []
    end = -1
    for write in writes:
        if write.offset == end:
            runs[-1][1].append(write.data)
        else:
            runs.append((write.offset, [write.data]))
        end = write.offset + len(write.data)
    return [(start, b"".join(pieces)) for start, pieces in runs]
