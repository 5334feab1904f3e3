"""Reading an export back, with no store: as what is verified, and as what a copy seals."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from holdfast.application.audit.audit_export import (
    PAYLOADS,
    PAYLOADS_FILE,
    PERIOD,
    SUMS_FILE,
    TAIL_FILE,
    TRAIL_FILE,
    large_payload_path,
    payloads_path,
)
from holdfast.application.audit.log_keeping import ROOTS_FILE, read_roots
from holdfast.application.audit.log_source import OnProgress, silently
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError
from holdfast.domain.ids import folder_name
from holdfast.domain.json_reading import read_json
from holdfast.domain.log_check import LogReport, LogSource, Trust, verify_log
from holdfast.domain.note import VerifierKey, parse_note, parse_vkey
from holdfast.domain.session_check import SessionEvidence, verify_evidence
from holdfast.domain.tiles import ENTRIES, WIDTH, Tile, unpack_bundle
from holdfast.domain.trail import session_of
from holdfast.domain.trail_check import FAULTS_MAX, Fault, Kind
from holdfast.domain.treehead import parse_head

_CHUNK_BYTES = 1 << 20
#: More than any file that is read at once may have: a bundle of 256 entries of 64 KB each.
_FILE_BYTES_MAX = WIDTH * (1 << 16) + (1 << 10)
_PROGRESS_STEP = 4096
_ROOTS_NAME = PurePosixPath(ROOTS_FILE).name


@dataclass(frozen=True, slots=True)
class _Stored:
    session_id: str
    seq: int
    stored: bytes


class ExportSource:
    """An export in a folder. Nothing in it is believed before it was verified."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / SUMS_FILE).is_file():
            raise CheckpointNotFoundError(
                "this folder holds no export, or one that was not finished",
                place=str(self.folder),
                hint=f"There should be a file {SUMS_FILE} in it.",
            )

    @property
    def is_whole(self) -> bool:
        """Tell whether this is the whole log, and not one session or a period of it."""
        return (self.folder / "tile").is_dir()

    @property
    def is_period(self) -> bool:
        """Tell whether this holds the entries of a period."""
        return (self.folder / PERIOD).is_dir()

    def checkpoint(self) -> bytes:
        """Give the newest signed head; empty if there is none."""
        return self._read("checkpoint") or b""

    def keys(self) -> tuple[VerifierKey, ...]:
        """Give the public keys that the export names; whoever forged it named his own."""
        lines = (self._read("vkeys") or b"").decode("utf-8", "replace").splitlines()
        return tuple(parse_vkey(line) for line in lines)

    def heads(self) -> Iterator[bytes]:
        """Give all signed heads, the smallest first."""
        for path in sorted(self.folder.glob("heads/*")):
            yield self._read(f"heads/{path.name}") or b""

    def verify(self, trust: Trust, *, payloads: bool = True, on_progress: OnProgress = silently) -> LogReport:
        """Verify everything that is here."""
        if not self.is_whole:
            return verify_evidence(self.evidence(payloads=payloads), trust)
        source = self.source(payloads=payloads, on_progress=on_progress)
        return verify_log(source, trust)

    def source(self, *, payloads: bool = True, on_progress: OnProgress = silently) -> LogSource:
        """Give the whole log as it is verified."""
        size = self._size()
        views = _Views(self.folder)
        reader = _Payloads(self.folder)
        total = max(size, 1)

        def lines() -> Iterator[bytes | None]:
            for number, line in enumerate(self._leaves(size), 1):
                views.take(line)
                if number % WIDTH == 1:
                    reader.load(payloads_path(number // WIDTH))
                if not number % _PROGRESS_STEP:
                    on_progress(min(number, total), total)
                yield line

        def tail() -> Iterator[bytes]:
            reader.load(PAYLOADS + TAIL_FILE)
            for line in self._lines(TAIL_FILE):
                views.take(line)
                yield line

        with_payloads = payloads and reader.is_there
        newest = self.checkpoint()
        heads = list(dict.fromkeys([*self.heads(), *([newest] if newest else [])]))
        return LogSource(
            leaves=lines(),
            waiting=tail(),
            heads=heads,
            read_tile=lambda tile: self._read(tile.path),
            read_payload=reader.read if with_payloads else None,
            tree_size=size,
            faults=_chained(
                views.faults,
                partial(self._root_faults, heads),
                *([reader.faults] if with_payloads else []),
                self.sum_faults,
            ),
        )

    def evidence(self, *, payloads: bool = True) -> SessionEvidence:
        """Give the one session, or the period, as it is verified.

        Raises:
            CheckpointNotFoundError: there is none; this may be something else than an export.
            CheckpointCorruptError: there are several.
        """
        if self.is_period:
            return self._part(PERIOD, None, payloads=payloads)
        folders = [path for path in self.folder.glob("sessions/*") if path.is_dir()]
        if not folders:
            raise CheckpointNotFoundError(
                "this folder holds neither a log nor a session",
                place=str(self.folder),
                hint="Of an evidence pack verify the proofs, one by one: PACK/proofs/N.tlog-proof.",
            )
        if len(folders) != 1:
            raise CheckpointCorruptError(
                f"an export of one session holds {len(folders)}", place=str(self.folder / "sessions")
            )
        where = f"sessions/{folders[0].name}"
        session_id = session_of(next(self._lines(f"{where}/{TRAIL_FILE}"), b""))

        def named() -> Iterator[Fault]:
            if folder_name(session_id) != folders[0].name:
                yield Fault(Kind.FILE, "the folder has the name of another session", ascii(where)[:120])

        return self._part(where, session_id, named, payloads=payloads)

    def _part(
        self,
        where: str,
        session_id: str | None,
        *found: Callable[[], Iterable[Fault]],
        payloads: bool,
    ) -> SessionEvidence:
        """Give the lines of a folder, with what lies beside them."""
        with_payloads = payloads and (self.folder / where / PAYLOADS_FILE).is_file()
        reader = _Payloads(self.folder)
        if with_payloads:
            reader.load(f"{where}/{PAYLOADS_FILE}")
            found = (*found, reader.faults)
        return SessionEvidence(
            session_id,
            self._lines(f"{where}/{TRAIL_FILE}"),
            self.checkpoint(),
            self._proofs(where),
            reader.read if with_payloads else None,
            _chained(*found, self.sum_faults),
        )

    def sum_faults(self) -> Iterator[Fault]:
        """Find files that are not what their sums say, that are missing, or that have none."""
        listed: dict[str, str] = {}
        for line in self._lines(SUMS_FILE):
            digest, _, path = line.decode("utf-8", "replace").rstrip("\n").partition("  ")
            listed[path] = digest
        there = {path.relative_to(self.folder).as_posix(): path for path in _files(self.folder)}
        there.pop(SUMS_FILE, None)
        for name in sorted(listed.keys() - there.keys()):
            yield Fault(Kind.FILE, "a file of the export is not there", ascii(name)[:120])
        for name in sorted(there):
            if name not in listed:
                yield Fault(Kind.FILE, "a file does not belong to the export", ascii(name)[:120])
            elif _sum_of(there[name]) != listed[name]:
                yield Fault(Kind.FILE, "a file is not what its sum says", ascii(name)[:120])

    def _root_faults(self, heads: list[bytes]) -> Iterator[Fault]:
        """Find lists of heads that name one which is not among them."""
        known = set(_sizes_and_roots(heads))
        for path in sorted(self.folder.rglob(_ROOTS_NAME)):
            name = path.relative_to(self.folder).as_posix()
            rows = read_roots(self._read(name))
            if (known and not rows) or any((row.get("size"), row.get("root")) not in known for row in rows):
                yield Fault(Kind.FILE, "a list of heads names one that was not signed", ascii(name)[:120])

    def _size(self) -> int:
        """Tell how many entries the bundles should hold: as the head says or, without one, all there are."""
        try:
            return parse_head(parse_note(self.checkpoint()).text).size
        except CheckpointError:
            return sum(_count(path) for path in _files(self.folder / "tile" / "entries"))

    def _leaves(self, size: int) -> Iterator[bytes]:
        for index in range((size + WIDTH - 1) // WIDTH):
            data = self._read(Tile(ENTRIES, index, min(WIDTH, size - index * WIDTH)).path)
            if data is None:
                # What is after a gap has another place than it claims: the walk ends, and the head tells.
                return
            try:
                yield from unpack_bundle(data)
            except CheckpointError:
                return

    def _lines(self, path: str) -> Iterator[bytes]:
        place = self.folder / path
        if place.is_file():
            with place.open("rb") as file:
                while line := file.readline(_FILE_BYTES_MAX):
                    yield line

    def _proofs(self, where: str) -> Iterator[bytes | None]:
        seq = 1
        while True:
            yield self._read(f"{where}/proofs/{seq:08d}.tlog-proof")
            seq += 1

    def _read(self, path: str) -> bytes | None:
        place = self.folder / path
        if not place.is_file():
            return None
        with place.open("rb") as file:
            return file.read(_FILE_BYTES_MAX)


class _Views:
    """Compares the files of sessions with the entries, by a running sum for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "sessions"
        self._sums: dict[str, Any] = {}

    def take(self, line: bytes) -> None:
        session_id = session_of(line)
        found = self._sums.get(session_id)
        if found is None:
            found = self._sums[session_id] = hashlib.sha256()
        found.update(line)

    def faults(self) -> Iterator[Fault]:
        """Find sessions whose file does not hold exactly their entries; none at all is fine."""
        if not self._folder.is_dir():
            return
        for session_id, found in self._sums.items():
            name = folder_name(session_id)
            path = self._folder / name / TRAIL_FILE
            if not path.is_file() or _sum_of(path) != found.hexdigest():
                problem = "the file of a session does not hold its entries"
                yield Fault(Kind.FILE, problem, f"sessions/{name}/{TRAIL_FILE}", None, session_id)
        known = {folder_name(session_id) for session_id in self._sums}
        for path in sorted(self._folder.iterdir()):
            if path.name not in known:
                yield Fault(Kind.FILE, "the log has no such session", f"sessions/{ascii(path.name)[:80]}")


class _Payloads:
    """Reads payloads file by file, as the log is walked through; those of no entry are told at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, int], bytes] = {}
        self._looked_at: set[str] = set()
        #: The first of those that belong to no entry, and where they are.
        self._strange: list[Fault] = []
        self._path = ""

    @property
    def is_there(self) -> bool:
        return (self._folder / PAYLOADS).is_dir()

    def load(self, path: str) -> None:
        """Take up the payloads of the entries that come next, and let go of those before."""
        self._let_go()
        self._path = path
        for one in self._lines(path):
            if self._kept.setdefault((one.session_id, one.seq), one.stored) is not one.stored:
                self._tell("an entry has two payloads", path)

    def read(self, session_id: str, seq: int) -> bytes | None:
        """Give a payload; None if it was erased."""
        kept = self._kept.pop((session_id, seq), None)
        if kept is not None:
            return kept
        path = large_payload_path(session_id, seq)
        found = None
        for one in self._lines(path):
            if found is None and (one.session_id, one.seq) == (session_id, seq):
                found = one.stored
            else:
                self._tell("a payload belongs to no entry", path)
        return found

    def faults(self) -> Iterator[Fault]:
        """Find what was not asked for."""
        self._let_go()
        for path in sorted(_files(self._folder / PAYLOADS)):
            name = path.relative_to(self._folder).as_posix()
            if name not in self._looked_at:
                self._tell("its payloads belong to no entry", name)
        yield from self._strange

    def _let_go(self) -> None:
        if self._kept:
            self._tell("a payload belongs to no entry", self._path)
            self._kept = {}

    def _lines(self, path: str) -> Iterator[_Stored]:
        self._looked_at.add(path)
        for one in _payload_lines(self._folder / path):
            if one is None:
                self._tell("a line is no payload", path)
            else:
                yield one

    def _tell(self, problem: str, path: str) -> None:
        if len(self._strange) < FAULTS_MAX:
            self._strange.append(Fault(Kind.FILE, problem, ascii(path)[:120]))


def _payload_lines(path: Path) -> Iterator[_Stored | None]:
    """Read payloads, None for a line that is none."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                fields = read_json(line)
                text = fields.get("text")
                stored = (
                    text.encode() if isinstance(text, str) else b64decode(fields["base64"], validate=True)
                )
                yield _Stored(str(fields["session"]), int(fields["seq"]), stored)
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
                yield None


def _sizes_and_roots(heads: Iterable[bytes]) -> Iterator[tuple[Any, Any]]:
    for data in heads:
        with suppress(CheckpointError):
            head = parse_head(parse_note(data).text)
            yield head.size, f"sha256:{head.root.hex()}"


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def _sum_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _count(path: Path) -> int:
    try:
        return sum(1 for _ in unpack_bundle(path.read_bytes()))
    except CheckpointError:
        return 0


def _chained(*sources: Callable[[], Iterable[Fault]]) -> Iterator[Fault]:
    for source in sources:
        yield from source()
