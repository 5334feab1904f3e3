"""Payloads of audit entries: what must be erasable, stored beside the trail, and the commitment to it.

The commitment is the SHA-256 of the payload's line as stored, and that line begins with 32 random bytes, its
salt. A bare hash of a payload would give it away again: "approved", or a name from a list, is found by
hashing every candidate, and is personal data still. Once the salt is gone, together with the payload, there
is nothing to try candidates against; while both are there, nobody can find another payload that fits.

No length is kept with it: for short texts that alone tells one candidate from another.

A store that encrypts commits in the same way to the bytes it stores. There they are a ciphertext, whose key
and nonce do the work of the salt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.base64_text import to_base64
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError

SALT_BYTES = 32


def encode_payload(payload: Mapping[str, Any], salt: bytes) -> bytes:
    """Write the payload of an entry as its line.

    Args:
        payload: a plain tree.
        salt: 32 random bytes, new for each payload, and kept nowhere else.

    Raises:
        InvalidStateError: if the salt has another length.
        UnsupportedTypeError, UnstorableValueError: if the payload is no plain tree.
    """
    if len(salt) != SALT_BYTES:
        raise InvalidStateError(f"the salt of a payload has {SALT_BYTES} random bytes, not {len(salt)}")
    return plainjson.dumps({"salt": to_base64(salt), "data": dict(payload)}) + b"\n"


def commitment(stored: bytes) -> str:
    """Give what an entry says about its payload, from the bytes as stored."""
    return "sha256:" + hashlib.sha256(stored).hexdigest()


def decode_payload(stored: bytes, committed: str) -> dict[str, Any]:
    """Read a payload's line after checking it against the commitment in its entry.

    Raises:
        ChecksumMismatchError: if these are not the bytes that were committed to.
        CheckpointCorruptError: if they are, and still no payload.
    """
    if commitment(stored) != committed:
        raise ChecksumMismatchError("a payload is not the one its audit entry commits to", place=committed)
    fields = plainjson.loads(stored, strict=True)
    data = fields.get("data") if type(fields) is dict else None
    if type(data) is not dict:
        raise CheckpointCorruptError("a line is no payload of an audit entry", place=committed)
    return data
