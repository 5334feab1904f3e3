"""Plain trees as compact UTF-8 JSON: key order kept, nothing escaped that need not be, nothing lossy.

The C encoder and decoder of the standard library do the work. What they cannot do (non-finite floats, huge
integers, deep nesting) goes a slower way that gives the same bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import json.decoder
import json.encoder
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from holdfast.domain.errors import CheckpointCorruptError, UnstorableValueError, UnsupportedTypeError
from holdfast.domain.msgpack import DECODE_DEPTH, INT_MAX, INT_MIN, contains
from holdfast.domain.tree import TAG

_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_USUAL_NAN, _INFINITY, _MINUS_INFINITY = (struct.pack(">d", number) for number in _FLOATS.values())
#: The scanner of the standard library: reads a string from after its quote, answers it and its end.
_scan_string: Callable[[str, int, bool], tuple[str, int]] = vars(json.decoder)["scanstring"]
_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|true|false|null")


def dumps(plain: Any) -> bytes:
    """Encode a plain tree.

    Raises:
        UnsupportedTypeError: the tree holds something that is not plain.
        UnstorableValueError: a string has lone surrogates, or the tree is too deep.
    """
    try:
        return "".join(_chunks(plain, 0)).encode()
    except UnicodeEncodeError as fault:
        raise _unencodable(fault) from fault
    except RecursionError:
        return b"".join(piece.encode() for piece in _pieces(plain))
    except ValueError:
        return _dumps_odd(plain)


def encoded(text: str) -> bytes:
    """Give the bytes of JSON.

    Raises:
        UnstorableValueError: a string in it has lone surrogates.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as fault:
        raise _unencodable(fault) from fault


def _unencodable(fault: UnicodeEncodeError) -> UnstorableValueError:
    return UnstorableValueError(f"a string in a plain tree has lone surrogates ({fault})")


#: Writes one text as `dumps` does: lines whose fields are known need no encoder for trees, and half the time.
quoted: Callable[[str], str] = vars(json.encoder)["encode_basestring"]


def as_json_tree(plain: Any) -> Any:
    """Turn a plain tree into one that JSON has words for: bytes and odd numbers become tagged objects."""
    data = dumps(plain)
    try:
        return json.loads(data)
    except RecursionError:
        # Nested deeper than the decoder goes; `dumps` knows how to write it all the same.
        return plain


def loads(data: bytes, *, strict: bool = False) -> Any:
    """Decode JSON to a plain tree, bytes and non-finite floats native again.

    Args:
        data: UTF-8 JSON.
        strict: refuse objects in which a key stands twice, too. Slower.

    Raises:
        CheckpointCorruptError: the bytes are not JSON as Holdfast writes it.
    """
    try:
        text = str(data, "utf-8")
        value = _decoded(_decoder_for(data, strict=strict), text)
        # Only an escape can bring in a lone surrogate, and Holdfast escapes nothing but control characters.
        if contains(data, b"\\u", rare=0) and (b"\\ud" in data or b"\\uD" in data):
            _dumps_odd(value)
        return value
    except RecursionError:
        return _Reader(text).read()
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as fault:
        raise CheckpointCorruptError(f"the stored JSON cannot be read ({fault})") from fault


def loads_object(data: bytes) -> dict[str, Any]:
    """Decode JSON that is an object.

    Raises:
        CheckpointCorruptError: it is none, or no JSON as Holdfast writes it.
    """
    found = loads(data)
    if type(found) is not dict:
        raise CheckpointCorruptError("the stored JSON is no object")
    return found


def _decoded(decoder: json.JSONDecoder, text: str) -> Any:
    """Decode a text; where Holdfast writes no space none is looked for, which short lines gain most from."""
    if text.startswith(("{", "[")):
        value, end = decoder.raw_decode(text)
        if text[end:] in ("", "\n"):
            return value
    return decoder.decode(text)


def _dumps_odd(plain: Any) -> bytes:
    """Encode a tree after its odd numbers were tagged."""
    try:
        return _encode(_tag_numbers(plain)).encode()
    except RecursionError:
        return b"".join(piece.encode() for piece in _pieces(plain))


def _native(value: Any) -> Any:
    """Tag what the encoder meets that JSON has no word for."""
    if type(value) in (bytes, bytearray, memoryview):
        return {TAG: "bytes", "v": base64.b64encode(value).decode()}
    raise UnsupportedTypeError(f"{type(value).__qualname__} is not part of a plain tree")


def _odd_float(value: float) -> str:
    """Name an infinity or NaN; a NaN that is not the usual one by its bits."""
    bits = struct.pack(">d", value)
    return str(value) if bits in (_USUAL_NAN, _INFINITY, _MINUS_INFINITY) else bits.hex()


def _number(value: float) -> Any:
    """Tag a number that JSON cannot hold; leave others."""
    if type(value) is float and not math.isfinite(value):
        return {TAG: "float", "v": _odd_float(value)}
    if type(value) is int and not INT_MIN <= value <= INT_MAX:
        return {TAG: "int", "v": hex(value)}
    return value


def _tag_numbers(plain: Any) -> Any:
    root = [plain]
    todo: list[Any] = [root]
    while todo:
        owner = todo.pop()
        for key, value in owner.items() if type(owner) is dict else enumerate(owner):
            if type(value) is dict or type(value) is list:
                owner[key] = value.copy()
                todo.append(owner[key])
            elif type(value) is float or type(value) is int:
                owner[key] = _number(value)
    return root[0]


def _pieces(plain: Any) -> Iterator[str]:
    """Write a deep tree piece by piece, with a stack instead of recursion."""
    stack: list[tuple[Iterator[Any], str]] = [(iter((plain,)), "")]
    fresh = True
    while stack:
        items, close = stack[-1]
        for item in items:
            if close and not fresh:
                yield ","
            key, value = item if close == "}" else (None, item)
            if key is not None:
                yield _encode(key) + ":"
            fresh = type(value) in (dict, list)
            if fresh:
                yield "{" if type(value) is dict else "["
                stack.append((iter(value.items()), "}") if type(value) is dict else (iter(value), "]"))
                break
            yield _encode(_number(value))
        else:
            yield close
            stack.pop()
            fresh = False
        if len(stack) > DECODE_DEPTH:
            raise UnstorableValueError(f"nested deeper than {DECODE_DEPTH} levels, or contains itself")


def _refuse_constant(word: str) -> NoReturn:
    raise CheckpointCorruptError(f"{word} is not JSON")


def _revive_native(tagged: dict[str, Any]) -> Any:
    """Turn a tagged object that other encodings hold natively into that value."""
    what = tagged.get(TAG)
    if what == "bytes":
        try:
            return base64.b64decode(tagged["v"], validate=True)
        except binascii.Error as fault:
            raise CheckpointCorruptError(f"stored bytes are not base64 ({fault})") from fault
    if what == "float":
        text = tagged["v"]
        return _FLOATS[text] if text in _FLOATS else struct.unpack(">d", bytes.fromhex(text))[0]
    return tagged


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise CheckpointCorruptError(f"the key {twice!r} stands twice in one object")
    return _revive_native(value)


def _encoder() -> Callable[[Any, int], Iterable[str]]:
    """Make the standard library's encoder once: `JSONEncoder.encode` makes a new one for every call."""
    parts = vars(json.encoder)
    if parts["c_make_encoder"] is None:
        encoder = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"), default=_native
        )
        return lambda plain, _: encoder.encode(plain)
    # Markers, default, strings, indent, separators; keys neither sorted nor skipped, no NaN.
    make, strings = parts["c_make_encoder"], parts["encode_basestring"]
    chunks: Callable[[Any, int], Iterable[str]]
    chunks = make(None, _native, strings, None, ":", ",", False, False, False)
    return chunks


#: Writes a tree, whose depth is 0, as texts that belong together.
_chunks = _encoder()


def _encode(plain: Any) -> str:
    return "".join(_chunks(plain, 0))


_PLAIN = json.JSONDecoder(parse_constant=_refuse_constant)
_TAGGED = json.JSONDecoder(parse_constant=_refuse_constant, object_hook=_revive_native)
_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_unique)


def _decoder_for(data: bytes, *, strict: bool) -> json.JSONDecoder:
    """Choose the fastest decoder that is right: a hook runs for every object, so only where it has work."""
    if strict:
        return _STRICT
    has_native = contains(data, b'"$hf"', rare=1) and (b'"bytes"' in data or b'"float"' in data)
    return _TAGGED if has_native else _PLAIN


class _Reader:
    """Reads JSON that is nested too deep for the C decoder."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._open: list[tuple[Any, str | None]] = []

    def read(self) -> Any:
        try:
            return self._run()
        except (IndexError, KeyError, TypeError, ValueError) as fault:
            raise CheckpointCorruptError(f"the stored JSON cannot be read ({fault})") from fault

    def _run(self) -> Any:
        while True:
            mark = self._peek()
            if mark in "[{":
                if self._begin(mark):
                    continue
                value: Any = [] if mark == "[" else {}
            else:
                value = self._scalar(mark)
            value, is_done = self._attach(value)
            if is_done:
                return self._end(value)

    def _begin(self, mark: str) -> bool:
        """Open a container; answer whether it has items."""
        self._at += 1
        if self._peek() == ("]" if mark == "[" else "}"):
            self._at += 1
            return False
        if len(self._open) >= DECODE_DEPTH:
            raise ValueError(f"nested deeper than {DECODE_DEPTH} levels")
        self._open.append(([], None) if mark == "[" else ({}, self._key({})))
        return True

    def _attach(self, value: Any) -> tuple[Any, bool]:
        """Put a value where it belongs and close what ends there; answer the root once all is closed."""
        while self._open:
            owner, key = self._open.pop()
            if key is None:
                owner.append(value)
            else:
                owner[key] = value
            mark = self._take()
            if mark == ",":
                self._open.append((owner, None if key is None else self._key(owner)))
                return None, False
            if mark != ("]" if key is None else "}"):
                raise ValueError(f"unexpected {mark!r} at {self._at}")
            value = _revive_native(owner) if key is not None else owner
        return value, True

    def _key(self, owner: dict[str, Any]) -> str:
        if self._take() != '"':
            raise ValueError(f"a key is missing at {self._at}")
        key, self._at = _scan_string(self._text, self._at, True)
        if key in owner or self._take() != ":":
            raise ValueError(f"the key {key!r} stands twice or has no value")
        return key

    def _scalar(self, mark: str) -> Any:
        if mark == '"':
            text, self._at = _scan_string(self._text, self._at + 1, True)
            text.encode()
            return text
        found = _WORD.match(self._text, self._at)
        if found is None:
            raise ValueError(f"unexpected {mark!r} at {self._at}")
        self._at = found.end()
        return json.loads(found.group())

    def _peek(self) -> str:
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at]

    def _take(self) -> str:
        mark = self._peek()
        self._at += 1
        return mark

    def _end(self, value: Any) -> Any:
        if self._text[self._at :].strip(" \t\n\r"):
            raise ValueError(f"more follows the value at {self._at}")
        return value
