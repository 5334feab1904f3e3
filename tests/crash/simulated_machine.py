"""A machine in memory: knows what a power cut may leave of every file, name and shared page.

Data is kept per sector of 512 bytes: after a cut a sector holds any of the contents it had since the
last sync that covered it. Names are kept per folder. `Machine.image` builds one legal machine after a
power cut from one choice per unit; `images` picks the choices worth looking at.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

SECTOR_BYTES = 512


class Inode:
    """One file: what programs see, what the medium holds, and what lies between the two."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.durable = bytearray(data)
        #: Sector -> contents since the last sync; the first is what the medium holds.
        self.sectors: dict[int, list[bytes]] = {}
        self.sizes: list[int] = [len(data)]
        #: How often write-back failed; every open handle is told once.
        self.failures = 0

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        grown = max(end - len(self.data), 0)
        touched = range(min(offset, len(self.data)) // SECTOR_BYTES, -(-end // SECTOR_BYTES))
        self.data.extend(bytes(grown))
        self.data[offset:end] = data
        self._note(touched)

    def truncate(self, size: int) -> None:
        last = max(size, len(self.data))
        touched = range(min(size, len(self.data)) // SECTOR_BYTES, -(-last // SECTOR_BYTES))
        self.data[size:] = bytes(max(size - len(self.data), 0))
        self._note(touched)

    def _note(self, touched: range) -> None:
        for sector in touched:
            versions = self.sectors.setdefault(sector, [_sector(self.durable, sector)])
            now = _sector(self.data, sector)
            if versions[-1] != now:
                versions.append(now)
        if self.sizes[-1] != len(self.data):
            self.sizes.append(len(self.data))

    def sync(self) -> None:
        for sector, versions in self.sectors.items():
            _put(self.durable, sector, versions[-1])
        _resize(self.durable, len(self.data))
        self._clean()

    def lose(self) -> None:
        """Fail to write back: what was dirty counts as clean, and the medium has nothing of it."""
        self.failures += 1
        self._clean()

    def _clean(self) -> None:
        self.sectors.clear()
        self.sizes = [len(self.durable)]
        if len(self.data) != len(self.durable):
            self.sizes.append(len(self.data))


def _sector(data: bytearray, sector: int) -> bytes:
    start = sector * SECTOR_BYTES
    return bytes(data[start : start + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")


def _put(data: bytearray, sector: int, content: bytes) -> None:
    start = sector * SECTOR_BYTES
    _resize(data, max(len(data), start + SECTOR_BYTES))
    data[start : start + SECTOR_BYTES] = content


def _resize(data: bytearray, size: int) -> None:
    data[size:] = bytes(max(size - len(data), 0))


Change = tuple[tuple[str, "Inode | Folder | None"], ...]


class Folder:
    """One folder: its names now, its names on the medium, and the changes in between."""

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Folder] = {}
        self.durable: dict[str, Inode | Folder] = {}
        self.changes: list[Change] = []

    def change(self, *changed: tuple[str, Inode | Folder | None]) -> None:
        self.changes.append(changed)
        _apply(self.entries, changed)

    def sync(self) -> None:
        for change in self.changes:
            _apply(self.durable, change)
        self.changes.clear()


def _apply(entries: dict[str, Inode | Folder], change: Change) -> None:
    for name, target in change:
        if target is None:
            entries.pop(name, None)
        else:
            entries[name] = target


@dataclass(eq=False)
class Handle:
    inode: Inode
    writable: bool
    owner: object
    seen_failures: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """Something the power cut decides on its own: it ends in one of `versions` ways."""

    target: Inode | Folder
    part: int
    versions: int


@dataclass
class Machine:
    """Everything that survives a process: files, names, locks, shared memory.

    Args:
        ordered: Changes of one folder reach the medium in order, as journalling file systems do
            it; else any of those not synced may be missing.
    """

    ordered: bool = True
    root: Folder = field(default_factory=Folder)
    on_operation: Callable[[str], None] | None = None
    log: list[str] = field(default_factory=list)
    locks: dict[Inode, dict[Handle, bool]] = field(default_factory=dict)
    handles: dict[int, Handle] = field(default_factory=dict)
    next_handle: int = 3
    #: Operations so far, those that change nothing included.
    steps: int = 0

    def did(self, operation: str) -> None:
        """Log an operation that changed something, and let the harness look at the machine."""
        self.log.append(operation)
        if self.on_operation is not None:
            self.on_operation(operation)

    # -- after a power cut -------------------------------------------------------------------

    def walk(self) -> Iterator[tuple[str, Inode | Folder]]:
        """Everything a power cut may leave, by one of the paths it may have."""
        seen: set[int] = set()
        stack: list[tuple[str, Inode | Folder]] = [("", self.root)]
        while stack:
            path, node = stack.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield path, node
            if isinstance(node, Folder):
                inner = list(node.durable.items())
                inner += [(n, t) for change in node.changes for n, t in change if t is not None]
                stack += [(f"{path}/{name}", target) for name, target in inner]

    def units(self) -> list[Unit]:
        """What is undecided now: sectors, sizes and names that no sync has settled."""
        found: list[Unit] = []
        for _, node in self.walk():
            if isinstance(node, Inode):
                found += [Unit(node, s, len(v)) for s, v in node.sectors.items() if len(v) > 1]
                if len(node.sizes) > 1:
                    found.append(Unit(node, -1, len(node.sizes)))
            elif node.changes and self.ordered:
                found.append(Unit(node, -1, len(node.changes) + 1))
            else:
                found += [Unit(node, index, 2) for index in range(len(node.changes))]
        return found

    def image(self, units: list[Unit], choices: list[int]) -> Machine:
        """The machine after a power cut that decided so."""
        chosen: dict[tuple[int, int], int] = {}
        for unit, choice in zip(units, choices, strict=True):
            chosen[id(unit.target), unit.part] = choice
        return Machine(self.ordered, _folder_after(self.root, chosen, self.ordered, {}))

    def copy(self) -> Machine:
        """The same machine with everything in its caches, as if all of it had been synced."""
        units = self.units()
        return self.image(units, [unit.versions - 1 for unit in units])

    def files(self) -> dict[str, bytes]:
        """Contents by path, as programs see them."""
        found: dict[str, bytes] = {}
        stack = [("", self.root)]
        while stack:
            prefix, folder = stack.pop()
            for name, target in folder.entries.items():
                path = f"{prefix}{name}"
                if isinstance(target, Folder):
                    stack.append((path + "/", target))
                else:
                    found[path] = bytes(target.data)
        return found


def _folder_after(
    folder: Folder, chosen: dict[tuple[int, int], int], ordered: bool, known: dict[int, Inode]
) -> Folder:
    entries = dict(folder.durable)
    kept = chosen.get((id(folder), -1), 0)
    for index, change in enumerate(folder.changes):
        if index < kept if ordered else chosen.get((id(folder), index), 0):
            _apply(entries, change)
    after = Folder()
    for name, target in entries.items():
        if isinstance(target, Folder):
            after.entries[name] = _folder_after(target, chosen, ordered, known)
        else:
            if id(target) not in known:
                known[id(target)] = _inode_after(target, chosen)
            after.entries[name] = known[id(target)]
    after.durable = dict(after.entries)
    return after


def _inode_after(inode: Inode, chosen: dict[tuple[int, int], int]) -> Inode:
    data = bytearray(inode.durable)
    for sector, versions in inode.sectors.items():
        _put(data, sector, versions[chosen.get((id(inode), sector), 0)])
    _resize(data, inode.sizes[chosen.get((id(inode), -1), 0)])
    return Inode(bytes(data))


def choices(units: list[Unit], rng: random.Random, samples: int) -> Iterator[list[int]]:
    """Ways a power cut may decide: all when they are few, else the telling ones and a seeded sample."""
    total = 1
    for unit in units:
        total = min(total * unit.versions, samples + 1)
    if total <= samples:
        yield from _all(units)
        return
    last = [unit.versions - 1 for unit in units]
    yield [0] * len(units)
    yield last
    ways = [_cut_in_two(last, rng), _one_missing(last, rng), _only_one(last, rng), _any(units, rng)]
    for index in range(max(samples - 2, 0)):
        yield next(ways[index % len(ways)])


def _all(units: list[Unit]) -> Iterator[list[int]]:
    if not units:
        yield []
        return
    for rest in _all(units[1:]):
        for version in range(units[0].versions):
            yield [version, *rest]


def _cut_in_two(last: list[int], rng: random.Random) -> Iterator[list[int]]:
    """A prefix reached the medium, or a suffix."""
    while True:
        at = rng.randrange(len(last) + 1)
        yield last[:at] + [0] * (len(last) - at)
        yield [0] * at + last[at:]


def _one_missing(last: list[int], rng: random.Random) -> Iterator[list[int]]:
    while True:
        at = rng.randrange(len(last))
        yield [0 if index == at else version for index, version in enumerate(last)]


def _only_one(last: list[int], rng: random.Random) -> Iterator[list[int]]:
    while True:
        at = rng.randrange(len(last))
        yield [version if index == at else 0 for index, version in enumerate(last)]


def _any(units: list[Unit], rng: random.Random) -> Iterator[list[int]]:
    while True:
        yield [rng.randrange(unit.versions) for unit in units]
