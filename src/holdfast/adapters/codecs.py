"""The codecs: how a payload looks on disk. All three keep key order and read back plain data only."""

from __future__ import annotations

import re
import struct
from functools import partial
from types import ModuleType
from typing import Any

import ormsgpack

from holdfast.adapters.packer import pack_plain
from holdfast.domain import msgpack, plainjson
from holdfast.domain.errors import ConfigError, UnstorableValueError
from holdfast.domain.msgpack import Token, corrupt, read_bytes, read_text, read_tree, write_tree
from holdfast.ports import Codec

NAMES = ("json", "msgpack", "cbor")


def codec(name: str) -> Codec:
    """Give the codec of that name.

    Raises:
        ConfigError: the name is unknown, or its package is not installed.
    """
    if name == "json":
        return JsonCodec()
    if name == "msgpack":
        return MsgpackCodec()
    if name == "cbor":
        return CborCodec()
    raise ConfigError(f"encoding {name!r} is unknown", hint=f"Use one of {', '.join(NAMES)}.")


class JsonCodec:
    """Compact UTF-8 JSON."""

    name = "json"

    def encode(self, plain: Any) -> bytes:
        """Encode a plain tree."""
        return plainjson.dumps(plain)

    def decode(self, data: bytes) -> Any:
        """Decode to a plain tree."""
        return plainjson.loads(data)


class MsgpackCodec:
    """MessagePack with the shortest form of everything."""

    name = "msgpack"

    def encode(self, plain: Any) -> bytes:
        """Encode a plain tree."""
        return pack_plain(plain)

    def decode(self, data: bytes) -> Any:
        """Decode to a plain tree."""
        try:
            plain = ormsgpack.unpackb(data)
            # The C decoder takes trailing bytes, repeated keys and long forms; encoding again finds them.
            if len(ormsgpack.packb(plain)) == len(data):
                return plain
        except (ValueError, TypeError):
            pass
        return msgpack.unpack(data)


class CborCodec:
    """CBOR with definite lengths and keys in the order of the value, which canonical CBOR would sort."""

    name = "cbor"

    def __init__(self) -> None:
        self._cbor2 = _import_cbor2()

    def encode(self, plain: Any) -> bytes:
        """Encode a plain tree."""
        try:
            # The C encoder overruns the stack on deep trees; this one has a limit, and is fast.
            packed = ormsgpack.packb(plain)
        except TypeError:
            return _write(plain)
        data = bytes(self._cbor2.dumps(plain))
        # To it all NaNs are one. The bytes that tell may stand for something else, which costs time only.
        return _write(plain) if _USUAL_NAN in data and _ODD_NAN.search(packed) else data

    def decode(self, data: bytes) -> Any:
        """Decode to a plain tree."""
        try:
            plain = self._cbor2.loads(data, **_STRICT)
            # As for MessagePack; and whatever is not plain is refused here at the latest.
            ormsgpack.packb(plain)
            if len(self._cbor2.dumps(plain)) == len(data):
                return plain
        except (self._cbor2.CBORError, ValueError, TypeError):
            pass
        return read_tree(data, _cbor_token)


def _import_cbor2() -> ModuleType:
    try:
        import cbor2
    except ImportError as fault:
        raise ConfigError(
            "the encoding cbor needs the package cbor2", hint="Install holdfast[cbor], or use json."
        ) from fault
    return cbor2


def _refuse_tag(*_: Any) -> Any:
    raise ValueError("a CBOR tag is not plain data")


_STRICT: dict[str, Any] = {
    # Tags the decoder would turn into objects: dates, fractions, patterns, addresses, shared values, others.
    "semantic_decoders": dict.fromkeys([*range(1_100), 43_000, 55_799], _refuse_tag),
    "tag_hook": _refuse_tag,
    "allow_indefinite": False,
    "allow_duplicate_keys": False,
    "strict_hashable_types": True,
}


#: The NaN that Python makes, and before the bits of any float in MessagePack: those of another NaN.
_USUAL_NAN = b"\xf9\x7e\x00"
_ODD_NAN = re.compile(rb"\xcb(?!\x7f\xf8\x00{6}|[\x7f\xff]\xf0\x00{6})[\x7f\xff][\xf0-\xff]", re.DOTALL)
_USUAL_BITS = struct.pack(">d", float("nan"))


def _write(plain: Any) -> bytes:
    return write_tree(plain, _cbor_scalar, partial(_head, 4), partial(_head, 5))


def _head(major: int, size: int) -> bytes:
    """Encode a major type and its number in the shortest form."""
    if size < 24:
        return bytes((major << 5 | size,))
    for extra, layout in ((24, ">BB"), (25, ">BH"), (26, ">BI")):
        if size < 1 << 8 * (struct.calcsize(layout) - 1):
            return struct.pack(layout, major << 5 | extra, size)
    return struct.pack(">BQ", major << 5 | 27, size)


def _cbor_scalar(value: Any) -> bytes:
    kind = type(value)
    if kind is str:
        data: bytes = value.encode()
        return _head(3, len(data)) + data
    if value is None or kind is bool:
        return b"\xf6" if value is None else b"\xf5" if value else b"\xf4"
    if kind is int:
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if kind is float:
        return _cbor_float(value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    raise UnstorableValueError(f"{kind.__qualname__} is not part of a plain tree")


def _cbor_float(value: float) -> bytes:
    """Encode infinities and the usual NaN in the short form, as the C encoder does; all else in full."""
    if value != value:
        bits = struct.pack(">d", value)
        return _USUAL_NAN if bits == _USUAL_BITS else b"\xfb" + bits
    if value in (float("inf"), float("-inf")):
        return b"\xf9\x7c\x00" if value > 0 else b"\xf9\xfc\x00"
    return struct.pack(">Bd", 0xFB, value)


_CBOR_WIDTHS = {24: ">B", 25: ">H", 26: ">I", 27: ">Q"}
_CBOR_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_CBOR_CONSTANTS: dict[int, bool | None] = {20: False, 21: True, 22: None}


def _cbor_token(data: bytes, at: int) -> Token:
    major, extra = data[at] >> 5, data[at] & 31
    if major == 7:
        return _cbor_simple(data, at, extra)
    number, at = (extra, at + 1) if extra < 24 else _cbor_number(data, at, extra)
    if major == 0 or major == 1:
        return "scalar", number if major == 0 else -1 - number, at
    if major == 2:
        return read_bytes(data, at, number)
    if major == 3:
        return read_text(data, at, number)
    if major == 4 or major == 5:
        return "list" if major == 4 else "dict", number, at
    corrupt("a CBOR tag is not plain data")


def _cbor_number(data: bytes, at: int, extra: int) -> tuple[int, int]:
    layout = _CBOR_WIDTHS.get(extra) or corrupt(f"byte {data[at]:#x} at {at} begins nothing known")
    (number,) = struct.unpack_from(layout, data, at + 1)
    return number, at + 1 + struct.calcsize(layout)


def _cbor_simple(data: bytes, at: int, extra: int) -> Token:
    if extra in _CBOR_CONSTANTS:
        return "scalar", _CBOR_CONSTANTS[extra], at + 1
    layout = _CBOR_FLOATS.get(extra) or corrupt(f"byte {data[at]:#x} at {at} begins nothing known")
    (number,) = struct.unpack_from(layout, data, at + 1)
    return "scalar", number, at + 1 + struct.calcsize(layout)
