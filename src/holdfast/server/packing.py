"""Large answers made small on their way, for whoever can take them so."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any

from holdfast.server.etags import named
from holdfast.server.operation import JSON, Answer, Asked
from holdfast.server.problems import encode

#: Less is sent as it is.
PACKED_BYTES_MIN = 4 * 1024
_LEVEL = 5
#: What a cache has to keep apart: whoever comes next to a browser may be somebody else.
VARY = "Accept-Encoding, Authorization, Cookie"


def packed(
    asked: Asked[Any, Any],
    body: Any,
    headers: Mapping[str, str] | None = None,
    media_type: str = JSON,
) -> Answer:
    """Write an answer, compressed where it is large and Accept-Encoding allows that."""
    data = body if isinstance(body, bytes) else encode(body)
    told = {**(headers or {}), "Vary": VARY}
    if len(data) >= PACKED_BYTES_MIN and _takes_gzip(asked.headers.get("accept-encoding", "")):
        # The same answer gives the same bytes.
        data = gzip.compress(data, _LEVEL, mtime=0)
        told["Content-Encoding"] = "gzip"
    return Answer(data, headers=told, media_type=media_type)


def unchanged(asked: Asked[Any, Any], headers: Mapping[str, str]) -> Answer | None:
    """Answer that whoever asks has it already (304), where If-None-Match names the ETag of `headers`.

    Which bytes are named, and what a cache has to keep apart, is told as with the answer itself.
    """
    known = named(headers["ETag"], asked.headers.get("if-none-match", ""))
    return None if known is None else Answer(status=304, headers={**headers, "ETag": known, "Vary": VARY})


def _takes_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        name, _, setting = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return setting.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
