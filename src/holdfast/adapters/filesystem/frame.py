"""One journal frame: a group of commits as file operations, chained and checksummed."""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum

from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.value import value

MAGIC = b"HFJ1"
ALIGNMENT = 8

#: magic, payload length, LSN, LSN known durable, fencing token, digest of the frame before, own digest
_HEADER = struct.Struct("<4sIQQQ32s32s")
_OPERATION = struct.Struct("<BHIQ")

HEADER_BYTES = _HEADER.size
EMPTY_DIGEST = bytes(32)

# hashlib lets go of the interpreter lock from 2,048 bytes on; beside a busy thread, getting it back
# costs a whole switch interval, far more than the hash itself.
_PIECE_BYTES = 2047


class Kind(IntEnum):
    WRITE = 1
    REPLACE = 2
    UNLINK = 3


@value
class Operation:
    """What to do to one file. Redoing it any number of times, in order, ends in the same file."""

    kind: Kind
    path: str
    offset: int = 0
    data: bytes = b""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


@value
class Frame:
    lsn: int
    durable: int
    token: int
    previous: bytes
    digest: bytes
    payload: bytes

    @property
    def end(self) -> int:
        return self.lsn + frame_bytes(len(self.payload))

    def operations(self) -> list[Operation]:
        return decode_operations(self.payload)


def frame_bytes(payload_bytes: int) -> int:
    """Bytes a frame takes in the ring, padding included."""
    return -(-(HEADER_BYTES + payload_bytes) // ALIGNMENT) * ALIGNMENT


def encode_operations(operations: list[Operation]) -> bytes:
    pieces: list[bytes] = []
    for operation in operations:
        path, data = operation.path.encode(), operation.data
        pieces += (_OPERATION.pack(operation.kind, len(path), len(data), operation.offset), path, data)
    return b"".join(pieces)


def decode_operations(payload: bytes) -> list[Operation]:
    """Read what a frame does. Its digest was right: what is wrong here was written so by somebody else."""
    try:
        return _decoded(payload)
    except (struct.error, ValueError) as fault:
        raise CheckpointCorruptError(
            f"a frame of the journal does what Holdfast never does ({fault})",
            place="journal",
            hint="Somebody else wrote to the store: bring it back from a backup.",
        ) from fault


def _decoded(payload: bytes) -> list[Operation]:
    operations = []
    position = 0
    while position < len(payload):
        kind, path_bytes, data_bytes, offset = _OPERATION.unpack_from(payload, position)
        position += _OPERATION.size
        path = payload[position : position + path_bytes].decode()
        position += path_bytes
        operations.append(Operation(Kind(kind), path, offset, payload[position : position + data_bytes]))
        position += data_bytes
        if not path or path[0] == "/" or "\0" in path or (".." in path and ".." in path.split("/")):
            raise ValueError(f"the path {path!r} leads to nothing in the store")
    if position != len(payload):
        raise ValueError("the last operation is cut")
    return operations


def encode_frame(lsn: int, durable: int, token: int, previous: bytes, payload: bytes) -> tuple[bytes, bytes]:
    """The frame's bytes, padded, and its digest."""
    header = _HEADER.pack(MAGIC, len(payload), lsn, durable, token, previous, EMPTY_DIGEST)
    digest = _digest(header, payload)
    padding = bytes(-(HEADER_BYTES + len(payload)) % ALIGNMENT)
    return b"".join((header[:-32], digest, payload, padding)), digest


def payload_length(header: bytes, lsn: int, capacity: int) -> int | None:
    """Length of the payload that a header announces, or None if it is no header of this LSN."""
    if len(header) < HEADER_BYTES:
        return None
    magic, length, found, *_ = _HEADER.unpack(header)
    plausible = magic == MAGIC and found == lsn and frame_bytes(length) <= capacity
    return length if plausible else None


def decode_frame(header: bytes, payload: bytes) -> Frame | None:
    """The frame if its digest is right, else None."""
    _, _, lsn, durable, token, previous, digest = _HEADER.unpack(header)
    if _digest(header[:-32] + EMPTY_DIGEST, payload) != digest:
        return None
    return Frame(lsn, durable, token, previous, digest, payload)


def _digest(header: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(header)
    view = memoryview(payload)
    for start in range(0, len(view), _PIECE_BYTES):
        digest.update(view[start : start + _PIECE_BYTES])
    return digest.digest()
