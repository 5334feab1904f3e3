"""MessagePack for plain trees, exact and without a depth of its own: what the C encoder must agree with.

The two loops serve every binary encoding of plain trees; MessagePack is the one the domain orders sets by.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Literal, NoReturn

from holdfast.domain.errors import CheckpointCorruptError, UnstorableValueError

#: Levels a stored value may be nested, counted in the plain tree.
MAX_DEPTH = 10_000
#: Levels a decoder accepts: a stored value lies a few levels deep in records and states.
DECODE_DEPTH = MAX_DEPTH + 1_000

#: After so many bytes that were not the needle the byte is not rare.
_RARE_TRIES = 4
#: In so few bytes anything is found at once.
_SHORT_BYTES = 1024

INT_MIN, INT_MAX = -(2**63), 2**64 - 1

TokenKind = Literal["scalar", "list", "dict"]
#: What stands at a position: kind, the scalar or the number of items, and where the next token begins.
Token = tuple[TokenKind, Any, int]
Scalar = Callable[[Any], bytes]
Head = Callable[[int], bytes]


def pack(plain: Any) -> bytes:
    """Encode a plain tree."""
    return write_tree(plain, _pack_scalar, array_head, map_head)


def unpack(data: bytes) -> Any:
    """Decode bytes that hold exactly one plain tree; raise CheckpointCorruptError for anything else."""
    return read_tree(data, _read_token)


def array_head(count: int) -> bytes:
    """Encode the head of a list."""
    if count < 16:
        return bytes((0x90 | count,))
    return struct.pack(">BH", 0xDC, count) if count < 1 << 16 else struct.pack(">BI", 0xDD, count)


def map_head(count: int) -> bytes:
    """Encode the head of an object."""
    if count < 16:
        return bytes((0x80 | count,))
    return struct.pack(">BH", 0xDE, count) if count < 1 << 16 else struct.pack(">BI", 0xDF, count)


def head_bytes(count: int) -> int:
    """Tell how long the head of a list or an object is."""
    return 1 if count < 16 else 3 if count < 1 << 16 else 5


def shape(data: bytes) -> Literal["dict", "list", "str", "other"]:
    """Tell what kind of value packed bytes hold, by their first byte."""
    first = data[0]
    if 0x80 <= first < 0x90 or first in (0xDE, 0xDF):
        return "dict"
    if 0x90 <= first < 0xA0 or first in (0xDC, 0xDD):
        return "list"
    return "str" if 0xA0 <= first < 0xC0 or 0xD9 <= first <= 0xDB else "other"


def text_of(data: bytes) -> bytes:
    """Give the UTF-8 bytes of a packed string."""
    return data[{0xD9: 2, 0xDA: 3, 0xDB: 5}.get(data[0], 1) :]


def contains(data: bytes, needle: bytes, rare: int) -> bool:
    """Find a needle by its byte at `rare`: one byte is found many times faster than several if it is rare."""
    if len(data) < _SHORT_BYTES:
        return data.find(needle) >= 0
    byte = needle[rare : rare + 1]
    at = data.find(byte)
    for _ in range(_RARE_TRIES):
        if at < 0:
            return False
        if data.startswith(needle, max(at - rare, 0)):
            return True
        at = data.find(byte, at + 1)
    # Not rare here: before a UUID stands its length, 36, which is `$`. Another byte may not be there at all.
    return all(other in data for other in needle) and data.find(needle) >= 0


def write_tree(plain: Any, scalar: Scalar, list_head: Head, dict_head: Head) -> bytes:
    """Encode a tree with a stack of iterators, so that nesting costs no recursion."""
    out: list[bytes] = []
    stack: list[Iterator[Any]] = [iter((plain,))]
    while stack:
        for value in stack[-1]:
            if type(value) is dict:
                out.append(dict_head(len(value)))
                stack.append(chain.from_iterable(value.items()))
                break
            if type(value) is list:
                out.append(list_head(len(value)))
                stack.append(iter(value))
                break
            out.append(scalar(value))
        else:
            stack.pop()
        if len(stack) > DECODE_DEPTH:
            raise UnstorableValueError(f"nested deeper than {DECODE_DEPTH} levels, or contains itself")
    return b"".join(out)


def read_tree(data: bytes, token: Callable[[bytes, int], Token]) -> Any:
    """Decode exactly one tree from tokens, so that nesting costs no recursion."""
    try:
        value, end = _read(data, token)
    except (IndexError, struct.error, UnicodeDecodeError) as fault:
        corrupt(f"the encoded bytes are cut short or damaged ({fault})")
    if end != len(data):
        corrupt(f"{len(data) - end} bytes follow the encoded value")
    return value


def corrupt(message: str) -> NoReturn:
    """Refuse bytes that Holdfast does not write."""
    raise CheckpointCorruptError(message)


class _Open:
    """A list or object whose items are still being read."""

    __slots__ = ("items", "key", "left")

    def __init__(self, kind: TokenKind, count: int) -> None:
        self.items: Any = [] if kind == "list" else {}
        self.left = count
        self.key: str | None = None

    def add(self, value: Any) -> None:
        """Take the next value: an item, a key, or the value of that key."""
        if type(self.items) is list:
            self.items.append(value)
        elif self.key is None:
            if type(value) is not str or value in self.items:
                corrupt(f"{value!r} cannot be a key, or stands twice")
            self.key = value
            return
        else:
            self.items[self.key] = value
            self.key = None
        self.left -= 1


def _read(data: bytes, token: Callable[[bytes, int], Token]) -> tuple[Any, int]:
    stack: list[_Open] = []
    position = 0
    while True:
        kind, value, position = token(data, position)
        if kind != "scalar":
            stack.append(_Open(kind, value))
            if len(stack) > DECODE_DEPTH:
                corrupt(f"nested deeper than {DECODE_DEPTH} levels")
        elif stack:
            stack[-1].add(value)
        else:
            return value, position
        while stack and not stack[-1].left:
            done = stack.pop().items
            if not stack:
                return done, position
            stack[-1].add(done)


def _pack_scalar(value: Any) -> bytes:
    kind = type(value)
    if kind is str:
        return _pack_str(value)
    if value is None or kind is bool:
        return b"\xc0" if value is None else b"\xc3" if value else b"\xc2"
    if kind is int:
        return _pack_int(value)
    if kind is float:
        return struct.pack(">Bd", 0xCB, value)
    if kind is bytes:
        return _pack_bytes(value)
    raise UnstorableValueError(f"{kind.__qualname__} is not part of a plain tree")


def _pack_str(value: str) -> bytes:
    data = value.encode()
    size = len(data)
    if size < 32:
        return bytes((0xA0 | size,)) + data
    if size < 1 << 16:
        return (struct.pack(">BB", 0xD9, size) if size < 256 else struct.pack(">BH", 0xDA, size)) + data
    return struct.pack(">BI", 0xDB, size) + data


def _pack_bytes(data: bytes) -> bytes:
    size = len(data)
    if size < 1 << 16:
        return (struct.pack(">BB", 0xC4, size) if size < 256 else struct.pack(">BH", 0xC5, size)) + data
    return struct.pack(">BI", 0xC6, size) + data


def _pack_int(value: int) -> bytes:
    if -32 <= value < 128:
        return struct.pack("b", value)
    if not INT_MIN <= value <= INT_MAX:
        raise UnstorableValueError("an integer outside 64 bits must be tagged")
    for size, (unsigned, signed) in enumerate(((0xCC, 0xD0), (0xCD, 0xD1), (0xCE, 0xD2), (0xCF, 0xD3))):
        width = 1 << size
        if value >= 0 and value < 1 << 8 * width:
            return bytes((unsigned,)) + value.to_bytes(width, "big")
        if value < 0 and value >= -(1 << 8 * width - 1):
            return bytes((signed,)) + value.to_bytes(width, "big", signed=True)
    raise AssertionError("every 64-bit integer has a width")


_WIDE_SIZE: dict[int, tuple[str, str]] = {
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("dict", ">H"), 0xDF: ("dict", ">I"),
    0xCB: ("number", ">d"), 0xCC: ("number", ">B"), 0xCD: ("number", ">H"), 0xCE: ("number", ">I"),
    0xCF: ("number", ">Q"), 0xD0: ("number", ">b"), 0xD1: ("number", ">h"), 0xD2: ("number", ">i"),
    0xD3: ("number", ">q"),
}  # fmt: skip
_CONSTANTS: dict[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}


def _read_token(data: bytes, at: int) -> Token:
    first = data[at]
    if first < 0x80:
        return "scalar", first, at + 1
    if first >= 0xE0:
        return "scalar", first - 256, at + 1
    if first < 0xA0:
        return "dict" if first < 0x90 else "list", first & 0x0F, at + 1
    if first < 0xC0:
        return read_text(data, at + 1, first & 0x1F)
    if first in _CONSTANTS:
        return "scalar", _CONSTANTS[first], at + 1
    return _read_wide(data, at, first)


def _read_wide(data: bytes, at: int, first: int) -> Token:
    what, layout = _WIDE_SIZE.get(first) or corrupt(f"byte {first:#x} at {at} begins nothing known")
    (value,) = struct.unpack_from(layout, data, at + 1)
    start = at + 1 + struct.calcsize(layout)
    if what == "str":
        return read_text(data, start, value)
    if what == "bytes":
        return read_bytes(data, start, value)
    return ("list" if what == "list" else "dict" if what == "dict" else "scalar"), value, start


def read_text(data: bytes, start: int, size: int) -> Token:
    """Read a string of so many bytes."""
    _, raw, end = read_bytes(data, start, size)
    return "scalar", raw.decode(), end


def read_bytes(data: bytes, start: int, size: int) -> Token:
    """Read so many bytes."""
    end = start + size
    if end > len(data):
        corrupt(f"{size} bytes should follow at {start}, {len(data) - start} do")
    return "scalar", data[start:end], end
