"""Sums made right again after a change: without that, no change would get past the first check.

Whoever can write to a store can do the same; none of these sums needs a key.
"""

from __future__ import annotations

import hashlib
import zlib

from holdfast.adapters.filesystem import frame
from holdfast.adapters.filesystem.order import RECORD_BYTES
from holdfast.domain.event import chain_hash
from holdfast.domain.ids import GENESIS

_END = b'"}\n'
_SUM = b',"sum":"'
_ENTRY_HASH = b',"hash":"'
_HASH_BYTES = len("sha256:") + 64


def summed_lines(data: bytes) -> bytes:
    """Mend lines that end in a short sum of their own: manifests, leases, the list of sessions."""
    return b"".join(_summed(line) for line in data.split(b"\n") if line)


def _summed(line: bytes) -> bytes:
    body = line.rpartition(_SUM)[0] or line.rstrip(b"}")
    return body + _SUM + hashlib.sha256(body).hexdigest()[:16].encode() + _END


def signed_line(data: bytes) -> bytes:
    """Mend a record of a session or a request, whose sum stands at the end of its line."""
    start, end = data[: -_HASH_BYTES - len(_END)], data[-len(_END) :]
    return start + b"sha256:" + hashlib.sha256(start + end).hexdigest().encode() + end


def record(data: bytes, parent: str = GENESIS) -> bytes:
    """Mend the first line of a record, which its payload follows."""
    end = data.find(b"\n") + 1
    start, payload = data[: max(end - _HASH_BYTES - len(_END), 0)], data[end:]
    digest = hashlib.sha256(b"".join((parent.encode(), b"\n", start, _END, payload))).hexdigest()
    return start + b"sha256:" + digest.encode() + _END + payload


def event(line: bytes, previous: str = GENESIS) -> bytes:
    """Mend the line of an event."""
    start = line[: -_HASH_BYTES - len(_END)]
    return start + chain_hash(previous, start + _END).encode() + _END


def entry(line: bytes) -> bytes:
    """Mend the line of an audit entry."""
    start = line.find(_ENTRY_HASH) + len(_ENTRY_HASH)
    end = line.find(b'"', start)
    if start < len(_ENTRY_HASH) or end < 0:
        return line
    digest = hashlib.sha256(line[:start] + line[end:]).hexdigest()
    return line[:start] + b"sha256:" + digest.encode() + line[end:]


def framed(payload: bytes) -> tuple[bytes, bytes]:
    """Put a payload into a frame of the journal; answer header and payload."""
    data, _ = frame.encode_frame(0, 0, 1, bytes(32), payload)
    return data[: frame.HEADER_BYTES], payload


def superblock(data: bytes) -> bytes:
    """Mend a superblock of the ring."""
    body = data[:72].ljust(72, b"\0")
    return body + hashlib.sha256(body).digest()


def order_line(data: bytes) -> bytes:
    """Mend a line that tells where a leaf lies."""
    body = data[: RECORD_BYTES - 9]
    return body + b"%08x\n" % zlib.crc32(body)


def page(data: bytes) -> bytes:
    """Mend the fields of the shared page."""
    shared = bytearray(data[:4096].ljust(4096, b"\0"))
    fields = [*((slot * 64, 56) for slot in range(2)), *((128 + cell * 24, 16) for cell in range(16))]
    for start, size in fields:
        body = bytes(shared[start : start + size])
        shared[start + size : start + size + 4] = zlib.crc32(body, 0x5EA).to_bytes(4, "little")
    return bytes(shared)
