"""The one door to the file system. Tests replace it to enumerate every crash and every fault."""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from holdfast.adapters.filesystem.lock_wait import onlooker
from holdfast.domain.errors import ConfigError

try:
    import fcntl

    from holdfast.adapters.file_status import Identity, identity
    from holdfast.adapters.filesystem.quick_calls import quick_calls
except ImportError as error:
    raise ConfigError(
        "a store in a folder needs file locks that this platform does not have",
        place=sys.platform,
        hint="Use another kind of store here, or Linux or macOS.",
    ) from error

MAP_BYTES = 10 * 1024 * 1024
#: Copying so much takes a few microseconds.
QUICK_BYTES = 64 * 1024
FILE_MODE = 0o600
FOLDER_MODE = 0o700

# Without O_NONBLOCK a named pipe planted in place of a file would hang whoever opens it.
_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class SharedPage(Protocol):
    """A few bytes that all processes with the store open see at once."""

    def __getitem__(self, key: slice) -> bytes: ...

    def __setitem__(self, key: slice, value: bytes) -> None: ...

    def close(self) -> None: ...


class Disk:
    """Files below one root. Paths are relative, `/`-separated and never leave the root.

    No symbolic link is followed, at any depth: a store is treated as written by an attacker.
    """

    def __init__(self, root: str, map_bytes: int = MAP_BYTES) -> None:
        self.root = root
        #: From this size on, files are read through a memory map.
        self.map_bytes = map_bytes

    # -- folders -----------------------------------------------------------------------------

    def identity(self, path: str = "") -> Identity | None:
        """Tell which file a path, by default the root, leads to at this moment; None if there is none."""
        try:
            return identity(f"{self.root}/{path}" if path else self.root)
        except OSError:
            return None

    def make_root(self) -> None:
        """Create the root folder and those above it, durably."""
        above = os.path.dirname(os.path.abspath(self.root))
        missing = [above]
        while not os.path.isdir(missing[-1]):
            missing.append(os.path.dirname(missing[-1]))
        os.makedirs(self.root, mode=FOLDER_MODE, exist_ok=True)
        for folder in missing:
            _sync_folder_at(folder)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """Open a folder component by component, refusing links."""
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in filter(None, path.split("/")):
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def make_folder(self, path: str) -> None:
        """Create a folder and those above it; nothing happens if it is there."""
        parent, _, name = path.rpartition("/")
        try:
            self._make_one(parent, name)
        except FileNotFoundError:
            if not parent:
                # The store's own folder is gone, and nobody asked for a new one.
                raise
            self.make_folder(parent)
            self._make_one(parent, name)

    def _make_one(self, parent: str, name: str) -> None:
        with self._folder(parent) as handle:
            try:
                os.mkdir(name, FOLDER_MODE, dir_fd=handle)
            except FileExistsError:
                return

    def list_folder(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty if it is not there."""
        try:
            with self._folder(path) as handle:
                return sorted(os.listdir(handle))
        except FileNotFoundError:
            return []

    def sync_folder(self, path: str) -> None:
        """Make the folder's entries (created, renamed, removed names) durable."""
        with self._folder(path) as handle:
            _full_sync(handle)

    # -- files -------------------------------------------------------------------------------

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        """Open a file; `create` makes it (mode 0600) if it is not there."""
        flags = (os.O_RDWR if write else os.O_RDONLY) | _NO_FOLLOW | (os.O_CREAT if create else 0)
        parent, _, name = path.rpartition("/")
        with self._folder(parent) as handle:
            try:
                return os.open(name, flags, FILE_MODE, dir_fd=handle)
            except OSError as fault:
                # All of it, for people.
                fault.filename = path
                raise

    def close(self, handle: int) -> None:
        os.close(handle)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def read(self, handle: int, length: int, offset: int) -> bytes:
        """Up to `length` bytes at `offset`; fewer only at the end of the file."""
        data = os.pread(handle, length, offset)
        if len(data) == length or not data:
            return data
        pieces = [data]
        while data and sum(map(len, pieces)) < length:
            have = sum(map(len, pieces))
            data = os.pread(handle, length - have, offset + have)
            pieces.append(data)
        return b"".join(pieces)

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of `data` at `offset`."""
        written = os.pwrite(handle, data, offset)
        if written == len(data):
            return
        view = memoryview(data)
        while written < len(view):
            more = os.pwrite(handle, view[written:], offset + written)
            if not more:
                raise OSError(errno.EIO, "write made no progress")
            written += more

    def overwrite(self, handle: int, data: bytes, offset: int) -> None:
        """Write all of `data` over what the file holds already, soon to be synced: no block has to be found.

        That takes no longer than copying it, so it is done without letting go of the interpreter's lock, and
        the device begins while there is something left to do before the sync. Whoever puts another `write` in
        place of the disk's own gets this, too.
        """
        length, written = len(data), 0
        if length <= QUICK_BYTES and type(self).write is _OWN_WRITE:
            calls = quick_calls()
            written = calls.write(handle, data, offset)
            # To the kernel, a length of 0 is all that follows.
            if written:
                calls.hurry(handle, offset, written)
        if written < length:
            self.write(handle, memoryview(data)[written:], offset + written)

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def sync(self, handle: int) -> None:
        """Make the file's data and size durable."""
        # macOS: fsync reaches the drive's cache only; F_FULLFSYNC reaches the medium.
        if sys.platform == "darwin":
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(handle)

    def sync_all(self) -> bool:
        """Make everything in the file system durable in one call; False where there is no such call."""
        return _sync_file_system(self.root)

    def forget(self, path: str, *, sync: bool) -> None:
        """Let the kernel drop what it remembers of a file, after a sync failed.

        ext4 takes blocks for written whose first writing failed: what is written to them again is synced
        without an error, and zeros are read from there after the next mount. What is read anew is not.
        """
        parent, _, name = path.rpartition("/")
        with suppress(OSError), self._folder(parent) as folder:
            handle = os.open(name, os.O_RDONLY | _NO_FOLLOW, dir_fd=folder)
            try:
                with suppress(OSError):
                    # Only what is clean is dropped; whether this succeeds says nothing.
                    if sync:
                        os.fsync(handle)
                if hasattr(os, "posix_fadvise"):
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(handle)

    def rename(self, source: str, target: str) -> None:
        """Replace `target` by `source` atomically."""
        above, _, old = source.rpartition("/")
        parent, _, name = target.rpartition("/")
        with self._folder(above) as before, self._folder(parent) as after:
            os.rename(old, name, src_dir_fd=before, dst_dir_fd=after)

    def unlink(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        with self._folder(parent) as handle:
            os.unlink(name, dir_fd=handle)

    def file_size(self, path: str) -> int | None:
        """Size of a regular file, or None if there is none. A link is an error."""
        parent, _, name = path.rpartition("/")
        try:
            with self._folder(parent) as handle:
                found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.ELOOP, "not a regular file", path)
        return found.st_size

    def map(self, handle: int, length: int) -> mmap.mmap:
        """Map a file for reading: large files are hashed and cut without a copy."""
        return mmap.mmap(handle, length, prot=mmap.PROT_READ)

    # -- between processes -------------------------------------------------------------------

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        """Take the file's advisory lock; False if it is held and we do not wait."""
        flags = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            # Mostly it is free, and then there is nothing to wait for.
            quick_calls().flock(handle, flags | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                return False
            onlooker().wait(handle, self.root, lambda: fcntl.flock(handle, flags))
        return True

    def unlock(self, handle: int) -> None:
        quick_calls().flock(handle, fcntl.LOCK_UN)

    def share(self, handle: int, length: int) -> SharedPage:
        """Map the file's first bytes, shared with every process that does the same."""
        return mmap.mmap(handle, length)


_OWN_WRITE = Disk.write


def _sync_file_system(root: str) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Linux from 5.8 on reports write-back errors here.
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            raise OSError(ctypes.get_errno(), "syncfs failed", root)
    finally:
        os.close(handle)
    return True


def _sync_folder_at(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _full_sync(handle)
    finally:
        os.close(handle)


def _full_sync(handle: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(handle, fcntl.F_FULLFSYNC)
    else:
        os.fsync(handle)
