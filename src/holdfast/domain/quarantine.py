"""Evidence of damage: what was found wrong, when, and which bytes it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, ChecksumMismatchError
from holdfast.domain.quarantine_marks import FOLDER, HASH_CHARS, workflow_prefix

#: A store takes small files only.
PIECE_BYTES = 256 * 1024
#: Where a report calls a field differently.
_KEYS = {"size_bytes": "bytes"}


class Kind(StrEnum):
    """What was set aside."""

    CHECKPOINT = "checkpoint"
    #: A shortcut to a checkpoint that other pieces still lead to.
    KEYFRAME = "keyframe"
    #: What a checkpoint can do without: a whole keyframe gives its state.
    PIECE = "piece"
    #: A file that the store keeps for itself.
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Part:
    """One stored piece as it was found. What is whole is named by its sum and not copied."""

    name: str
    size_bytes: int
    sha256: str
    is_copied: bool = True


@dataclass(frozen=True, slots=True)
class Release:
    """That somebody let it be used again, or put something sound in its place."""

    at: str
    by: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One report.

    Attributes:
        name: what it goes by.
        place: what was damaged, for people: `WF-1@42`, a path.
        sha256: of all copied bytes, one part after the other.
        checksum: what the checkpoint's committed checksum is.
        files: where the bytes are kept, in order.
        released: None while it stands.
    """

    name: str
    place: str
    reason: str
    sha256: str
    size_bytes: int
    found_at: str
    kind: Kind = Kind.FILE
    workflow_id: str | None = None
    sequence: int | None = None
    checksum: str | None = None
    found_by: str | None = None
    parts: tuple[Part, ...] = ()
    files: tuple[str, ...] = ()
    released: Release | None = None

    @property
    def report(self) -> str:
        """Name of the file that holds the report."""
        return f"{FOLDER}{self.name}.json"

    @property
    def bars(self) -> bool:
        """True while it keeps a checkpoint from being used."""
        return self.kind is Kind.CHECKPOINT and self.released is None

    def cut(self, data: bytes) -> dict[str, bytes]:
        """Answer the copied parts by their names.

        Raises:
            ChecksumMismatchError: the bytes are not those that were set aside.
        """
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise ChecksumMismatchError("the evidence itself was changed", place=self.report)
        found, at = dict[str, bytes](), 0
        for part in self.parts:
            if part.is_copied:
                found[part.name] = data[at : at + part.size_bytes]
                at += part.size_bytes
        return found if self.parts else {"data": data}


def evidence_name(workflow_id: str, sequence: int, kind: Kind, sha256: str) -> str:
    """Name what is set aside of a checkpoint by what it is."""
    word = "" if kind is Kind.CHECKPOINT else f"{kind}-"
    return f"{workflow_prefix(workflow_id)}{sequence:06d}-{word}{sha256[:HASH_CHARS]}"


def in_pieces(name: str, data: bytes) -> dict[str, bytes]:
    """Cut evidence into files that a store takes, by their names and in order."""
    if len(data) <= PIECE_BYTES:
        return {f"{FOLDER}{name}.bin": data} if data else {}
    starts = range(0, len(data), PIECE_BYTES)
    return {f"{FOLDER}{name}.{n:04d}.bin": data[at : at + PIECE_BYTES] for n, at in enumerate(starts)}


def parts_of(pieces: Iterable[tuple[str, bytes]], sound: Sequence[str]) -> tuple[tuple[Part, ...], bytes]:
    """Describe pieces, and answer the bytes of those that are not known to be sound."""
    parts, copied = list[Part](), list[bytes]()
    for name, data in pieces:
        parts.append(Part(name, len(data), hashlib.sha256(data).hexdigest(), name not in sound))
        if name not in sound:
            copied.append(data)
    return tuple(parts), b"".join(copied)


def encode_report(quarantined: Quarantined) -> bytes:
    """Write a report as a person reads it."""
    fields = asdict(quarantined)
    del fields["name"]
    given = {_KEYS.get(name, name): value for name, value in fields.items() if value is not None}
    given["parts"] = [
        {_KEYS.get(name, name): value for name, value in part.items()} for part in fields["parts"]
    ]
    return json.dumps(given, indent=2, ensure_ascii=False).encode() + b"\n"


def decode_report(name: str, data: bytes) -> Quarantined:
    """Read a report.

    Raises:
        CheckpointCorruptError: it is none.
    """
    try:
        known = _known(Quarantined, plainjson.loads(data, strict=True))
        released = known.pop("released", None)
        read = Quarantined(name, **known)
        if not all(file.startswith(f"{FOLDER}{name}.") for file in read.files):
            raise ValueError("the report claims files that are not its own")
        return replace(
            read,
            kind=Kind(read.kind),
            parts=tuple(Part(**_known(Part, part)) for part in known.get("parts", ())),
            files=tuple(read.files),
            released=Release(**released) if released else None,
        )
    except (CheckpointError, ValueError, TypeError, AttributeError, RecursionError):
        raise CheckpointCorruptError(
            "the report on something set aside cannot be read",
            place=f"{FOLDER}{name}.json",
            hint="Its bytes lie beside it; drop it once nobody needs them.",
        ) from None


def _called(fields: dict[str, Any]) -> dict[str, Any]:
    """Answer the fields that are given, as a report calls them."""
    return {_KEYS.get(name, name): value for name, value in fields.items() if value is not None}


def _known(kind: type[Quarantined | Part], fields: dict[str, Any]) -> dict[str, Any]:
    """Answer the fields of a report that are known here, as they are called here."""
    names = {_KEYS.get(field, field): field for field in kind.__dataclass_fields__}
    return {names[key]: value for key, value in fields.items() if key in names}
