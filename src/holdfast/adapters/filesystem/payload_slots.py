"""Payloads beside a trail: each in a slot of its own, overwritten in place when it is erased.

A slot begins with a line that tells its entry and its size; the payload ends it, exactly as it is stored:

    {"seq":2,"slot":256,"len":118}
    {"salt":"…","data":{"why":"…"}}

Slots are multiples of 128 bytes: of an erased payload not even the exact length is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.adapters.filesystem.overlay import Files
from holdfast.domain.value import value

SLOT_BYTES = 128
#: Whoever looks for one slot mostly knows one near it; who walks through all reads more at once.
_FIRST_WINDOW_BYTES = 1 << 12
_WINDOW_BYTES = 1 << 20
_HEADER_BYTES_MAX = 3 * SLOT_BYTES
_HEADER = re.compile(
    rb'\{"seq":(?P<seq>[0-9]{1,18}),"slot":(?P<slot>[0-9]{1,12}),'
    rb'(?:"len":(?P<len>[0-9]{1,12})\} *\n|"erased":true\} )'
)


@value
class Slot:
    """Where the payload of an entry lies."""

    seq: int
    offset: int
    length: int
    #: The payload: where it begins, and how long it is; 0 if it was erased.
    start: int
    stored_bytes: int

    @property
    def end(self) -> int:
        return self.offset + self.length


def encode_slot(seq: int, stored: bytes) -> bytes:
    """Write a slot with its payload."""
    # The size stands in the header, whose length it depends on: room for its digits is taken beforehand.
    length = -(-(len(b'{"seq":,"slot":,"len":}\n') + 42 + len(stored)) // SLOT_BYTES) * SLOT_BYTES
    header = b'{"seq":%d,"slot":%d,"len":%d}' % (seq, length, len(stored))
    return header.ljust(length - len(stored) - 1) + b"\n" + stored


def erased_slot(slot: Slot) -> bytes:
    """Write what takes the place of a slot with its payload."""
    header = b'{"seq":%d,"slot":%d,"erased":true}' % (slot.seq, slot.length)
    return header.ljust(slot.length - 1) + b"\n"


def empty_slot(seq: int) -> bytes:
    """Write the slot of an entry whose payload was erased before the entry came here."""
    return erased_slot(Slot(seq, 0, SLOT_BYTES, 0, 0))


def commits_to_payload(line: bytes) -> bool:
    """Tell whether an audit entry has a payload, by its line."""
    # Quotes inside a text are escaped: so nothing but the commitment is written like this.
    return b'"payload":"sha256:' in line


def is_erasure(data: bytes) -> bool:
    """Tell whether what is written to a file of payloads erases one."""
    found = _HEADER.match(data)
    return found is not None and found["len"] is None


def slots(files: Files, path: str, offset: int = 0) -> Iterator[Slot]:
    """Walk through the slots from one of them on. What is damaged is passed over, up to the next header."""
    end = files.size(path) or 0
    window_at, window, window_bytes = 0, b"", _FIRST_WINDOW_BYTES
    while offset < end:
        at = offset - window_at
        if not 0 <= at < len(window) - _HEADER_BYTES_MAX and window_at + len(window) < end:
            window_at, window, at = offset, files.read(path, offset, window_bytes) or b"", 0
            window_bytes = min(4 * window_bytes, _WINDOW_BYTES)
        slot = _slot_at(window, at, offset, end)
        if slot is not None:
            yield slot
        offset = slot.end if slot is not None else offset + SLOT_BYTES


def _slot_at(window: bytes, at: int, offset: int, end: int) -> Slot | None:
    found = _HEADER.match(window, at, at + _HEADER_BYTES_MAX)
    if found is None:
        return None
    length, stored_bytes = int(found["slot"]), int(found["len"] or 0)
    header_bytes = found.end() - at
    fits = found["len"] is None or header_bytes + stored_bytes == length
    if not fits or length % SLOT_BYTES or not header_bytes <= length <= end - offset:
        return None
    return Slot(int(found["seq"]), offset, length, offset + length - stored_bytes, stored_bytes)
