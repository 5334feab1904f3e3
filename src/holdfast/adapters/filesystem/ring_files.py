"""Ring files in the journal's folder: their names, which one counts, and what a damaged one leaves."""

from __future__ import annotations

from contextlib import suppress

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.named import Named
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


def generations(disk: Disk) -> list[int]:
    """Generations of the rings that have a name, the oldest first: more than one after a crash only."""
    return _generations_among(disk.list_folder(FOLDER))


def _generations_among(names: list[str]) -> list[int]:
    return sorted(filter(None, map(generation_of, names)))


@value
class Rings:
    """What lies in the journal's folder.

    Attributes:
        counting: the ring that holds all that was acknowledged; None if there is none.
        others: generations of those that count no more, or not yet.
        headless: generations of those without a superblock.
    """

    counting: Ring | None
    others: list[int]
    headless: list[int]


def look(disk: Disk, there: list[int], *, write: bool) -> Rings:
    """Find the ring that counts, of those of some generations.

    A ring that is to take the place of another gets its name first, and then the others are told of it.
    Whoever makes it may be killed in between, and they go on in the old one. So it counts only once something
    was appended to it, which nobody does before all are told; until then everything is in the old one.
    """
    found: Ring | None = None
    others: list[int] = []
    headless: list[int] = []
    ring: Ring | None = None
    try:
        for generation in there:
            ring = Ring.open(disk, ring_path(generation), write=write)
            if ring is None:
                headless.append(generation)
                continue
            if found is not None:
                left, ring = (found, ring) if _goes_on(ring, found) else (ring, found)
                others.append(left.superblock.generation)
                disk.close(left.handle)
            found, ring = ring, None
    except BaseException:
        for one in (found, ring):
            if one is not None:
                disk.close(one.handle)
        raise
    return Rings(found, others, headless)


def _goes_on(later: Ring, older: Ring) -> bool:
    """Tell whether anything was appended to a ring that was made from an older one."""
    last = later.last_frame()
    block = later.superblock
    end = (last.end, last.digest) if last else (block.settled, block.chain)
    while end[0] > older.superblock.settled:
        if last is not None:
            # By its place: whatever became of the frames before it, the older one has it or not.
            is_known = older.digest_at(last.lsn) == last.digest
        else:
            is_known = any((frame.end, frame.digest) == end for frame in older.since_settled())
        if is_known:
            # A whole frame behind a broken chain was appended, too: then that is damage, and told.
            return next(later.strays(end[0]), None) is not None
        # To a reader: what was compared with may have been recycled meanwhile.
        if not older.reread_superblock():
            return True
    return False


def counting_ring(disk: Disk, capacity: int) -> tuple[Ring, Damage | None]:
    """The ring to go on with; unfinished ones and all others are removed, a damaged one is kept."""
    names, damage = disk.list_folder(FOLDER), None
    for name in names:
        if name.endswith(".tmp"):
            disk.unlink(f"{FOLDER}/{name}")
    rings = look(disk, _generations_among(names), write=True)
    for generation in rings.headless:
        damage = _set_headless_aside(disk, ring_path(generation))
    for generation in rings.others:
        disk.unlink(ring_path(generation))
    if rings.counting is not None:
        return rings.counting, damage
    newest = max(rings.headless, default=0)
    first = Superblock(newest + 1, counter=1, capacity=capacity, settled=0)
    return Ring.create(disk, ring_path(newest + 1), first), damage


def discard_before(disk: Disk, generation: int) -> None:
    """Take the names of rings away in whose place one of a later generation is, as all are told."""
    # Whoever opens the store alone does it, too.
    with suppress(OSError):
        for older in generations(disk):
            if older < generation:
                disk.unlink(ring_path(older))


def discard_others(disk: Disk, generation: int) -> None:
    """Leave no ring but one, durably: what was erased may stand in what a killed process left."""
    for other in generations(disk):
        if other != generation:
            disk.unlink(ring_path(other))
    disk.sync_folder(FOLDER)


def write_named(ring: Ring, place: Named, data: bytes, lsn: int) -> None:
    """Write at a position of a ring that still has its name: what is written into any other is lost.

    The look at the name is had once it is written, while the device is at work.

    Raises:
        StoreNotFoundError: it has it no more. If it gets it back, what was refused is not found in it.
    """
    ring.write(data, lsn)
    try:
        place.check()
    except BaseException:
        # Nobody was told of it.
        with suppress(OSError):
            ring.write(bytes(len(data)), lsn)
        raise


def _set_headless_aside(disk: Disk, path: str) -> Damage:
    """Remember the bytes of a ring both of whose superblocks are gone, and move it out of the way."""
    handle = disk.open(path)
    try:
        image = disk.read(handle, disk.size(handle), 0)
    finally:
        disk.close(handle)
    disk.rename(path, path.replace("ring-", "damaged-"))
    return Damage(lsn=0, durable=0, image=image)
