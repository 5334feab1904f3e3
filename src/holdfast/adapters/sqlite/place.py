"""Which file a database is: nothing is written into another one that took its name."""

from __future__ import annotations

from holdfast.adapters.file_status import Identity, identity
from holdfast.domain.errors import StoreNotFoundError


class Place:
    """Remembers the file that was opened first, for as long as the store is open.

    SQLite does not look again: what it commits into a file that was moved or removed is gone when it closes.
    """

    __slots__ = ("_found", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._found: Identity | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the file that was opened was taken away, and nothing stands in its place."""
        return self._found is not None and identity(self._path) is None

    @property
    def is_lost(self) -> bool:
        """Whether the file that was opened is no more where it was."""
        return self._found is not None and identity(self._path) != self._found

    def note(self) -> None:
        """Remember the file, unless one is."""
        self._found = self._found or identity(self._path)

    def check(self) -> None:
        """Refuse to go on with another file.

        Raises:
            StoreNotFoundError: it is gone, or another one is in its place.
        """
        if self.is_lost:
            raise StoreNotFoundError(
                "the file of the database is gone, or another one is in its place",
                place=self._path,
                hint="Put it back as it was, with the files beside it, or open the store again.",
            )
