"""Bytes as text: base64 in its one canonical spelling."""

from __future__ import annotations

import base64
import binascii

from holdfast.domain.errors import CheckpointCorruptError


def to_base64(data: bytes) -> str:
    """Write bytes in standard base64."""
    return base64.b64encode(data).decode()


def from_base64(text: str, what: str, place: str = "") -> bytes:
    """Read base64 in its one canonical spelling; else two texts would stand for one signature.

    Raises:
        CheckpointCorruptError: if it is not that.
    """
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        data = b""
    if not data or to_base64(data) != text:
        raise CheckpointCorruptError(f"{what} is not in base64", place=place)
    return data
