"""Checkpoint records as bytes: built, and opened again only if they are what was committed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from holdfast.application.secrecy.sealing import Sealer, Vault, broken, keyless
from holdfast.domain import plainjson
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.delta import Operation
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, recovery_hint
from holdfast.domain.lift import Seal
from holdfast.domain.placeholders import is_redacted, may_hold, may_show
from holdfast.domain.value import value
from holdfast.ports import Encoded, Formats

#: Encoded operations above this leave the record for a blob, so that records stay small.
INLINE_BYTES_MAX = 1024 * 1024

#: From 2,048 bytes on hashlib lets go of the interpreter lock, and beside a busy thread getting it back
#: takes a switch interval. Large data is worth that: hashing it takes longer than the interval.
_PIECE_BYTES = 2047
_WORTH_LETTING_GO_BYTES = 256 * 1024

_BEFORE_OPS = b',"ops":'
_BEFORE_PAYLOAD = b',"payload":'
#: How a record says so whose change is not in its line.
_REDACTED = b'"redacted":true'
_BEFORE_SCHEMA = b',"schema":"'
_BEFORE_FULL = b',"full":"sha256:'
_BEFORE_CHECKSUM = b',"checksum":"'
_AFTER_CHECKSUM = b'"}\n'
_CHECKSUM_BYTES = len("sha256:") + 64
_TAIL_BYTES = _CHECKSUM_BYTES + len(_AFTER_CHECKSUM)


@value
class Body:
    """The encoded change of a record: a last field, and what follows the line or lies in a blob."""

    last_field: bytes
    payload: bytes = b""
    blobs: dict[str, bytes] = field(default_factory=dict)
    #: The last field says nothing of the state, and is readable in an encrypted store too.
    is_open: bool = False


class Opened(NamedTuple):
    """A record that verified: its line, its payload without the newline, and its checksum."""

    line: bytes
    payload: bytes
    checksum: str


def sha256_of(*parts: bytes) -> str:
    """Hash bytes to hex digits, small ones without letting go of the interpreter lock."""
    if len(parts) == 1 and len(parts[0]) <= _PIECE_BYTES:
        return hashlib.sha256(parts[0]).hexdigest()
    digest = hashlib.sha256()
    for part in parts:
        if _PIECE_BYTES < len(part) < _WORTH_LETTING_GO_BYTES:
            view = memoryview(part)
            for at in range(0, len(part), _PIECE_BYTES):
                digest.update(view[at : at + _PIECE_BYTES])
        else:
            digest.update(part)
    return digest.hexdigest()


def change_body(ops: Sequence[Operation], formats: Formats, seal: Seal | None = None) -> Body:
    """Encode operations: inline as readable JSON where possible. What becomes a blob is sealed first."""
    encoded = formats.encode(ops)
    is_json = encoded.encoding == "json" and encoded.compression == "none"
    if is_json and len(encoded.data) <= INLINE_BYTES_MAX:
        return Body(_BEFORE_OPS + encoded.data)
    about: dict[str, Any] = {
        "encoding": encoded.encoding,
        "compression": encoded.compression,
        "len": len(encoded.data),
        "raw": len(encoded.raw),
    }
    if holds_placeholder(encoded, ops):
        about["redacted"] = True
    if len(encoded.data) <= INLINE_BYTES_MAX:
        return Body(b',"payload":' + plainjson.dumps(about), encoded.data + b"\n")
    stored = encoded.data if seal is None else seal(encoded.data)
    sha256 = sha256_of(stored)
    last_field = b',"payload":' + plainjson.dumps({**about, "blob": sha256})
    return Body(last_field, blobs={sha256: stored})


def holds_placeholder(encoded: Encoded, plain: Any) -> bool:
    """Tell whether a payload may hold a placeholder: from its bytes where they tell, which is quicker."""
    if encoded.encoding == "json":
        return may_hold(encoded.raw)
    return may_show(encoded.raw) and is_redacted(plain)


def full_body(keyframe_sha256: str) -> Body:
    """Refer to the keyframe of the same sequence for the whole state."""
    return Body(_BEFORE_FULL + f'{keyframe_sha256}"'.encode(), is_open=True)


def build(fields: bytes, body: Body, parent_checksum: str) -> tuple[bytes, str]:
    """Write a record; answer its bytes and its checksum.

    Args:
        fields: an object without its closing brace.
    """
    return _summed(fields + body.last_field + _BEFORE_CHECKSUM, body.payload, parent_checksum)


def build_sealed(
    fields: bytes, secret: dict[str, Any], body: Body, parent_checksum: str, sealer: Sealer, sequence: int
) -> tuple[bytes, str]:
    """Write a record whose secret fields and change, a little record of their own, are a sealed payload."""
    heading, hidden = (body.last_field, b"") if body.is_open else (b"", body.last_field)
    inner = plainjson.dumps(secret)[:-1] + hidden if secret else b"{" + hidden[1:]
    inner += b"}\n" + body.payload
    about = {**sealer.about, "len": len(inner) + sealer.overhead_bytes}
    start = b"".join((fields, heading, _BEFORE_PAYLOAD, plainjson.dumps(about), _BEFORE_CHECKSUM))
    return _summed(start, sealer.record(sequence, inner, start) + b"\n", parent_checksum)


def _summed(start: bytes, payload: bytes, parent_checksum: str) -> tuple[bytes, str]:
    checksum = _checksum(parent_checksum, start, payload)
    return b"".join((start, checksum.encode(), _AFTER_CHECKSUM, payload)), checksum


def unsealed(
    opened: Sequence[Opened], vault: Vault | None, workflow_id: str, first: int, parent: str = ""
) -> Sequence[Opened]:
    """Answer verified records as if they had never been sealed.

    A checksum can be made anew by whoever writes to a store; what a record was sealed on top of cannot.

    Args:
        opened: the records.
        vault: the keys; None where nothing is sealed.
        workflow_id: whose they are.
        first: sequence of the first one.
        parent: checksum of the checkpoint before that; empty where it is not known.

    Raises:
        SealBrokenError: one was not sealed for its place, or not at all.
        KeyDestroyedError: one was erased.
        KeyUnavailableError: the keys are not at hand.
    """
    if vault is None:
        for record in opened:
            if (
                record.payload
                and b'"alg":' in record.line
                and "key" in (read_fields([record])[0].get("payload") or ())
            ):
                raise keyless(workflow_id)
        return opened
    answers = []
    for sequence, (record, line) in enumerate(zip(opened, read_fields(opened), strict=True), start=first):
        answers.append(_unsealed(record, vault, line.get("payload"), workflow_id, sequence))
        if parent and line.get("parent") != parent:
            raise broken(f"{workflow_id}@{sequence}")
        parent = record.checksum
    return answers


def _unsealed(record: Opened, vault: Vault, about: Any, workflow_id: str, sequence: int) -> Opened:
    start = record.line[:-_TAIL_BYTES]
    inner = vault.open_record(about, record.payload, start, workflow_id, sequence)
    line, _, payload = inner.partition(b"\n")
    hidden = b"," + line[1:-1] if line != b"{}" else b""
    head = start[: start.rfind(_BEFORE_PAYLOAD)]
    merged = b"".join((head, hidden, _BEFORE_CHECKSUM, record.checksum.encode(), _AFTER_CHECKSUM))
    return Opened(merged, payload[:-1], record.checksum)


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
            "the record is not the one that was committed",
            place=f"{workflow_id}@{sequence}",
            hint=recovery_hint(workflow_id),
        )
    return Opened(data[:end], payload[:-1], checksum)


def claimed_checksum(data: bytes) -> str:
    """Read the checksum that a record says it has, without checking it."""
    end = data.find(b"\n") + 1
    return data[end - _TAIL_BYTES : end - len(_AFTER_CHECKSUM)].decode("latin-1")


def read_fields(opened: Sequence[Opened]) -> list[dict[str, Any]]:
    """Decode the lines of verified records, all in one call of the decoder."""
    fields = plainjson.loads(b"[" + b",".join(record.line for record in opened) + b"]")
    if len(fields) != len(opened) or not all(isinstance(line, dict) for line in fields):
        raise CheckpointCorruptError("a record is not an object", hint=recovery_hint())
    return list(fields)


def is_complete(record: Opened) -> bool:
    """Tell whether a verified record has its state whole, in the keyframe that it names."""
    # Values may read like the field: only the decoder knows.
    return _BEFORE_FULL in record.line and "full" in read_fields([record])[0]


def all_operations(
    opened: Sequence[Opened], formats: Formats, load_blob: Callable[[str], bytes]
) -> list[Operation]:
    """Answer the changes of verified records, in order; a record that has its state whole brings none."""
    pieces = [_inline(record.line) for record in opened]
    cut = [piece for piece in pieces if piece is not None]
    inline = iter(_changes(cut))
    ops: list[Operation] = []
    for record, piece in zip(opened, pieces, strict=True):
        if piece is not None:
            ops += next(inline)
            continue
        [fields] = read_fields([record])
        if "full" not in fields:
            ops += operations(fields, record.payload, formats, load_blob)
    return ops


def _changes(cut: Sequence[bytes]) -> list[list[Operation]]:
    """Decode what was cut out of lines, all in one call of the decoder."""
    changes: list[list[Operation]] = plainjson.loads(b"[" + b",".join(cut) + b"]")
    if len(changes) != len(cut) or not all(type(change) is list for change in changes):
        raise CheckpointCorruptError("a record's change is not a list", hint=recovery_hint())
    return changes


def may_be_redacted(record: Opened) -> bool:
    """Tell quickly that a verified record brings no placeholder; what its blobs hold is not looked at."""
    return may_hold(record.line) or _REDACTED in record.line


def schema_of(record: Opened) -> str:
    """Read the version of a verified record's state without decoding all of its line.

    No text of the fields before it can look like this: quotes in texts are escaped.
    """
    at = record.line.find(_BEFORE_SCHEMA)
    if at < 0:
        return SCHEMA_VERSION
    start = at + len(_BEFORE_SCHEMA)
    return record.line[start : record.line.index(b'"', start)].decode(errors="replace")


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
        said = f"the record carries no change ({fault!r})"
        raise CheckpointCorruptError(said, hint=recovery_hint()) from fault
    if not isinstance(ops, list):
        raise CheckpointCorruptError("the record's change is no list of operations", hint=recovery_hint())
    return ops


def _checksum(parent_checksum: str, start: bytes, payload: bytes) -> str:
    hashed = b"".join((parent_checksum.encode(), b"\n", start, _AFTER_CHECKSUM, payload))
    return "sha256:" + sha256_of(hashed)
