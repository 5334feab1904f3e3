"""The order of leaves: one line of fixed width for each, so that any of them is found by counting."""

from __future__ import annotations

from zlib import crc32

from holdfast.domain.value import value

#: Where the session's line begins, sequence, where the entry begins in its trail, its length, sum of these.
RECORD_BYTES = 52
_BODY_BYTES = 43


@value
class Place:
    """What is known of a leaf: whose entry it is, and where it lies in the trail of that session."""

    #: Offset of the session's line in the list of sessions.
    session_at: int
    seq: int
    offset: int
    length: int


def claim(session_at: int, seq: int) -> bytes:
    """Give what the line of an entry begins with."""
    return b"%010d %010d " % (session_at, seq)


def encode(session_at: int, seq: int, offset: int, length: int) -> bytes:
    """Write the line of a leaf."""
    body = b"%010d %010d %014d %05d " % (session_at, seq, offset, length)
    return b"%b%08x\n" % (body, crc32(body))


def decode(line: bytes) -> Place | None:
    """Read the line of a leaf; None if it is not what was written."""
    body = line[:_BODY_BYTES]
    if line[_BODY_BYTES:] != _sum(body):
        return None
    try:
        return Place(*map(int, body.split()))
    except (TypeError, ValueError):
        return None


def _sum(body: bytes) -> bytes:
    return b"%08x\n" % crc32(body)
