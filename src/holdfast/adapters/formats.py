"""How payloads are written: an encoding, and compression above a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.adapters import compression as compressors
from holdfast.adapters.codecs import codec
from holdfast.adapters.packer import pack_plain
from holdfast.domain.errors import ConfigError
from holdfast.domain.value import value
from holdfast.ports import Codec

COMPRESSION_THRESHOLD_BYTES = 100 * 1024
DECODED_LIMIT_BYTES = 1024 * 1024 * 1024

_ENCODING_OF_MODE = {"default": "json", "performance": "msgpack", "compliance": "cbor"}


@value
class Encoded:
    """A payload as stored, what it was encoded and compressed with, and what it was before compression."""

    encoding: str
    compression: str
    data: bytes
    raw: bytes


#: What saves less stays as it is: every restore would pay for it, and nobody could read it with `cat`.
WORTHWHILE_RATIO = 2 / 3
#: JSON that is so many times as long as MessagePack does not consist of texts.
_LONGER_RATIO = 1.2


class Formats:
    """Writes payloads one way and reads them every way."""

    def __init__(
        self,
        encoding: str = "json",
        compression: str = "zstd",
        threshold_bytes: int = COMPRESSION_THRESHOLD_BYTES,
        level: int | None = None,
        limit_bytes: int = DECODED_LIMIT_BYTES,
    ) -> None:
        """Choose how to write.

        Args:
            encoding: json, msgpack or cbor.
            compression: none, zstd or gzip, for payloads of at least `threshold_bytes`.
            threshold_bytes: smaller payloads are not compressed.
            level: the compression's level; None for a sensible one.
            limit_bytes: payloads that claim to decompress to more are refused.

        Raises:
            ConfigError: a name is unknown, or its package is not installed.
        """
        if compression not in compressors.NAMES:
            raise ConfigError(
                f"compression {compression!r} is unknown", hint=f"Use one of {', '.join(compressors.NAMES)}."
            )
        self._codecs: dict[str, Codec] = {encoding: codec(encoding)}
        self.encoding = encoding
        self._compression = compression
        self._threshold_bytes = threshold_bytes
        self._level = level
        self._limit_bytes = limit_bytes

    def encode(self, plain: Any) -> Encoded:
        """Encode a plain tree, and compress it if it is large and that pays.

        What is compressed nobody reads with `cat`: it is MessagePack, not JSON, in a fortieth of the time.
        """
        packed_bytes = 0
        if self.encoding == "json":
            packed = pack_plain(plain)
            packed_bytes = len(packed)
            if packed_bytes >= self._threshold_bytes and (pressed := self.compressed([packed])):
                return Encoded("msgpack", *pressed, packed)
            del packed
        raw = self._codecs[self.encoding].encode(plain)
        if len(raw) < self._threshold_bytes:
            return Encoded(self.encoding, "none", raw, raw)
        # Numbers are longer in JSON, and may pay there. Texts are as long, and do not pay a second time.
        is_hopeless = self._threshold_bytes <= packed_bytes and len(raw) < packed_bytes * _LONGER_RATIO
        compression, data = (None if is_hopeless else self.compressed([raw])) or ("none", raw)
        return Encoded(self.encoding, compression, data, raw)

    def compressed(self, parts: Sequence[bytes]) -> tuple[str, bytes] | None:
        """Compress encoded bytes if they are large and that pays; None if not."""
        raw_bytes = sum(map(len, parts))
        if self._compression == "none" or raw_bytes < self._threshold_bytes:
            return None
        data = compressors.compress(self._compression, parts, self._level)
        return (self._compression, data) if len(data) <= raw_bytes * WORTHWHILE_RATIO else None

    def decode(self, encoding: str, compression: str, data: bytes, raw_bytes: int) -> Any:
        """Decode a payload to a plain tree.

        Raises:
            CheckpointCorruptError: the bytes are not what was declared.
            ConfigError: the encoding is unknown, or its package is not installed.
        """
        raw = compressors.decompress(compression, data, raw_bytes, self._limit_bytes)
        if encoding not in self._codecs:
            self._codecs[encoding] = codec(encoding)
        return self._codecs[encoding].decode(raw)


def for_mode(
    mode: str,
    compression: str = "zstd",
    threshold_bytes: int = COMPRESSION_THRESHOLD_BYTES,
    level: int | None = None,
    limit_bytes: int = DECODED_LIMIT_BYTES,
) -> Formats:
    """Choose the encoding by what matters most: `default`, `performance` or `compliance`."""
    if mode not in _ENCODING_OF_MODE:
        raise ConfigError(f"mode {mode!r} is unknown", hint=f"Use one of {', '.join(_ENCODING_OF_MODE)}.")
    return Formats(_ENCODING_OF_MODE[mode], compression, threshold_bytes, level, limit_bytes)
