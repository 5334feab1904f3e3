"""ETags: what names one version of something that can be changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from holdfast.domain.record import Entry
from holdfast.server.problems import Detail, Refusal

_PACKED = '-gzip"'


def checkpoint_etag(entry: Entry, noted: int = 0) -> str:
    """Name how a checkpoint stands: its content, which never changes, and what may be said about it.

    Args:
        noted: the event that said the last of labels and note; 0: none did.
    """
    told = (entry.checksum, entry.uuid, entry.status, entry.retry_count, entry.pinned, entry.pruned, noted)
    return f'"{hashlib.sha256(ascii(told).encode()).hexdigest()[:32]}"'


def is_named(etag: str, header: str) -> bool:
    """Tell whether an If-None-Match header names a version; weak ones are as good there."""
    return any(one == "*" or one.removeprefix("W/") == etag for one in _listed(header))


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
    if etag not in _listed(header):
        raise Refusal(
            412,
            "version_changed",
            "it was changed since it was looked at",
            hint="Look at it again, and send the new ETag.",
        )


def packed_etag(etag: str) -> str:
    """Name the compressed bytes of a version."""
    return etag.removesuffix('"') + _PACKED


def _listed(header: str) -> list[str]:
    """Read the versions that a header names; which bytes of them makes no difference there."""
    named = (one.strip() for one in header.split(","))
    return [one.removesuffix(_PACKED) + '"' if one.endswith(_PACKED) else one for one in named]
