"""Columns of rows as binary arrays: the server takes them apart four times as fast as their text."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import psycopg
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

_NULL = struct.pack("!i", -1)
_LENGTH = struct.Struct("!i")
_NUMBER = struct.Struct("!iq")
_FLAG = struct.Struct("!i?")

_TEXT, _BYTES, _INT8, _BOOL = 25, 17, 20, 16


class Array:
    """A column of values, encoded."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class TextArray(Array):
    """Of `text`."""

    __slots__ = ()


class BytesArray(Array):
    """Of `bytea`."""

    __slots__ = ()


class Int8Array(Array):
    """Of `bigint`."""

    __slots__ = ()


class BoolArray(Array):
    """Of `boolean`."""

    __slots__ = ()


def text_array(values: Sequence[str | None]) -> TextArray:
    """Encode texts."""
    return TextArray(_sized(_TEXT, [None if value is None else value.encode() for value in values]))


def bytes_array(values: Sequence[bytes | None]) -> BytesArray:
    """Encode byte strings."""
    return BytesArray(_sized(_BYTES, values))


def int8_array(values: Sequence[int | None]) -> Int8Array:
    """Encode whole numbers."""
    items = [_NULL if value is None else _NUMBER.pack(8, value) for value in values]
    return Int8Array(_array(_INT8, len(values), items))


def bool_array(values: Sequence[bool]) -> BoolArray:
    """Encode flags."""
    return BoolArray(_array(_BOOL, len(values), [_FLAG.pack(1, value) for value in values]))


def _sized(kind: int, values: Sequence[bytes | None]) -> bytes:
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(_LENGTH.pack(len(value)))
            parts.append(value)
    return _array(kind, len(values), parts)


def _array(kind: int, count: int, items: Iterable[bytes]) -> bytes:
    """Write dimensions, whether there are NULLs (nobody looks), the type, then the items."""
    if not count:
        return struct.pack("!iii", 0, 0, kind)
    return struct.pack("!iiiii", 1, 1, kind, count, 1) + b"".join(items)


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> Buffer:
        return obj.data


class _TextArrayDumper(_ArrayDumper):
    oid = 1009


class _BytesArrayDumper(_ArrayDumper):
    oid = 1001


class _Int8ArrayDumper(_ArrayDumper):
    oid = 1016


class _BoolArrayDumper(_ArrayDumper):
    oid = 1000


class Adapting(AdaptContext):
    """How values of ours travel.

    A whole number is always a `bigint`: else each size of number would be a statement to prepare anew.
    """

    adapters = AdaptersMap(psycopg.adapters)
    connection = None


for _kind, _dumper in (
    (TextArray, _TextArrayDumper),
    (BytesArray, _BytesArrayDumper),
    (Int8Array, _Int8ArrayDumper),
    (BoolArray, _BoolArrayDumper),
    (int, Int8BinaryDumper),
):
    Adapting.adapters.register_dumper(_kind, _dumper)
