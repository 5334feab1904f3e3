"""Checkpoint records as bytes: built, and opened again only if they are what was committed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from holdfast.domain import plainjson
from holdfast.domain.delta import Operation
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError
from holdfast.domain.value import value
from holdfast.ports import Formats

#: Encoded operations above this leave the record for a blob, so that records stay small.
INLINE_BYTES_MAX = 1024 * 1024

#: From 2,048 bytes on hashlib lets go of the interpreter lock, and beside a busy thread getting it back
#: takes a switch interval. Large data is worth that: hashing it takes longer than the interval.
_PIECE_BYTES = 2047
_WORTH_LETTING_GO_BYTES = 256 * 1024

_BEFORE_OPS = b',"ops":'
_BEFORE_CHECKSUM = b',"checksum":"'
_AFTER_CHECKSUM = b'"}\n'
_CHECKSUM_BYTES = len("sha256:") + 64
_TAIL_BYTES = _CHECKSUM_BYTES + len(_AFTER_CHECKSUM)
_DOCTOR = "Run `holdfast doctor` to see what can be recovered."


@value
class Body:
    """The encoded change of a record: a last field, and what follows the line or lies in a blob."""

    last_field: bytes
    #: Size of the encoded change before compression.
    raw_bytes: int = 0
    payload: bytes = b""
    blobs: dict[str, bytes] = field(default_factory=dict)


class Opened(NamedTuple):
    """A record that verified: its line, its payload without the newline, and its checksum."""

    line: bytes
    payload: bytes
    checksum: str


def sha256_of(*parts: bytes) -> str:
    """Hash bytes to hex digits, small ones without letting go of the interpreter lock."""
    digest = hashlib.sha256()
    for part in parts:
        if _PIECE_BYTES < len(part) < _WORTH_LETTING_GO_BYTES:
            view = memoryview(part)
            for at in range(0, len(part), _PIECE_BYTES):
                digest.update(view[at : at + _PIECE_BYTES])
        else:
            digest.update(part)
    return digest.hexdigest()


def change_body(ops: Sequence[Operation], formats: Formats) -> Body:
    """Encode operations: inline as readable JSON where possible."""
    encoded = formats.encode(ops)
    is_json = encoded.encoding == "json" and encoded.compression == "none"
    if is_json and len(encoded.data) <= INLINE_BYTES_MAX:
        return Body(_BEFORE_OPS + encoded.data, encoded.raw_bytes)
    about = {
        "encoding": encoded.encoding,
        "compression": encoded.compression,
        "len": len(encoded.data),
        "raw": encoded.raw_bytes,
    }
    if len(encoded.data) <= INLINE_BYTES_MAX:
        return Body(b',"payload":' + plainjson.dumps(about), encoded.raw_bytes, encoded.data + b"\n")
    sha256 = sha256_of(encoded.data)
    last_field = b',"payload":' + plainjson.dumps({**about, "blob": sha256})
    return Body(last_field, encoded.raw_bytes, blobs={sha256: encoded.data})


def full_body(keyframe_sha256: str) -> Body:
    """Refer to the keyframe of the same sequence for the whole state."""
    return Body(f',"full":"sha256:{keyframe_sha256}"'.encode())


def build(fields: Mapping[str, Any], body: Body, parent_checksum: str) -> tuple[bytes, str]:
    """Write a record; answer its bytes and its checksum. Fields that are None are left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    start = plainjson.dumps(given)[:-1] + body.last_field + _BEFORE_CHECKSUM
    checksum = _checksum(parent_checksum, start, body.payload)
    return b"".join((start, checksum.encode(), _AFTER_CHECKSUM, body.payload)), checksum


def open_record(data: bytes, parent_checksum: str, workflow_id: str, sequence: int) -> Opened:
    """Take a record apart after checking that it is the one committed on top of its parent.

    Raises:
        ChecksumMismatchError: if it is not.
    """
    end = data.find(b"\n") + 1
    start, claimed, payload = data[: end - _TAIL_BYTES], data[end - _TAIL_BYTES : end - 3], data[end:]
    if (
        not start.endswith(_BEFORE_CHECKSUM)
        or data[end - 3 : end] != _AFTER_CHECKSUM
        or _checksum(parent_checksum, start, payload) != (checksum := claimed.decode("latin-1"))
    ):
        raise ChecksumMismatchError(
            "the record is not the one that was committed", place=f"{workflow_id}@{sequence}", hint=_DOCTOR
        )
    return Opened(data[:end], payload[:-1], checksum)


def read_fields(opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """Decode the lines of verified records, all in one call of the decoder."""
    fields = plainjson.loads(b"[" + b",".join(record.line for record in opened) + b"]")
    if not all(isinstance(line, dict) for line in fields):
        raise CheckpointCorruptError("a record is not an object", hint=_DOCTOR)
    return list(fields)


def all_operations(
    opened: Sequence[Opened], formats: Formats, load_blob: Callable[[str], bytes]
) -> list[Operation]:
    """Answer the changes of verified records, in order; a record that has its state whole brings none."""
    pieces = [_inline(record.line) for record in opened]
    inline = iter(plainjson.loads(b"[" + b",".join(filter(None, pieces)) + b"]"))
    ops: list[Operation] = []
    for record, piece in zip(opened, pieces, strict=True):
        if piece is not None:
            ops += next(inline)
            continue
        [fields] = read_fields([record])
        if "full" not in fields:
            ops += operations(fields, record.payload, formats, load_blob)
    return ops


def _inline(line: bytes) -> bytes | None:
    """Cut the operations out of a line where that is safe; decoding the rest would cost as much again.

    Of the fields before them only the states of stage and agent can hold a key of the same name.
    """
    at = line.find(_BEFORE_OPS)
    if at < 0 or line.find(b'_state":', 0, at) >= 0:
        return None
    return line[at + len(_BEFORE_OPS) : -_TAIL_BYTES - len(_BEFORE_CHECKSUM)]


def operations(
    fields: Mapping[str, Any], payload: bytes, formats: Formats, load_blob: Callable[[str], bytes]
) -> list[Operation]:
    """Answer the change that a verified record carries."""
    about = fields.get("payload")
    try:
        if about is None:
            ops = fields["ops"]
        else:
            data = load_blob(about["blob"]) if "blob" in about else payload
            ops = formats.decode(about["encoding"], about["compression"], data, about["raw"])
    except (KeyError, TypeError) as fault:
        raise CheckpointCorruptError(f"the record carries no change ({fault!r})", hint=_DOCTOR) from fault
    if not isinstance(ops, list):
        raise CheckpointCorruptError("the record's change is no list of operations", hint=_DOCTOR)
    return ops


def _checksum(parent_checksum: str, start: bytes, payload: bytes) -> str:
    hashed = b"".join((parent_checksum.encode(), b"\n", start, _AFTER_CHECKSUM, payload))
    return "sha256:" + sha256_of(hashed)
