"""`holdfast.json`: what a folder must hold to be a store."""

from __future__ import annotations

import json
import uuid

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.ring_files import FOLDER
from holdfast.domain.errors import CheckpointCorruptError, StoreNotFoundError, UnsupportedVersionError
from holdfast.domain.json_reading import read_object
from holdfast.domain.value import value

FORMAT_VERSION = 1


@value
class Settings:
    """Format version and identity of a store."""

    store_id: str
    version: int = FORMAT_VERSION

    def encode(self) -> bytes:
        fields = {"format": "holdfast", "version": self.version, "store_id": self.store_id}
        return json.dumps(fields, indent=2).encode() + b"\n"


def read_settings(disk: Disk) -> Settings:
    """The settings of the store at a disk's root."""
    try:
        handle = disk.open(layout.SETTINGS)
    except FileNotFoundError as error:
        raise _missing(disk) from error
    try:
        data = disk.read(handle, disk.size(handle), 0)
    finally:
        disk.close(handle)
    return _parse(data, disk.root)


def _missing(disk: Disk) -> StoreNotFoundError:
    if disk.list_folder(layout.CHECKPOINTS):
        return StoreNotFoundError(
            "holdfast.json is gone, and the rest of a store is here",
            place=disk.root,
            hint="Put it back from a backup, or let `holdfast init` make another for what is here.",
        )
    return StoreNotFoundError(
        "no store here", place=disk.root, hint="Create one with `holdfast init`, or check the path."
    )


def _parse(data: bytes, place: str) -> Settings:
    try:
        fields = read_object(data)
        version, store_id = int(fields["version"]), str(fields["store_id"])
        known = fields["format"] == "holdfast"
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointCorruptError("holdfast.json is damaged", place=place, hint=_HINT) from error
    if not known:
        raise CheckpointCorruptError("holdfast.json is not ours", place=place, hint=_HINT)
    if version != FORMAT_VERSION:
        raise UnsupportedVersionError(
            f"the store has format {version}, this program knows {FORMAT_VERSION}",
            place=place,
            hint="Use a matching version of Holdfast; nothing was changed.",
        )
    return Settings(store_id, version)


_HINT = 'It must read {"format": "holdfast", "version": 1, "store_id": "…"}; restore it from a backup.'


def write_settings(disk: Disk, settings: Settings) -> None:
    """Create a store's settings durably. Called last: without them there is no store."""
    temporary = layout.SETTINGS + ".tmp"
    handle = disk.open(temporary, write=True, create=True)
    try:
        disk.write(handle, settings.encode(), 0)
        disk.sync(handle)
    finally:
        disk.close(handle)
    disk.rename(temporary, layout.SETTINGS)
    disk.sync_folder("")


def is_store(disk: Disk) -> bool:
    """Tell whether there is a store in the folder."""
    try:
        read_settings(disk)
    except StoreNotFoundError:
        return False
    return True


def create_store(disk: Disk) -> None:
    """Make an empty store, unless somebody else does."""
    disk.make_root()
    disk.make_folder(FOLDER)
    handle = disk.open(f"{FOLDER}/lock", write=True, create=True)
    disk.lock(handle)
    try:
        # Somebody else may have been faster.
        if not is_store(disk):
            disk.sync_folder("")
            write_settings(disk, Settings(str(uuid.uuid4())))
    finally:
        disk.unlock(handle)
        disk.close(handle)
