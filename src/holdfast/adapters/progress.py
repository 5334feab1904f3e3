"""Progress reports in a folder, one Markdown file for each workflow, named so that no id is a path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.ids import folder_name

if TYPE_CHECKING:
    from holdfast.adapters.filesystem.disk import Disk

FOLDER = "progress"
_SUFFIX = ".md"
_TEMPORARY_SUFFIX = ".tmp"


def progress_place(store_url: str, path: str | None) -> ProgressFolder | None:
    """Answer where the reports of a store lie: at a path, in its folder, beside its file; None: nowhere."""
    scheme, _, store_path = store_url.partition(":")
    if path is not None:
        return ProgressFolder(path)
    if scheme == "file":
        return ProgressFolder(store_path, FOLDER)
    if scheme == "sqlite":
        above, name = os.path.split(os.path.abspath(store_path))
        return ProgressFolder(above, f"{name}.{FOLDER}")
    return None


class ProgressFolder:
    """Keeps reports as files below a root that is there or is made; below it no link is followed.

    Nothing is synced: what a power cut takes is made anew from the journal.
    """

    def __init__(self, root: str, folder: str = "") -> None:
        self._root = root
        self._folder = folder

    @cached_property
    def _disk(self) -> Disk:
        # Imported when first needed: it asks for more than every platform has.
        from holdfast.adapters.filesystem.disk import Disk

        return Disk(self._root)

    def path(self, workflow_id: str) -> str:
        """Tell where the report of a workflow lies, or would."""
        return os.path.join(self._root, self._name(workflow_id))

    def append(self, workflow_id: str, head: str, text: str) -> None:
        """Add to the end of a report; a new one begins with its head."""
        name = self._name(workflow_id)
        with _writing(self.path(workflow_id)), self._opened(name) as handle:
            end = self._disk.size(handle)
            self._disk.write(handle, (text if end else head + text).encode(), end)

    def replace(self, workflow_id: str, text: str) -> None:
        """Put a whole report in the place of what is there, by renaming."""
        with _writing(self.path(workflow_id)):
            while not self._replaced(self._name(workflow_id), text.encode()):
                pass

    def _replaced(self, name: str, data: bytes) -> bool:
        """Put a whole file in place; False if another writer finished the one we waited for."""
        # One name for all writers: what a killed one left there is the next one's to write over.
        fresh = name + _TEMPORARY_SUFFIX
        with self._opened(fresh) as handle:
            self._disk.lock(handle)
            opened = os.fstat(handle)
            if self._disk.identity(fresh) != (opened.st_dev, opened.st_ino):
                return False
            try:
                self._disk.truncate(handle, 0)
                self._disk.write(handle, data, 0)
                self._disk.rename(fresh, name)
            except OSError:
                with suppress(OSError):
                    self._disk.unlink(fresh)
                raise
        return True

    def remove(self, workflow_id: str) -> None:
        """Take a report away, if there is one, and what a killed writer of it left."""
        name = self._name(workflow_id)
        with _writing(self.path(workflow_id)):
            for each in (name, name + _TEMPORARY_SUFFIX):
                with suppress(FileNotFoundError):
                    self._disk.unlink(each)

    def read(self, workflow_id: str) -> str | None:
        """Answer a report; None if there is none that can be read, or a full disk left a file without any."""
        try:
            handle = self._disk.open(self._name(workflow_id))
        except OSError:
            return None
        try:
            return self._disk.read(handle, self._disk.size(handle), 0).decode("utf-8", "replace") or None
        except OSError:
            return None
        finally:
            self._disk.close(handle)

    def has(self, workflow_id: str) -> bool:
        """Tell whether there is a report."""
        try:
            return bool(self._disk.file_size(self._name(workflow_id)))
        except OSError:
            return False

    def _name(self, workflow_id: str) -> str:
        name = folder_name(workflow_id) + _SUFFIX
        return f"{self._folder}/{name}" if self._folder else name

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """Open a file for writing; it and its folders are made if they are not there."""
        try:
            handle = self._disk.open(name, write=True, create=True)
        except FileNotFoundError:
            self._disk.make_root()
            if self._folder:
                self._disk.make_folder(self._folder)
            handle = self._disk.open(name, write=True, create=True)
        try:
            yield handle
        finally:
            self._disk.close(handle)


@contextmanager
def _writing(place: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointWriteError(
            f"the progress report cannot be written ({error.strerror or error})",
            place=place,
            hint="Check owner and mode of its folder, and the room on its disk.",
        ) from error
