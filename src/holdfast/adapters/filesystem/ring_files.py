"""Ring files in the journal's folder: their names, which one counts, and what a damaged one leaves."""

from __future__ import annotations

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.ring import Ring, Superblock
from holdfast.domain.value import value

FOLDER = "journal"
LOCK_PATH = f"{FOLDER}/lock"


@value
class Damage:
    """Journal bytes that were durable and are no longer whole."""

    lsn: int
    durable: int
    image: bytes

    def __str__(self) -> str:
        if not self.durable and not self.image:
            return "the journal's folder was gone, and what was not settled with it"
        return f"journal damaged at {self.lsn}; durable up to {self.durable}"


def open_lock(disk: Disk) -> tuple[int, Damage | None]:
    """Open the append lock; where the whole folder is gone it is made anew, and that is damage."""
    try:
        return disk.open(LOCK_PATH, write=True, create=True), None
    except FileNotFoundError:
        # No store was ever made without.
        disk.make_folder(FOLDER)
        disk.sync_folder("")
        return disk.open(LOCK_PATH, write=True, create=True), Damage(0, 0, b"")


def ring_path(generation: int) -> str:
    return f"{FOLDER}/ring-{generation:06d}"


def generation_of(name: str) -> int | None:
    """Generation of a ring file by its name, None for other files."""
    number = name.removeprefix("ring-")
    return int(number) if number != name and number.isdecimal() else None


def find_damage(ring: Ring, end: int, durable: int) -> Damage | None:
    """Tell a torn tail from damage: something past the end says that it was durable."""
    durable = max([durable, *(frame.durable for frame in ring.strays(end))])
    if durable <= end:
        return None
    length = min(durable - end, ring.capacity)
    return Damage(end, durable, ring.read(length, end))


def newest_ring(disk: Disk, capacity: int) -> tuple[Ring, Damage | None]:
    """The ring to go on with; unfinished and superseded ones are removed, a damaged one is kept."""
    found: Ring | None = None
    damage: Damage | None = None
    newest = 0
    for name in reversed(disk.list_folder(FOLDER)):
        generation = generation_of(name)
        if generation is None:
            if name.endswith(".tmp"):
                disk.unlink(f"{FOLDER}/{name}")
            continue
        newest = max(newest, generation)
        ring = None if found else Ring.open(disk, ring_path(generation), write=True)
        if found is None and ring is None:
            damage = _set_headless_aside(disk, ring_path(generation))
        elif ring is None:
            disk.unlink(ring_path(generation))
        found = found or ring
    if found is None:
        first = Superblock(newest + 1, counter=1, capacity=capacity, settled=0)
        found = Ring.create(disk, ring_path(newest + 1), first)
    return found, damage


def _set_headless_aside(disk: Disk, path: str) -> Damage:
    """Remember the bytes of a ring both of whose superblocks are gone, and move it out of the way."""
    handle = disk.open(path)
    try:
        image = disk.read(handle, disk.size(handle), 0)
    finally:
        disk.close(handle)
    disk.rename(path, path.replace("ring-", "damaged-"))
    return Damage(lsn=0, durable=0, image=image)
