"""Reports on a trail as files: JSON Lines, CSV, and a bundle with a signed statement of what is in it.

A report is a reading of the trail, made for people and their tools. The trail itself stays the evidence: a
bundle carries it along, and the statement says which report was made from which log.
"""

from __future__ import annotations

import csv
import hashlib
import io
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from holdfast.application.audit.audit_event import PayloadState
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.base64_text import to_base64
from holdfast.domain.errors import (
    CheckpointError,
    ChecksumMismatchError,
    InvalidStateError,
    KeyDestroyedError,
    SealBrokenError,
)
from holdfast.domain.log_check import LogReport
from holdfast.domain.note import Note, VerifierKey, Verify, open_note, sign_text
from holdfast.domain.payload import decode_payload
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import decode_entry
from holdfast.domain.trail_check import PayloadReader
from holdfast.ports import Signer

#: Opens the payload of an entry from its stored bytes.
PayloadOpener = Callable[[AuditEntry, bytes], Mapping[str, Any]]

COLUMNS = (
    "session",
    "seq",
    "id",
    "ts",
    "clock",
    "type",
    "outcome",
    "workflow",
    "agent",
    "actor",
    "correlation",
    "description",
    "rationale",
    "alternatives",
    "confidence",
    "facts",
    "payload",
    "prev_hash",
    "hash",
)
LISTING = "SHA256SUMS"
STATEMENT = "statement.note"

_STATEMENT_HEADER = "holdfast-audit-report/v1"
#: What a spreadsheet takes for the start of a formula, or drops to find one behind it.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
#: The oldest moment that a zip file can tell; equal contents give equal bytes.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_PLAIN_FILE = 0o100644


@dataclass(frozen=True, slots=True)
class Reported:
    """An entry with its payload, as far as that can be shown."""

    entry: AuditEntry
    payload: Mapping[str, Any] | None = None
    state: PayloadState = PayloadState.NONE

    @property
    def reference(self) -> str:
        """The short name of the entry: session and number."""
        return f"{self.entry.session_id}#{self.entry.seq}"


def open_plain(entry: AuditEntry, stored: bytes) -> Mapping[str, Any]:
    """Open a payload that is not encrypted."""
    return decode_payload(stored, entry.payload)


def read_reported(
    lines: Iterable[bytes], read_payload: PayloadReader, open_payload: PayloadOpener = open_plain
) -> Iterator[Reported]:
    """Read entries with their payloads, in the order of their lines.

    Raises:
        ChecksumMismatchError, CheckpointCorruptError: if a line is no entry. A payload that is wrong is no
            reason to stop: it is shown as damaged.
    """
    for line in lines:
        entry = decode_entry(line, None)
        yield reported(entry, read_payload, open_payload)


def reported(
    entry: AuditEntry, read_payload: PayloadReader, open_payload: PayloadOpener = open_plain
) -> Reported:
    """Put an entry together with its payload."""
    if not entry.payload:
        return Reported(entry)
    stored = read_payload(entry.session_id, entry.seq)
    if stored is None:
        return Reported(entry, None, PayloadState.ERASED)
    try:
        return Reported(entry, open_payload(entry, stored), PayloadState.OPENED)
    except KeyDestroyedError:
        # Its bytes are there, and nobody can ever read them again.
        return Reported(entry, None, PayloadState.ERASED)
    except (ChecksumMismatchError, SealBrokenError):
        return Reported(entry, None, PayloadState.DAMAGED)
    except CheckpointError:
        return Reported(entry, None, PayloadState.SEALED)


def entry_fields(entry: AuditEntry) -> dict[str, Any]:
    """Give the fields of an entry as its line has them, in their order."""
    data = {**entry.facts, **({"payload": entry.payload} if entry.payload else {})}
    fields = {
        "id": entry.id,
        "seq": entry.seq,
        "ts": timestamp_text(entry.timestamp),
        "clock": None if entry.clock is None else timestamp_text(entry.clock),
        "type": str(entry.type),
        "session": entry.session_id,
        "workflow": entry.workflow_id,
        "agent": entry.agent,
        "actor": entry.actor,
        "outcome": str(entry.outcome),
        "correlation": entry.correlation_id,
        "prev_hash": entry.prev_hash,
        "hash": entry.hash,
        "data": data or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def to_jsonl(entries: Iterable[Reported]) -> Iterator[bytes]:
    """Write entries as JSON Lines: the fields of the line, then the payload, or what became of it."""
    for told in entries:
        fields = entry_fields(told.entry)
        if told.state is PayloadState.OPENED:
            fields["payload"] = dict(told.payload or {})
        elif told.state is not PayloadState.NONE:
            fields["payload"] = str(told.state)
        yield plainjson.dumps(fields) + b"\n"


def to_csv(entries: Iterable[Reported]) -> Iterator[bytes]:
    """Write entries as CSV (RFC 4180, UTF-8), with a header, and nothing in it that a spreadsheet runs."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for told in entries:
        writer.writerow([safe_cell(cell) for cell in _cells(told)])
        yield _drained(buffer)
    if buffer.tell():
        yield _drained(buffer)


def _cells(told: Reported) -> Iterator[str]:
    fields = entry_fields(told.entry)
    payload = told.payload or {}
    facts = {name: value for name, value in fields.get("data", {}).items() if name != "payload"}
    whole = _json(payload) if told.state is PayloadState.OPENED else str(told.state).replace("none", "")
    worked_out = {"facts": _json(facts) if facts else "", "payload": whole}
    for column in COLUMNS:
        if column in worked_out:
            yield worked_out[column]
        else:
            yield as_text(fields.get(column, payload.get(column, "")))


def safe_cell(text: str) -> str:
    """Put a quote before what a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def as_text(value: Any) -> str:
    """Write any value of a payload as text: lists one after the other, all else that is nested as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "; ".join(value)
    return _json(value)


def _json(value: Any) -> str:
    return plainjson.dumps(dict(value) if isinstance(value, Mapping) else value).decode()


def _drained(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode()
    buffer.seek(0)
    buffer.truncate()
    return data


@dataclass(frozen=True, slots=True)
class Statement:
    """What the keeper of a log says about a report: over what it was made, and which files it has.

    Attributes:
        origin: name of the log.
        scope: what the report is about: `session s-1`, `controls`.
        size: size of the tree when it was made.
        listing: SHA-256 of the listing of its files, in hex.
    """

    origin: str
    scope: str
    size: int
    listing: str

    def text(self) -> str:
        """Write the text that is signed.

        The key of a log signs tree heads, too. A head has a number in its second line, so that nobody can
        ever take this for one, nor the other way round.

        Raises:
            InvalidStateError: if origin or scope are not one line of printable text.
        """
        if not all(part and part.isprintable() for part in (self.origin, self.scope)):
            raise InvalidStateError("the scope of a report is one line of text", place=ascii(self.scope)[:80])
        return (
            f"{_STATEMENT_HEADER}\nlog {self.origin}\nabout {self.scope}\ntree {self.size}\n"
            f"listing sha256:{self.listing} {LISTING}\n"
        )


def sign_statement(statement: Statement, signer: Signer) -> bytes:
    """Sign a statement as a note."""
    text = statement.text()
    return Note(text, (sign_text(text, signer.key, signer.sign),)).encode()


def check_statement(data: bytes, listing: bytes, keys: Iterable[VerifierKey], verify: Verify) -> str:
    """Check that a known key signed a statement and that it is about this listing; answer its text.

    Raises:
        CheckpointCorruptError: if it is no note.
        ChecksumMismatchError: if nobody known signed it, or it is about another listing.
    """
    note, _ = open_note(data, keys, verify)
    lines = note.text.splitlines()
    said = f"listing sha256:{hashlib.sha256(listing).hexdigest()} {LISTING}"
    if lines[0] != _STATEMENT_HEADER or lines[-1] != said:
        raise ChecksumMismatchError("the statement is about other files", place=STATEMENT)
    return note.text


def listing_of(digests: Mapping[str, str]) -> bytes:
    """Write a listing that `sha256sum -c` reads.

    Raises:
        InvalidStateError: if a name would not come back as it was.
    """
    for name in digests:
        if not name or not name.isprintable() or "\\" in name or name.startswith("/") or ".." in name:
            raise InvalidStateError("this cannot be the name of a file of a report", place=ascii(name)[:80])
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def folder_files(folder: Path, prefix: str) -> dict[str, Path]:
    """Name the files below a folder as a bundle has them: below a prefix, with slashes."""
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {prefix + path.relative_to(folder).as_posix(): path for path in found}


def write_bundle(
    target: IO[bytes], files: Mapping[str, bytes | Path], about: tuple[str, str, int], signer: Signer | None
) -> bytes:
    """Write files, their listing and the statement into one zip file; answer the listing.

    Equal files give equal bytes.

    Args:
        target: where to; a file opened for writing bytes.
        files: what, by name: bytes, or where to read them.
        about: origin of the log, what the report is about, and the size of the tree.
        signer: signs the statement; None leaves it out.
    """
    digests: dict[str, str] = {}
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            digests[name] = _add(archive, name, files[name])
        listing = listing_of(digests)
        _add(archive, LISTING, listing)
        if signer is not None:
            origin, scope, size = about
            statement = Statement(origin, scope, size, hashlib.sha256(listing).hexdigest())
            _add(archive, STATEMENT, sign_statement(statement, signer))
            _add(archive, "statement.vkey", f"{signer.key}\n".encode())
    return listing


def _add(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> str:
    """Add one file; answer its SHA-256."""
    info = zipfile.ZipInfo(name, _ZIP_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system, info.external_attr = _UNIX, _PLAIN_FILE << 16
    with content.open("rb") if isinstance(content, Path) else io.BytesIO(content) as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
        source.seek(0)
        with archive.open(info, "w", force_zip64=True) as entry:
            shutil.copyfileobj(source, entry)
    return digest


def report_fields(report: LogReport) -> dict[str, Any]:
    """Write what a verification found as a plain tree."""
    return {
        "verdict": str(report.verdict()),
        "level": report.level.label,
        "log": report.head.origin or None,
        "size": report.head.size,
        "root": to_base64(report.head.root),
        "entries": report.entries,
        "sessions": report.sessions,
        "open_sessions": report.open_sessions,
        "signed_size": report.signed_size,
        "pinned_size": report.pinned_size,
        "witnessed_size": report.witnessed_size,
        "waiting": report.waiting,
        "tail": report.tail,
        "tail_since": report.tail_since or None,
        "heads": report.heads,
        "tiles": report.tiles,
        "missing_tiles": report.missing_tiles,
        "clock_steps": report.clock_steps,
        "payloads": report.payloads,
        "erased": report.erased,
        "fault_count": report.fault_count,
        "faults": [
            {"kind": str(fault.kind), "problem": fault.problem, "place": fault.place, "leaf": fault.index}
            for fault in report.faults
        ],
    }
