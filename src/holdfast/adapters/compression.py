"""Compression of payloads, and decompression that cannot be made to fill the memory."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable
from io import BytesIO
from typing import Any, NoReturn

from holdfast.domain.errors import CheckpointCorruptError, ConfigError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NAMES = ("none", "zstd", "gzip")

#: Levels that cost about as much as writing the bytes saved: a commit waits for them.
DEFAULT_LEVELS = {"none": 0, "zstd": 2, "gzip": 6}

_GZIP_WINDOW = 31


def compress(name: str, parts: Iterable[bytes], level: int | None = None) -> bytes:
    """Compress bytes that are given in parts; the same parts give the same result.

    Args:
        name: none, zstd or gzip.
        parts: what to compress.
        level: the algorithm's own level; None for a sensible one.
    """
    _require_known(name)
    if name == "none":
        return b"".join(parts)
    stream = _compressor(name, DEFAULT_LEVELS[name] if level is None else level)
    pressed = BytesIO()
    for part in parts:
        pressed.write(stream.compress(part))
    pressed.write(stream.flush())
    return pressed.getvalue()


def _compressor(name: str, level: int) -> Any:
    if name == "gzip":
        return zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
    parameter = zstd.CompressionParameter
    options: dict[int, int] = {parameter.compression_level: level, parameter.checksum_flag: 1}
    return zstd.ZstdCompressor(options=options)


def decompress(name: str, data: bytes, raw_bytes: int, limit_bytes: int) -> bytes:
    """Decompress bytes that are declared to become `raw_bytes`.

    Raises:
        CheckpointCorruptError: they do not, more follows, or the result would exceed the limit.
    """
    _require_known(name)
    if not 0 <= raw_bytes <= limit_bytes:
        _corrupt(f"{raw_bytes} bytes are declared, the limit is {limit_bytes}")
    raw = data if name == "none" else _decompress(name, data, raw_bytes)
    if len(raw) != raw_bytes:
        _corrupt(f"{raw_bytes} bytes are declared, {len(raw)} or more came out")
    return raw


def _decompress(name: str, data: bytes, raw_bytes: int) -> bytes:
    """Decompress at most one byte more than declared, whatever the data claims about itself."""
    stream: Any = zstd.ZstdDecompressor() if name == "zstd" else zlib.decompressobj(_GZIP_WINDOW)
    try:
        raw = bytes(stream.decompress(data, raw_bytes + 1))
        # A frame may end in bytes that give no output, such as its checksum.
        while not stream.eof and len(raw) <= raw_bytes:
            more = bytes(stream.decompress(getattr(stream, "unconsumed_tail", b""), raw_bytes + 1 - len(raw)))
            if not more and not stream.eof:
                _corrupt("the compressed bytes are cut short")
            raw += more
    except (zstd.ZstdError, zlib.error, EOFError) as fault:
        _corrupt(f"the {name} bytes are damaged ({fault})")
    if stream.unused_data:
        _corrupt(f"{len(stream.unused_data)} bytes follow the compressed ones")
    return raw


def _require_known(name: str) -> None:
    if name not in NAMES:
        raise ConfigError(f"compression {name!r} is unknown", hint=f"Use one of {', '.join(NAMES)}.")


def _corrupt(message: str) -> NoReturn:
    raise CheckpointCorruptError(message)
