"""Columns of rows as binary arrays: the server takes them apart four times as fast as their text."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import TypeVar, cast

T = TypeVar("T")

_NULL = struct.pack("!i", -1)
_LENGTH = struct.Struct("!i")
_NUMBER = struct.Struct("!iq")
_FLAG = struct.Struct("!i?")

_TEXT, _BYTES, _INT8, _BOOL = 25, 17, 20, 16


class Array:
    """A column of values, encoded."""

    __slots__ = ("data",)
    #: The number of its type for the server.
    kind = 0

    def __init__(self, data: bytes) -> None:
        self.data = data


class TextArray(Array):
    """Of `text`."""

    __slots__ = ()
    kind = 1009


class BytesArray(Array):
    """Of `bytea`."""

    __slots__ = ()
    kind = 1001


class Int8Array(Array):
    """Of `bigint`."""

    __slots__ = ()
    kind = 1016


class BoolArray(Array):
    """Of `boolean`."""

    __slots__ = ()
    kind = 1000


KINDS = (TextArray, BytesArray, Int8Array, BoolArray)


def text_array(values: Sequence[str | None]) -> TextArray:
    """Encode texts."""
    return TextArray(_array(_TEXT, len(values), [_once(values, _texts)]))


def bytes_array(values: Sequence[bytes | None]) -> BytesArray:
    """Encode byte strings."""
    return BytesArray(_array(_BYTES, len(values), _sized(values)))


def int8_array(values: Sequence[int | None]) -> Int8Array:
    """Encode whole numbers."""
    return Int8Array(_array(_INT8, len(values), [_once(values, _numbers)]))


def bool_array(values: Sequence[bool]) -> BoolArray:
    """Encode flags."""
    return BoolArray(_array(_BOOL, len(values), [_once(values, _flags)]))


def _once(values: Sequence[T], encode: Callable[[Sequence[T]], bytes]) -> bytes:
    """Encode small values; most columns hold the same in every row, and then one is enough."""
    count = len(values)
    if count > 1 and values.count(values[0]) == count:
        return encode(values[:1]) * count
    return encode(values)


def _texts(values: Sequence[str | None]) -> bytes:
    if None in values:
        return b"".join(_sized([None if value is None else value.encode() for value in values]))
    return b"".join(_sized(list(map(str.encode, cast(Sequence[str], values)))))


def _numbers(values: Sequence[int | None]) -> bytes:
    if None in values:
        return b"".join([_NULL if value is None else _NUMBER.pack(8, value) for value in values])
    return b"".join(map(_NUMBER.pack, repeat(8), values))


def _flags(values: Sequence[bool]) -> bytes:
    return b"".join(map(_FLAG.pack, repeat(1), values))


def _sized(values: Sequence[bytes | None]) -> list[bytes]:
    """Put its length before each; without a step of the interpreter for any, as long as all are there."""
    if None not in values:
        present = cast(Sequence[bytes], values)
        return list(chain.from_iterable(zip(map(_LENGTH.pack, map(len, present)), present, strict=True)))
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(value)), value)
    return parts


def _array(kind: int, count: int, items: list[bytes]) -> bytes:
    """Write dimensions, whether there are NULLs (nobody looks), the type, then the items."""
    if not count:
        return struct.pack("!iii", 0, 0, kind)
    # One copy, for an item may be large.
    return b"".join((struct.pack("!iiiii", 1, 1, kind, count, 1), *items))
