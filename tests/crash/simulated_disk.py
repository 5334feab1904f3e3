"""One process's door to a simulated machine: the interface of `Disk`, all of it in memory."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Callable

from holdfast.adapters.filesystem.disk import Disk
from tests.crash.simulated_machine import Folder, Handle, Inode, Machine

#: More than any test needs: who takes more would never have stopped.
STEPS_MAX = 100_000


class Endless(BaseException):
    """Somebody tries the same again and again. Not an Exception, so that nobody handles it."""


class WouldBlock(AssertionError):
    """A lock would be waited for by the only thread there is: nobody could ever release it."""


class SimulatedPage:
    """Shared memory over a file's first bytes. It reaches the medium whenever it likes."""

    def __init__(self, machine: Machine, inode: Inode) -> None:
        self._machine = machine
        self._inode = inode

    def __getitem__(self, key: slice) -> bytes:
        return bytes(self._inode.data[key])

    def __setitem__(self, key: slice, value: bytes) -> None:
        # The medium, and a process that looks now, may catch the copy half done.
        half = len(value) // 2
        self._inode.write(bytes(value[:half]), key.start)
        self._machine.did("page half")
        self._inode.write(bytes(value[half:]), key.start + half)
        self._machine.did("page")

    def close(self) -> None:
        pass


class SimulatedDisk(Disk):
    """One process's door to a machine."""

    def __init__(self, machine: Machine) -> None:
        super().__init__("/simulated")
        self.machine = machine
        self._meanwhile: Callable[[], None] | None = None

    def before_sync(self, meanwhile: Callable[[], None]) -> None:
        """Let something else happen once, when this process is about to sync and holds no lock."""
        self._meanwhile = meanwhile

    def kill(self) -> None:
        """Die: every descriptor is closed and every lock released, nothing else happens."""
        for number, handle in list(self.machine.handles.items()):
            if handle.owner is self:
                self.close(number)

    # -- folders -----------------------------------------------------------------------------

    def make_root(self) -> None:
        pass

    def _find(self, path: str) -> Folder:
        folder = self.machine.root
        for part in filter(None, path.split("/")):
            inner = folder.entries.get(part)
            if inner is None:
                raise FileNotFoundError(errno.ENOENT, "no such folder", path)
            if not isinstance(inner, Folder):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", path)
            folder = inner
        return folder

    def _make_one(self, parent: str, name: str) -> None:
        folder = self._find(parent)
        if name not in folder.entries:
            folder.change((name, Folder()))
            self.machine.did(f"mkdir {parent}/{name}")

    def list_folder(self, path: str) -> list[str]:
        try:
            return sorted(self._find(path).entries)
        except FileNotFoundError:
            return []

    def sync_folder(self, path: str) -> None:
        self._find(path).sync()
        self.machine.did(f"sync folder {path}")

    # -- files -------------------------------------------------------------------------------

    def _inode(self, path: str) -> Inode | None:
        parent, _, name = path.rpartition("/")
        found = self._find(parent).entries.get(name)
        if isinstance(found, Folder):
            raise IsADirectoryError(errno.EISDIR, "a folder", path)
        return found

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        inode = self._inode(path)
        if inode is None:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            inode = Inode()
            parent, _, name = path.rpartition("/")
            self._find(parent).change((name, inode))
            self.machine.did(f"create {path}")
        number = self.machine.next_handle
        self.machine.next_handle += 1
        self.machine.handles[number] = Handle(inode, write, self, inode.failures)
        return number

    def _handle(self, number: int, *, write: bool = False) -> Handle:
        self.machine.steps += 1
        if self.machine.steps > STEPS_MAX:
            raise Endless(f"{STEPS_MAX} steps and no end")
        handle = self.machine.handles.get(number)
        if handle is None or handle.owner is not self or (write and not handle.writable):
            raise OSError(errno.EBADF, "bad descriptor")
        return handle

    def close(self, handle: int) -> None:
        opened = self._handle(handle)
        del self.machine.handles[handle]
        self.machine.locks.get(opened.inode, {}).pop(opened, None)

    def size(self, handle: int) -> int:
        return len(self._handle(handle).inode.data)

    def read(self, handle: int, length: int, offset: int) -> bytes:
        return bytes(self._handle(handle).inode.data[offset : offset + length])

    def write(self, handle: int, data: bytes | memoryview, offset: int) -> None:
        self._handle(handle, write=True).inode.write(bytes(data), offset)
        self.machine.did(f"write {len(data)} at {offset}")

    def truncate(self, handle: int, size: int) -> None:
        self._handle(handle, write=True).inode.truncate(size)
        self.machine.did(f"truncate to {size}")

    def _let_others_run(self) -> None:
        held = [h for holders in self.machine.locks.values() for h, shared in holders.items() if not shared]
        if self._meanwhile is not None and not any(handle.owner is self for handle in held):
            meanwhile, self._meanwhile = self._meanwhile, None
            meanwhile()

    def sync(self, handle: int) -> None:
        self._let_others_run()
        opened = self._handle(handle)
        opened.inode.sync()
        if opened.seen_failures < opened.inode.failures:
            opened.seen_failures = opened.inode.failures
            raise OSError(errno.EIO, "an earlier write-back failed")
        self.machine.did("sync")

    def fail_sync(self, handle: int) -> None:
        """Let the write-back of a file fail, as the sync of this handle will tell."""
        opened = self._handle(handle)
        opened.inode.lose()
        opened.seen_failures = opened.inode.failures

    def sync_all(self) -> bool:
        for _, node in list(self.machine.walk()):
            node.sync()
        self.machine.did("sync all")
        return True

    def forget(self, path: str, *, sync: bool) -> None:
        """Nothing to do: this kernel believes nothing that is not true."""

    def rename(self, source: str, target: str) -> None:
        parent, _, name = target.rpartition("/")
        inode = self._inode(source)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        above, _, old = source.rpartition("/")
        if above == parent:
            self._find(parent).change((old, None), (name, inode))
        else:
            self._find(parent).change((name, inode))
            self._find(above).change((old, None))
        self.machine.did(f"rename {source} {target}")

    def unlink(self, path: str) -> None:
        if self._inode(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        parent, _, name = path.rpartition("/")
        self._find(parent).change((name, None))
        self.machine.did(f"unlink {path}")

    def map(self, handle: int, length: int) -> mmap.mmap:
        # Memory of its own: nobody changes a file that somebody reads through a map.
        mapped = mmap.mmap(-1, length)
        mapped[:] = self.read(handle, length, 0)
        return mapped

    def file_size(self, path: str) -> int | None:
        try:
            inode = self._inode(path)
        except FileNotFoundError:
            return None
        return None if inode is None else len(inode.data)

    # -- between processes -------------------------------------------------------------------

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        opened = self._handle(handle)
        holders = self.machine.locks.setdefault(opened.inode, {})
        others = [is_shared for holder, is_shared in holders.items() if holder is not opened]
        if others and not (shared and all(others)):
            if wait:
                raise WouldBlock(f"lock held by another handle; log ends {self.machine.log[-3:]}")
            return False
        holders[opened] = shared
        return True

    def unlock(self, handle: int) -> None:
        opened = self._handle(handle)
        self.machine.locks.get(opened.inode, {}).pop(opened, None)

    def share(self, handle: int, length: int) -> SimulatedPage:
        return SimulatedPage(self.machine, self._handle(handle).inode)
