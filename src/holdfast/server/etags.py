"""ETags: what names one version of something that can be changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from holdfast.domain.record import Entry
from holdfast.server.problems import Detail, Refusal

_PACKED = '-gzip"'
#: Between the version of something and what else an answer about it says.
_BESIDE = "."
_ANSWER = re.compile(r'(\.[0-9a-f]{16})?(-gzip)?"\Z')


def checkpoint_etag(entry: Entry, noted: int = 0) -> str:
    """Name how a checkpoint stands: its content, which never changes, and what may be said about it.

    Args:
        noted: the event that said the last of labels and note; 0: none did.
    """
    told = (entry.checksum, entry.uuid, entry.status, entry.retry_count, entry.pinned, entry.pruned, noted)
    return f'"{hashlib.sha256(ascii(told).encode()).hexdigest()[:32]}"'


def answer_etag(version: str, body: bytes) -> str:
    """Name an answer about a version, which may say more than that: neighbours, damage, who may see what."""
    beside = hashlib.sha256(body).hexdigest()[:16]
    return f'{version[:-1]}{_BESIDE}{beside}"'


def named(etag: str, header: str) -> str | None:
    """Answer an ETag as an If-None-Match header names it, compressed or not; None if it does not.

    Weak ones are as good there.
    """
    for one in (part.strip().removeprefix("W/") for part in header.split(",")):
        if one == "*":
            return etag
        if one in (etag, packed_etag(etag)):
            return one
    return None


def check_match(etag: str, headers: Mapping[str, str]) -> None:
    """Refuse a change of something that is not what whoever asks has seen.

    Args:
        headers: of the request, by lower-case names.

    Raises:
        Refusal: If-Match is missing, is no ETag, or names another version.
    """
    header = headers.get("if-match", "")
    if not header.strip():
        raise Refusal(
            428,
            "version_missing",
            "say with If-Match which version is to be changed",
            hint="Send the ETag that GET answers.",
        )
    if not header.isascii() or not header.isprintable():
        raise Refusal(
            400, "invalid_request", "If-Match is no ETag", errors=[Detail("it is no ETag", "If-Match")]
        )
    # A weak name is never the same version, and `*` would mean whatever is there.
    if etag not in _versions(header):
        raise Refusal(
            412,
            "version_changed",
            "it was changed since it was looked at",
            hint="Look at it again, and send the new ETag.",
        )


def packed_etag(etag: str) -> str:
    """Name the compressed bytes of a version."""
    return etag.removesuffix('"') + _PACKED


def _versions(header: str) -> list[str]:
    """Read the versions that a header names; which answer told of them makes no difference there."""
    return [_ANSWER.sub('"', one.strip()) for one in header.split(",")]
