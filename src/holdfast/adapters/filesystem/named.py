"""Whether what is open is still what stands there: names lead to other files once somebody moved a folder."""

from __future__ import annotations

from holdfast.adapters.filesystem.disk import Disk
from holdfast.domain.errors import StoreNotFoundError


class Named:
    """A file or folder that was found by its name; the root if none is given."""

    __slots__ = ("_disk", "_found", "_path")

    def __init__(self, disk: Disk, path: str = "") -> None:
        self._disk = disk
        self._path = path
        self._found = disk.identity(path)

    def check(self) -> None:
        """Refuse to go on with anything else of that name.

        Raises:
            StoreNotFoundError: it is gone, or another one is in its place.
        """
        if self._disk.identity(self._path) != self._found:
            what = "the journal of the store" if self._path else "the folder of the store"
            raise StoreNotFoundError(
                f"{what} is gone, or another one is in its place",
                place=f"file:{self._disk.root}",
                hint="Put it back as it was, or open the store again.",
            )
