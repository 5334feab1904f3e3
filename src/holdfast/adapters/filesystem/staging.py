"""Files too large for the journal: written first, put in their place only with the commit that needs them.

Whoever stages holds a lock on a file of its own, its key, for as long as anything of it lies there. The
kernel lets go of the lock when its process dies, so who can take it knows that nobody will ask for these
files again. A key is made, locked and looked at once more before anything is staged under its name: whoever
sweeps may have taken it for a dead one in between, and then another is made. Who sweeps holds the lock while
it takes away, the key last. One lock, not one for each file: a commit may stage more files than a process
may open.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from holdfast.adapters.filesystem import inherited, layout
from holdfast.adapters.filesystem.apply import TEMPORARY_SUFFIX, Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Operation
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.quarantine import set_aside
from holdfast.adapters.filesystem.ring_files import FOLDER
from holdfast.adapters.wrong_bytes import WRONG_BLOB

#: How the names of keys and of what is staged under them begin. Other temporary files are left to whoever
#: opens the store alone: a Holdfast that knows no keys may be writing them.
_STAGED = "staged-"
#: A ring is made under the append lock, so one without a name yet is nobody's to whoever holds that.
_RING = "ring-"


class Staging:
    """Temporary files of one call, in the journal's folder. What dead writers left there is swept."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: Number of the commit that needs it, temporary name, path.
        self._staged: list[tuple[int, str, str]] = []
        self._chosen: set[int] = set()
        #: What all temporary names begin with, and the locked key of that name; none before the first file.
        self._name = ""
        self._key: int | None = None
        self._count = 0

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, temporary, _ in self._staged:
            with suppress(OSError):
                self._disk.unlink(temporary)
        if self._key is not None:
            # Last, as by whoever sweeps: what lies there without a key is nobody's.
            with suppress(OSError):
                self._disk.unlink(self._name + TEMPORARY_SUFFIX)
            self.let_go()

    def let_go(self) -> None:
        """Close the key: in a forked child it would keep the lock of a parent that dies."""
        key, self._key = self._key, None
        inherited.drop(self)
        if key is not None:
            with suppress(OSError):
                self._disk.close(key)

    def add(self, owner: int, path: str, data: bytes) -> None:
        """Write a file durably under a name of its own: two processes may write the same one at once."""
        while self._key is None:
            self._claim()
        self._count += 1
        temporary = f"{self._name}-{self._count}{TEMPORARY_SUFFIX}"
        Applier(self._disk).stage(temporary, data)
        self._staged.append((owner, temporary, path))

    def _claim(self) -> None:
        """Make a key and lock it, unless somebody who sweeps is quicker."""
        self._name = f"{FOLDER}/{_STAGED}{uuid.uuid4().hex}"
        path, disk = self._name + TEMPORARY_SUFFIX, self._disk
        key = disk.open(path, write=True, create=True)
        try:
            # The name is nobody else's: as long as it is there and locked, it leads to this file.
            is_ours = disk.lock(key, wait=False) and disk.file_size(path) is not None
        except BaseException:
            with suppress(OSError):
                disk.unlink(path)
            disk.close(key)
            raise
        if not is_ours:
            disk.close(key)
            return
        self._key = key
        inherited.hold(self)

    def choose(self, owners: Iterable[int]) -> None:
        """Name the commits that are about to be appended; the others lost their race."""
        self._chosen = set(owners)

    @property
    def is_chosen(self) -> bool:
        """Whether any file waits to be placed."""
        return bool(self._staged) and any(owner in self._chosen for owner, _, _ in self._staged)

    def collides(self, unsettled: Iterable[Operation]) -> bool:
        """Whether redoing what is not settled would touch a file that is to be placed."""
        if not self._staged:
            return False
        paths = {path for owner, _, path in self._staged if owner in self._chosen}
        return bool(paths) and any(operation.path in paths for operation in unsettled)

    def place(self) -> None:
        """Put the chosen files where they belong, durably. Needs the append lock."""
        chosen = [staged for staged in self._staged if staged[0] in self._chosen]
        if not chosen:
            return
        applier = Applier(self._disk)
        for staged in chosen:
            self._keep_wrong(staged[2])
            applier.place(staged[1], staged[2])
            self._staged.remove(staged)
        applier.sync()

    def _keep_wrong(self, path: str) -> None:
        """Set aside what stands for a blob and is not what it is called; nothing is pending of it."""
        stored = Files(self._disk, Overlay()).read(path) if path.startswith(f"{layout.BLOBS}/") else None
        if stored is not None and not path.endswith(hashlib.sha256(stored).hexdigest()):
            set_aside(self._disk, path, WRONG_BLOB, stored)


def write_file(disk: Disk, path: str, data: bytes) -> None:
    """Replace one file durably, outside any commit."""
    with Staging(disk) as staging:
        staging.add(0, path, data)
        staging.choose([0])
        staging.place()


def staged_files(disk: Disk) -> list[str]:
    """Names in the journal's folder of what is staged, and of keys and unfinished rings, in their order."""
    names = (name for name in disk.list_folder(FOLDER) if name.endswith(TEMPORARY_SUFFIX))
    return [name for name in names if name.startswith((_STAGED, _RING))]


def sweep_staged(disk: Disk) -> int:
    """Take away, durably, what dead writers staged; answer how many bytes that were. Needs the append lock.

    The lock keeps apart those who sweep: none of them is done while another is still at it.
    """
    staged: dict[str, list[str]] = defaultdict(list)
    names = staged_files(disk)
    rings = [name for name in names if name.startswith(_RING)]
    freed_bytes = _take_away(disk, [f"{FOLDER}/{name}" for name in rings])
    for name in names[len(rings) :]:
        # `staged-KEY.tmp`, `staged-KEY-1.tmp`, `staged-KEY-2.tmp`; names are sorted.
        key = name.removeprefix(_STAGED).removesuffix(TEMPORARY_SUFFIX).partition("-")[0]
        staged[f"{FOLDER}/{_STAGED}{key}{TEMPORARY_SUFFIX}"].append(f"{FOLDER}/{name}")
    freed_bytes += sum(_sweep_one(disk, key, paths) for key, paths in staged.items())
    if names:
        disk.sync_folder(FOLDER)
    return freed_bytes


def _sweep_one(disk: Disk, key: str, paths: list[str]) -> int:
    """Take away what was staged under one key, unless its writer lives."""
    try:
        handle = disk.open(key, write=True)
    except FileNotFoundError:
        # Writers remove their key last: of one who is done nothing is left, and a power cut leaves no writer.
        return _take_away(disk, paths)
    try:
        if not disk.lock(handle, wait=False):
            return 0
        return _take_away(disk, [path for path in paths if path != key]) + _take_away(disk, [key])
    finally:
        disk.close(handle)


def _take_away(disk: Disk, paths: Iterable[str]) -> int:
    freed_bytes = 0
    for path in paths:
        size = disk.file_size(path)
        with suppress(FileNotFoundError):
            disk.unlink(path)
            freed_bytes += size or 0
    return freed_bytes
