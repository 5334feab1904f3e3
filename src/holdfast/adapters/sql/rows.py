"""Rows as entries and back. What a database answers is checked before it is believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from holdfast.adapters.sql import cutting
from holdfast.adapters.sql.database import Row
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.ids import GENESIS
from holdfast.domain.json_reading import read_json
from holdfast.domain.record import Entry, Head, KeyframeEntry, Lease

_HINT = "Run `holdfast doctor`."

#: Sorts after every text that begins like the one it is appended to, where text is compared by its bytes.
LAST_CHARACTER = "\U0010ffff"

#: Columns of `checkpoints` that make an entry, in the order of its fields (`grp` is its `group`).
ENTRY_NAMES = (
    "sequence",
    "uuid",
    "timestamp",
    "type",
    "checksum",
    "parent",
    "grp",
    "length",
    "state_bytes",
    "status",
    "stage",
    "agent",
    "session",
    "phase",
    "label",
    "blobs",
    "event_seq",
    "schema",
    "retry_count",
    "pinned",
    "pruned",
)
ENTRY_COLUMNS = ", ".join(ENTRY_NAMES)
KEYFRAME_NAMES = ("sequence", "sha256", "length", "suffix", "blobs")
KEYFRAME_COLUMNS = ", ".join(KEYFRAME_NAMES)

_TEXT, _WHOLE, _FLAG = (str,), (int,), (int, bool)
_MAYBE_TEXT, _MAYBE_WHOLE = (str, type(None)), (int, type(None))

#: What each column of an entry may hold.
_ENTRY_KINDS = (
    *(_WHOLE, _TEXT, _TEXT, _TEXT, _TEXT, _WHOLE, _WHOLE, _WHOLE, _WHOLE, _TEXT),
    *(_MAYBE_TEXT, _MAYBE_TEXT, _MAYBE_TEXT, _MAYBE_WHOLE, _MAYBE_TEXT),
    *(_TEXT, _WHOLE, _TEXT, _WHOLE, _FLAG, _FLAG),
)
_KEYFRAME_KINDS = (_WHOLE, _TEXT, _WHOLE, _TEXT, _TEXT)
_HEAD_KINDS = (_MAYBE_WHOLE, _MAYBE_TEXT, _MAYBE_WHOLE, _MAYBE_TEXT)
_TRAIL_HEAD_KINDS = (_WHOLE, _TEXT, _TEXT, _TEXT)
_LEASE_KINDS = (_TEXT, _TEXT, _WHOLE, _TEXT)

_BLOBS = ENTRY_NAMES.index("blobs")
_PINNED = ENTRY_NAMES.index("pinned")


def entry_row(entry: Entry) -> Row:
    """Write an entry as the values of `ENTRY_NAMES`."""
    return (
        entry.sequence,
        entry.uuid,
        entry.timestamp,
        entry.type,
        entry.checksum,
        entry.parent,
        entry.group,
        entry.length,
        entry.state_bytes,
        entry.status,
        entry.stage,
        entry.agent,
        entry.session,
        entry.phase,
        entry.label,
        blobs_text(entry.blobs),
        entry.event_seq,
        entry.schema,
        entry.retry_count,
        entry.pinned,
        entry.pruned,
    )


def read_entry(row: Row, place: str) -> Entry:
    """Read the columns `ENTRY_COLUMNS`."""
    _expect(row, _ENTRY_KINDS, place)
    values: list[Any] = list(row)
    values[_BLOBS] = read_blobs(row[_BLOBS], place)
    # SQLite has numbers for truth values.
    values[_PINNED:] = map(bool, row[_PINNED:])
    return Entry(*values)


def read_record(row: Row, workflow_id: str) -> bytes:
    """Read the columns `cutting.RECORD_NAMES` as the record that was committed."""
    place = f"{workflow_id}@{row[0]}"
    data = read_bytes(row[-1], place)
    read_whole(row[-2], place)
    return cutting.whole_record(workflow_id, row, data)


def keyframe_row(entry: KeyframeEntry) -> Row:
    """Write a keyframe's entry as the values of `KEYFRAME_NAMES`."""
    return (entry.sequence, entry.sha256, entry.length, entry.suffix, blobs_text(entry.blobs))


def read_keyframe_entry(row: Row, place: str) -> KeyframeEntry:
    """Read the columns `KEYFRAME_COLUMNS`."""
    _expect(row, _KEYFRAME_KINDS, place)
    sequence, sha256, length, suffix, blobs = row
    return KeyframeEntry(sequence, sha256, length, suffix, read_blobs(blobs, place))


def read_head(row: Row, place: str) -> Head:
    """Read sequence, checksum, event sequence and event hash, each NULL where there is none."""
    _expect(row, _HEAD_KINDS, place)
    sequence, checksum, event_seq, event_hash = row
    return Head(sequence or 0, checksum or GENESIS, event_seq or 0, event_hash or GENESIS)


def read_trail_head(row: Row, session_id: str) -> TrailHead:
    """Read sequence, hash, timestamp and type of a session's last entry."""
    _expect(row, _TRAIL_HEAD_KINDS, f"the trail of session {session_id}")
    seq, digest, timestamp, kind = row
    return TrailHead(session_id, seq, digest, timestamp, kind == AuditType.SESSION_CLOSED)


def read_line(row: Row) -> bytes:
    """Read the columns `cutting.LINE_NAMES` as the line of the entry that was committed."""
    line = read_bytes(row[-1], f"audit entry {row[1]} of session {row[0]}")
    return cutting.whole_line(row, line)


def read_lease(row: Row, place: str) -> Lease:
    """Read workflow id, owner, token and the moment of expiry; whether it is live is not told by them."""
    _expect(row, _LEASE_KINDS, place)
    return Lease(*row)


def read_bytes(value: Any, place: str) -> bytes:
    """Read bytes, which a driver may wrap."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(place)
    return bytes(value)


def read_whole(value: Any, place: str) -> int:
    """Read a whole number."""
    if not isinstance(value, int):
        raise _wrong(place)
    return value


def read_text(value: Any, place: str) -> str:
    """Read text."""
    if not isinstance(value, str):
        raise _wrong(place)
    return value


def verified(value: Any, sha256: str, place: str) -> bytes:
    """Read bytes that must have the SHA-256 they were committed with."""
    data = read_bytes(value, place)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ChecksumMismatchError("the bytes are not what was committed", place=place, hint=_HINT)
    return data


def blobs_text(blobs: Sequence[str]) -> str:
    """Write names of blobs as a JSON array."""
    return json.dumps(list(blobs), separators=(",", ":")) if blobs else "[]"


def read_blobs(text: str, place: str) -> tuple[str, ...]:
    """Read names of blobs."""
    if text == "[]":
        return ()
    try:
        names = read_json(text)
    except ValueError:
        raise _wrong(place) from None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(place)
    return tuple(names)


def _expect(row: Row, kinds: tuple[tuple[type, ...], ...], place: str) -> None:
    if not all(map(isinstance, row, kinds)):
        raise _wrong(place)


def _wrong(place: str) -> CheckpointCorruptError:
    return CheckpointCorruptError("a row does not hold what Holdfast writes", place=place, hint=_HINT)


def no_checkpoint(workflow_id: str, sequence: int, what: str = "checkpoint") -> CheckpointNotFoundError:
    """Say that something of a workflow is not stored."""
    return CheckpointNotFoundError(
        f"there is no such {what}", place=f"{workflow_id}@{sequence}", hint="It may have been pruned."
    )


def no_blob(sha256: str) -> CheckpointNotFoundError:
    """Say that a blob which something refers to is not stored."""
    return CheckpointNotFoundError(
        "a blob that is referred to is gone", place=sha256, hint="Commit it with its bytes."
    )
