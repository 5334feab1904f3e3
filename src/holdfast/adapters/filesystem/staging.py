"""Files too large for the journal: written first, put in their place only with the commit that needs them."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import TEMPORARY_SUFFIX, Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Operation
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.quarantine import set_aside
from holdfast.adapters.filesystem.ring_files import FOLDER
from holdfast.adapters.wrong_bytes import WRONG_BLOB


class Staging:
    """Temporary files of one call. They lie in the journal's folder, where recovery removes what is left."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        #: Number of the commit that needs it, temporary name, path.
        self._staged: list[tuple[int, str, str]] = []
        self._chosen: set[int] = set()

    def __enter__(self) -> Staging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for _, temporary, _ in self._staged:
            with suppress(OSError):
                self._disk.unlink(temporary)

    def add(self, owner: int, path: str, data: bytes) -> None:
        """Write a file durably under a name of its own: two processes may write the same one at once."""
        temporary = f"{FOLDER}/{uuid.uuid4().hex}{TEMPORARY_SUFFIX}"
        Applier(self._disk).stage(temporary, data)
        self._staged.append((owner, temporary, path))

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
