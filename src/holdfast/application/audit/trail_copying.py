"""Taking a trail along to another store: as a sealed export, beside the target's own trail.

Two logs are never merged: an entry belongs to the tree it was committed to, and to no other. So the source's
trail arrives as the files of an export, below `imports/` and a name that is made of its first entry, and one
entry in the target's own trail says what arrived. Copied again, only what is new is added, after a check that
the source's log grew out of what arrived before: a target remembers, and so a source that was cut or
rewritten meanwhile is found out. A payload that was erased from an import does not come back with the next
copy of a source that still has it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.application.audit.audit_export import (
    PAYLOADS,
    README_FILE,
    SUMS_FILE,
    LogExport,
    large_payload_path,
    payloads_path,
    sums_text,
    write_folder,
)
from holdfast.application.audit.log_name import ORIGIN_FILE
from holdfast.application.audit.log_tiles import LogTiles
from holdfast.application.imports import IMPORTS as IMPORTS
from holdfast.application.imports import TAIL_FILE
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
)
from holdfast.domain.json_reading import read_object
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.tiles import WIDTH
from holdfast.ports import Store

MANIFEST = "import.json"

#: Names that the files of a store cannot have.
_RENAMED = {README_FILE: "readme.txt", SUMS_FILE: "sha256sums"}
_ORIGINAL = {name: path for path, name in _RENAMED.items()}
_BATCH_BYTES = 512 * 1024
_ATTEMPTS_MAX = 10
#: A commit has to fit a journal: a larger payload lies by itself, and so does one its file has no room for.
_LARGE_BYTES = 16 * 1024
_PAYLOADS_BYTES_MAX = 1024 * 1024


def stored_name(path: str) -> str:
    """Name a file of an export as the files of a store may be named."""
    return _RENAMED.get(path, path)


@dataclass(frozen=True, slots=True)
class TrailCopy:
    """A trail that was taken along, or would be.

    Attributes:
        id: the name of the import in the target; empty if the source has no entry.
        origin: the name of the source's log; empty if it was never signed.
        size, root: the tree that arrived.
        entries: how many entries.
        files, bytes: what had to be written.
    """

    id: str = ""
    origin: str = ""
    size: int = 0
    root: str = ""
    entries: int = 0
    files: int = 0
    bytes: int = 0

    def facts(self) -> dict[str, int | str]:
        """Give what the target's trail says about it."""
        return {"import": self.id, "origin": self.origin, "size": self.size, "root": self.root}


def import_id(source: Store) -> str:
    """Name the log of a store, the same at all times: by its first entry. Empty if there is none."""
    first = next(source.leaves(), None)
    return "" if first is None else hashlib.sha256(first).hexdigest()[:16]


class TrailCopier:
    """Brings the trail of one store to another."""

    def __init__(self, source: Store, target: Store) -> None:
        self._source = source
        self._target = target

    def plan(self) -> TrailCopy:
        """Tell how large the trail is that would be taken along."""
        name = import_id(self._source)
        size = self._source.integrate()
        return TrailCopy(name, self._origin(), size, entries=size) if name else TrailCopy()

    def copy(self, tell: Sequence[AuditEntry] = ()) -> TrailCopy:
        """Bring what is new; nothing is written where nothing is.

        Args:
            tell: goes into the target's trail with it; `TrailCopy.facts` become the facts of each.

        Raises:
            ChecksumMismatchError: the source's log is not the one that arrived before.
            CheckpointConflictError: others change the import all the time.
            CheckpointWriteError: the target cannot be written to.
        """
        name = import_id(self._source)
        if not name:
            return TrailCopy()
        for _ in range(_ATTEMPTS_MAX - 1):
            # Whoever erases from the import meanwhile, or copies too, writes its sums: it is looked at anew.
            with suppress(CheckpointConflictError):
                return self._copy(name, tell)
        return self._copy(name, tell)

    def _copy(self, name: str, tell: Sequence[AuditEntry]) -> TrailCopy:
        export = LogExport(self._source, with_sessions=False)
        self._check_growth(name, export.size)
        return _Arrival(self._source, self._target, name).bring(export, self._described(name, export), tell)

    def _origin(self) -> str:
        return (self._source.file(ORIGIN_FILE) or b"").decode("utf-8", "replace").rstrip("\n")

    def _described(self, name: str, export: LogExport) -> TrailCopy:
        root = LogTiles(self._source).root(export.size).hex()
        return TrailCopy(name, self._origin(), export.size, root, export.size)

    def _check_growth(self, name: str, size: int) -> None:
        """Check that the source still begins with what arrived before."""
        arrived, root = _arrived(self._target, f"{IMPORTS}{name}/")
        if arrived > size:
            raise ChecksumMismatchError(
                f"the source's trail has {size} entries, and {arrived} arrived before",
                place=self._source.url,
                hint="It was cut or put back: verify it with the last head that arrived as a pin.",
            )
        if arrived and LogTiles(self._source).root(arrived).hex() != root:
            raise ChecksumMismatchError(
                "the source's trail is not the one that arrived before",
                place=self._source.url,
                hint="It was rewritten: verify both, the source and the import.",
            )


class _Arrival:
    """Writes the files of one import: what is new first, and at last, at once, all that is changed."""

    def __init__(self, source: Store, target: Store, name: str) -> None:
        self._target = target
        self._folder = f"{IMPORTS}{name}/"
        self._before = _Before(source, target, self._folder)
        self._sums: dict[str, str] = {}
        self._new: dict[str, bytes | None] = {}
        self._changed: dict[str, bytes | None] = {}
        self._files = self._bytes = self._held = 0

    def bring(self, export: LogExport, told: TrailCopy, tell: Sequence[AuditEntry]) -> TrailCopy:
        sums = self._folder + stored_name(SUMS_FILE)
        expected = {sums: self._target.file(sums)}
        stale = set(self._target.files(self._folder))
        for path, chunks in export.log():
            for part, data in self._parts(path, chunks):
                self._sums[part] = hashlib.sha256(data).hexdigest()
                stale.discard(self._take(part, data))
        stale.discard(self._take(SUMS_FILE, sums_text(self._sums)))
        stale.discard(self._folder + MANIFEST)
        self._flush()
        self._changed.update(dict.fromkeys(sorted(stale)))
        copied = replace(told, entries=export.entries, files=self._files, bytes=self._bytes)
        if self._files or stale:
            self._finish(copied, tell, expected)
        return copied

    def _parts(self, path: str, chunks: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
        """Give a file as it is stored: one of payloads without erased ones, and without large ones."""
        if not path.startswith(PAYLOADS):
            yield path, b"".join(chunks)
            return
        inside, size = [], 0
        for line in chunks:
            key = key_of(line)
            assert key is not None, "the export wrote it a moment ago"
            if self._before.was_erased(path, key):
                continue
            if len(line) > _LARGE_BYTES or size + len(line) > _PAYLOADS_BYTES_MAX:
                yield large_payload_path(*key), line
                continue
            inside.append(line)
            size += len(line)
        yield path, b"".join(inside)

    def _take(self, path: str, data: bytes) -> str:
        """Take a file in, unless it is there; answer its name in the store."""
        name = self._folder + stored_name(path)
        there = self._target.file(name)
        if there == data:
            return name
        self._files += 1
        self._bytes += len(data)
        if there is not None or path in _RENAMED:
            self._changed[name] = data
            return name
        self._new[name] = data
        self._held += len(data)
        if self._held >= _BATCH_BYTES:
            self._flush()
        return name

    def _flush(self) -> None:
        if self._new:
            self._commit(Commit(NO_WORKFLOW, Head(), files=self._new))
        self._new, self._held = {}, 0

    def _finish(
        self, copied: TrailCopy, tell: Sequence[AuditEntry], expected: dict[str, bytes | None]
    ) -> None:
        manifest = {**copied.facts(), "entries": copied.entries, "files": len(self._sums) + 1}
        self._changed[self._folder + MANIFEST] = json.dumps(manifest, separators=(",", ":")).encode() + b"\n"
        entries = tuple(replace(entry, facts=copied.facts()) for entry in tell)
        self._commit(Commit(NO_WORKFLOW, Head(), audit=entries, files=self._changed, expected_files=expected))

    def _commit(self, commit: Commit) -> None:
        [outcome] = self._target.commit([commit])
        if outcome is not None:
            raise outcome


class _Before:
    """What arrived before, to tell a payload that was erased here from one that is new."""

    def __init__(self, source: Store, target: Store, folder: str) -> None:
        self._source = source
        self._target = target
        self._folder = folder
        self._size, _ = _arrived(target, folder)
        self._tail = set(map(key_of, self._lines(TAIL_FILE)))
        self._payloads: dict[str, set[tuple[str, int] | None]] = {}

    def was_erased(self, path: str, key: tuple[str, int]) -> bool:
        """Tell whether an entry arrived before whose payload, now in the file `path`, is here no more."""
        if not self._size or key in self._held(path):
            return False
        index = self._source.place(*key)
        if (index is None or index >= self._size) and key not in self._tail:
            return False
        # It may have been in the tail, before a head covered it.
        paths = [PAYLOADS + TAIL_FILE, large_payload_path(*key)]
        paths += [payloads_path(index // WIDTH)] if index is not None else []
        return not any(key in self._held(one) for one in paths)

    def _held(self, path: str) -> set[tuple[str, int] | None]:
        held = self._payloads.get(path)
        if held is None:
            held = self._payloads[path] = set(map(key_of, self._lines(path)))
        return held

    def _lines(self, path: str) -> list[bytes]:
        return (self._target.file(self._folder + path) or b"").splitlines(keepends=True)


def _arrived(target: Store, folder: str) -> tuple[int, str]:
    """Tell the size and the root of what arrived before.

    Raises:
        CheckpointCorruptError: what tells it was damaged.
    """
    data = target.file(folder + MANIFEST)
    try:
        fields = read_object(data or b'{"size":0,"root":""}')
        size, root = fields["size"], fields["root"]
        if type(size) is not int or type(root) is not str:
            raise ValueError("it tells no size and no root")
        return size, root
    except (ValueError, KeyError) as fault:
        raise CheckpointCorruptError(
            f"what tells of an imported trail cannot be read ({fault})",
            place=folder + MANIFEST,
            hint="Put the file back from a backup; what arrived is not lost.",
        ) from fault


def key_of(line: bytes) -> tuple[str, int] | None:
    """Tell which entry a line is, or belongs to; one that was damaged is none."""
    try:
        fields = read_object(line)
    except ValueError:
        return None
    session, seq = fields.get("session"), fields.get("seq")
    return (session, seq) if type(session) is str and type(seq) is int else None


def write_import(store: Store, name: str, folder: str | Path) -> tuple[int, int]:
    """Write an imported trail out again, as the export it arrived as; answer its files and bytes.

    Raises:
        CheckpointNotFoundError: there is no such import.
        CheckpointCorruptError: it is not what arrived.
    """
    place = f"{IMPORTS}{name}/"
    if store.file(place + MANIFEST) is None:
        raise CheckpointNotFoundError("there is no such import", place=ascii(name)[:80])
    sums = store.file(place + _RENAMED[SUMS_FILE]) or b""
    written = write_folder(Path(folder), _unsealed(store, place))
    if (Path(folder) / SUMS_FILE).read_bytes() != sums:
        raise CheckpointCorruptError("an imported trail is not what arrived", place=place)
    return written


def _unsealed(store: Store, place: str) -> Iterator[tuple[str, list[bytes]]]:
    for name in store.files(place):
        path = name.removeprefix(place)
        if path not in (MANIFEST, _RENAMED[SUMS_FILE]):
            yield _ORIGINAL.get(path, path), [store.file(name) or b""]
