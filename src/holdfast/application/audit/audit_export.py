"""Exports: everything that somebody needs who verifies the log, or one session, on another machine.

The folder of a whole log is a C2SP tlog-tiles log (signed head, tiles, bundles of entries), so that tools
which know nothing of Holdfast read it. Beside that lie all heads, keys, payloads, and each session as a file
of lines. The folder of one session holds its lines, a proof for each and the signed head, and no line of
another session.

The same content gives the same bytes. Nothing is written into the store.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from holdfast.application.audit.export_readme import readme
from holdfast.application.audit.log_keeping import (
    CHECKPOINT_FILE,
    HEADS,
    HEADS_SESSION,
    ROOTS_FILE,
    TELLING_MAX,
    VKEYS_FILE,
    read_roots,
    write_roots,
)
from holdfast.application.audit.log_name import LOG
from holdfast.application.audit.log_tiles import LogTiles
from holdfast.application.audit.period import Period
from holdfast.application.imports import TAIL_FILE as TAIL_FILE
from holdfast.application.kit import Kit
from holdfast.domain.base64_text import to_base64
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    ConfigError,
)
from holdfast.domain.ids import folder_name
from holdfast.domain.merkle import inclusion_proof, leaf_hash
from holdfast.domain.note import parse_note
from holdfast.domain.tiles import ENTRIES, WIDTH, Tile, TreeEdge, pack_bundle
from holdfast.domain.tlogproof import TlogProof
from holdfast.domain.trail import read_fields, session_of
from holdfast.domain.treehead import parse_head
from holdfast.ports import Store

SUMS_FILE = "SHA256SUMS"
README_FILE = "README.txt"
TRAIL_FILE = "audit_trail.jsonl"
PAYLOADS_FILE = "payloads.jsonl"
PAYLOADS = "payloads/"
PERIOD = "period"

#: Stands for the place of an entry that has none yet.
_NOWHERE = 2**63 - 1
_TAIL_BATCH = 4096

#: One file of an export: its path, and its bytes in pieces.
Piece = tuple[str, Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What was exported.

    Attributes:
        folder: where.
        session_id: the session; None for the whole log, or a period of it.
        entries: how many entries.
        signed_size: how many entries of the log the signed head covers; 0 if nothing was ever signed.
        files: how many files, and how many bytes they have.
        absent: payloads that should have come along and are not there: erased, or lost.
    """

    folder: Path
    session_id: str | None
    entries: int
    signed_size: int
    files: int
    bytes: int
    absent: int = 0


def write_export(
    kit: Kit,
    folder: str | Path,
    session_id: str | None = None,
    *,
    period: Period | None = None,
    include_payloads: bool = True,
    on_file: Callable[[str], None] | None = None,
) -> ExportResult:
    """Write the log, or one session or a period of it, into a new folder.

    Args:
        kit: for its store.
        folder: it must be empty, or not there.
        session_id: of this session only.
        period: of this period only.
        include_payloads: payloads, too; without them everything can be verified as well.
        on_file: told the name of each file before it is written.

    Raises:
        ConfigError: the folder is not empty.
        CheckpointNotFoundError: there is no such session, or nothing was recorded in the period.
        CheckpointWriteError: the folder cannot be written to.
    """
    target = Path(folder)
    export = LogExport(kit.store, include_payloads=include_payloads)
    pieces = export.log() if session_id is None else export.session(session_id)
    if period is not None:
        pieces = export.period(period)
    files, size = write_folder(target, pieces if on_file is None else _told(pieces, on_file))
    return ExportResult(target, session_id, export.entries, export.signed_size, files, size, export.absent)


def _told(pieces: Iterable[Piece], on_file: Callable[[str], None]) -> Iterator[Piece]:
    """Tell of each piece before it is written."""
    for piece in pieces:
        on_file(str(piece[0]))
        yield piece


def write_folder(folder: Path, pieces: Iterable[Piece]) -> tuple[int, int]:
    """Write files into a new folder, their sums last; answer how many there are and how many bytes.

    Raises:
        ConfigError: the folder is not empty.
        CheckpointWriteError: it cannot be written to.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(
                "the folder of an export must be empty", place=str(folder), hint="Name another one."
            )
        return _written(folder, pieces)
    except OSError as fault:
        raise CheckpointWriteError(
            f"the export cannot be written ({fault.strerror})", place=str(folder)
        ) from fault


def _written(folder: Path, pieces: Iterable[Piece]) -> tuple[int, int]:
    """Write all of it, or leave the folder as empty as it was: half an export would keep the next one out."""
    try:
        return _write(folder, pieces)
    except BaseException:
        for path in folder.iterdir():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        raise


def _write(folder: Path, pieces: Iterable[Piece]) -> tuple[int, int]:
    sums: dict[str, str] = {}
    size = 0
    for path, chunks in pieces:
        place = folder / path
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with _created(place) as file:
            for chunk in chunks:
                digest.update(chunk)
                size += file.write(chunk)
        sums[path] = digest.hexdigest()
    with _created(folder / SUMS_FILE) as file:
        size += file.write(sums_text(sums))
    return len(sums) + 1, size


def _created(place: Path) -> IO[bytes]:
    """Make a file that only its owner may read: payloads are in some."""
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def sums_text(sums: dict[str, str]) -> bytes:
    """Write sums as `sha256sum -c` reads them."""
    return "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)).encode()


class LogExport:
    """What an export holds, file by file, read from the store while it is asked for."""

    def __init__(self, store: Store, *, include_payloads: bool = True, with_sessions: bool = True) -> None:
        """Take a store as it is now.

        Args:
            with_sessions: each session as a file of lines as well; they hold nothing that is nowhere else.
        """
        self._store = store
        self._include_payloads = include_payloads
        self.absent = 0
        self._with_sessions = with_sessions
        # Before the heads: one that is signed meanwhile is in no list then, and not only in that.
        self._listed = read_roots(store.file(ROOTS_FILE))
        names = list(store.files(HEADS))
        self._heads = {name.removeprefix(LOG): store.file(name) or b"" for name in names}
        self.checkpoint = self._heads[names[-1].removeprefix(LOG)] if names else b""
        self.signed_size = _size_of(self.checkpoint)
        self.size = self._size(store.integrate())
        self.entries = 0
        #: For each session the places of its entries in the tree, in order.
        self._places: dict[str, array[int]] = {}
        self._waits = False

    def _size(self, size: int) -> int:
        """Leave out what only tells of the head that is exported: it could never be covered by that."""
        if not 0 < self.signed_size <= size <= self.signed_size + TELLING_MAX:
            return size
        lines = islice(self._store.leaves(after=self.signed_size), size - self.signed_size)
        is_covered = all(session_of(line) == HEADS_SESSION for line in lines)
        return self.signed_size if is_covered else size

    def log(self) -> Iterator[Piece]:
        """Give the files of the whole log."""
        yield from self._about_heads()
        for path, head in self._heads.items():
            yield path, [head]
        covered = min(self.signed_size, self.size) or self.size
        yield from self._grid(covered)
        yield from self._tail(covered)
        self.entries = sum(map(len, self._places.values()))
        if self._with_sessions:
            for session_id in sorted(self._places):
                yield from self._session_lines(session_id, self._places[session_id])
        yield README_FILE, [readme(self.checkpoint, None, self.entries)]

    def session(self, session_id: str) -> Iterator[Piece]:
        """Give the files of one session."""
        self.entries = self._store.trail_head(session_id).seq
        if not self.entries:
            raise CheckpointNotFoundError("there is no such session", place=session_id)
        found = (self._store.place(session_id, seq) for seq in range(1, self.entries + 1))
        places = array("q", (_NOWHERE if place is None else place for place in found))
        yield from self._about_heads()
        yield from self._session_lines(session_id, places)
        where = f"sessions/{folder_name(session_id)}"
        lines = islice(self._store.trail(session_id), self.entries)
        yield from self._payloads(f"{where}/{PAYLOADS_FILE}", lines)
        for seq, proof in self._proofs(places):
            yield f"{where}/proofs/{seq:08d}.tlog-proof", [proof]
        yield README_FILE, [readme(self.checkpoint, session_id, self.entries)]

    def period(self, period: Period) -> Iterator[Piece]:
        """Give the files of a period: all from its first entry to its last, in the order of the log."""
        first, last = period.stretch(islice(self._store.leaves(), self.size))
        waiting = [line for line in self._store.waiting() if period.has(line)]
        self.entries = max(last - first + 1, 0) + len(waiting)
        if not self.entries:
            raise CheckpointNotFoundError("nothing was recorded in that period", place=str(period))
        places = array("q", range(first, last + 1))
        yield from self._about_heads()
        yield f"{PERIOD}/{TRAIL_FILE}", chain(self._stretch(places), waiting)
        yield from self._payloads(f"{PERIOD}/{PAYLOADS_FILE}", chain(self._stretch(places), waiting))
        for number, proof in self._proofs(places):
            yield f"{PERIOD}/proofs/{number:08d}.tlog-proof", [proof]
        yield README_FILE, [readme(self.checkpoint, None, self.entries, (period.since, period.until))]

    def _stretch(self, places: array[int]) -> Iterator[bytes]:
        return islice(self._store.leaves(after=places[0]), len(places)) if places else iter(())

    def _about_heads(self) -> Iterator[Piece]:
        if self.checkpoint:
            yield CHECKPOINT_FILE.removeprefix(LOG), [self.checkpoint]
        vkeys = self._store.file(VKEYS_FILE)
        if vkeys is not None:
            yield VKEYS_FILE.removeprefix(LOG), [vkeys]
        if self._listed:
            yield ROOTS_FILE.removeprefix(LOG), [write_roots(self._listed)]

    def _grid(self, size: int) -> Iterator[Piece]:
        """Give bundles, payloads and tiles, 256 entries at a time."""
        edge = TreeEdge()
        partial: dict[int, tuple[Tile, bytes]] = {}
        leaves = islice(self._store.leaves(), size)
        while lines := list(islice(leaves, WIDTH)):
            self._note_places(lines, edge.size)
            bundle = Tile(ENTRIES, edge.size // WIDTH, len(lines))
            yield bundle.path, [pack_bundle(lines)]
            yield from self._payloads(payloads_path(bundle.index), lines)
            for tile, data in edge.append([leaf_hash(line) for line in lines]):
                if tile.width == WIDTH:
                    partial.pop(tile.level, None)
                    yield tile.path, [data]
                else:
                    partial[tile.level] = (tile, data)
        for tile, data in partial.values():
            yield tile.path, [data]

    def _tail(self, covered: int) -> Iterator[Piece]:
        """Give the entries that no head covers; a few, unless nobody signs any more."""
        at = covered
        while lines := list(islice(self._store.leaves(after=at), min(self.size - at, _TAIL_BATCH))):
            self._note_places(lines, at)
            at += len(lines)
        if self._store.read_only:
            # Nobody gives these a place meanwhile.
            self._note_places(list(self._store.waiting()), None)
        if at > covered or self._waits:
            yield TAIL_FILE, self._tail_lines(covered)
            yield from self._payloads(PAYLOADS + TAIL_FILE, self._tail_lines(covered))

    def _tail_lines(self, covered: int) -> Iterator[bytes]:
        yield from islice(self._store.leaves(after=covered), self.size - covered)
        if self._waits:
            yield from self._store.waiting()

    def _note_places(self, lines: list[bytes], first: int | None) -> None:
        """Remember where the entries of each session are."""
        self._waits = self._waits or (first is None and bool(lines))
        for at, line in enumerate(lines):
            place = _NOWHERE if first is None else first + at
            self._places.setdefault(session_of(line), array("q")).append(place)

    def _payloads(self, path: str, lines: Iterable[bytes]) -> Iterator[Piece]:
        if self._include_payloads:
            found = [line for line in map(self._payload, lines) if line]
            if found:
                yield path, found

    def _payload(self, line: bytes) -> bytes:
        """Write the payload of an entry as a line; empty if there is none to be had."""
        if b'"payload":' not in line:
            return b""
        try:
            fields = read_fields(line)
        except CheckpointError:
            # A damaged line is exported as it is: it is evidence. What it refers to is unknown.
            return b""
        if "payload" not in fields.get("data", {}):
            return b""
        stored = self._store.payload(fields["session"], fields["seq"])
        if stored is None:
            self.absent += 1
            return b""
        return payload_line(fields["session"], fields["seq"], stored)

    def _session_lines(self, session_id: str, places: array[int]) -> Iterator[Piece]:
        where = f"sessions/{folder_name(session_id)}"
        yield f"{where}/{TRAIL_FILE}", islice(self._store.trail(session_id), len(places))
        roots = list(self._roots(places))
        if roots:
            yield f"{where}/merkle_roots.json", [write_roots(roots)]

    def _roots(self, places: array[int]) -> Iterator[dict[str, Any]]:
        """List the heads that cover more of a session than the one before."""
        before = 0
        for root in self._listed:
            size = root.get("size")
            covered = bisect_left(places, size) if isinstance(size, int) else 0
            if covered > before:
                yield {**root, "entries": covered}
                before = covered

    def _proofs(self, places: array[int]) -> Iterator[tuple[int, bytes]]:
        size = self.signed_size
        hashes = LogTiles(self._store).hashes(size)
        for seq, place in enumerate(places, 1):
            if place < size:
                yield seq, TlogProof(place, inclusion_proof(place, size, hashes), self.checkpoint).encode()


def payload_line(session_id: str, seq: int, stored: bytes) -> bytes:
    """Write a payload as a line of an export: its exact bytes as text or, if they are none, in base64."""
    fields: dict[str, Any] = {"session": session_id, "seq": seq}
    try:
        fields["text"] = stored.decode()
    except UnicodeDecodeError:
        fields["base64"] = to_base64(stored)
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def payloads_path(bundle: int) -> str:
    """Name the file of the payloads of one bundle of entries."""
    return f"{PAYLOADS}{Tile(0, bundle).path[7:]}.jsonl"


def large_payload_path(session_id: str, seq: int) -> str:
    """Name the file of a payload that lies by itself in an imported trail: large ones do."""
    return f"{PAYLOADS}large/{hashlib.sha256(f'{seq} {session_id}'.encode()).hexdigest()[:32]}.jsonl"


def _size_of(checkpoint: bytes) -> int:
    try:
        return parse_head(parse_note(checkpoint).text).size
    except CheckpointError:
        return 0
