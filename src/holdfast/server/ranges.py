"""Parts of an answer (RFC 9110, 14): for whoever goes on with a download, or wants the beginning of much."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.server.etags import packed_etag
from holdfast.server.operation import Answer, Asked
from holdfast.server.packing import VARY, packed
from holdfast.server.problems import Refusal, encode

#: One part; whoever asks for several, or in other units, is given the whole.
_RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,15})-(?P<last>[0-9]{0,15})")


def ranged(asked: Asked[Any, Any], body: Any, headers: Mapping[str, str]) -> Answer:
    """Answer the part that Range asks for, or the whole; compressed is only the whole.

    Args:
        headers: of the whole, with its ETag.

    Raises:
        Refusal: it has no such part.
    """
    data = body if isinstance(body, bytes) else encode(body)
    told = {**headers, "Accept-Ranges": "bytes"}
    part = _part(asked.headers, headers["ETag"], len(data))
    if part is None:
        whole = packed(asked, data, told)
        if "Content-Encoding" not in whole.headers:
            return whole
        # Other bytes have another name: nobody shall put parts of both together.
        return replace(whole, headers={**whole.headers, "ETag": packed_etag(headers["ETag"])})
    told |= {"Content-Range": f"bytes {part.start}-{part.stop - 1}/{len(data)}", "Vary": VARY}
    return Answer(data[part.start : part.stop], 206, told)


def _part(headers: Mapping[str, str], etag: str, size: int) -> range | None:
    """Read which bytes are asked for; None: all of them.

    Raises:
        Refusal: there are no such bytes.
    """
    asked_for = _RANGE.fullmatch(headers.get("range", "").strip())
    # Only the very same version is gone on with, and a date names none.
    if asked_for is None or headers.get("if-range", etag).strip() != etag:
        return None
    first, last = asked_for["first"], asked_for["last"]
    if not (first or last) or (first and last and int(first) > int(last)):
        return None
    start = int(first) if first else max(size - int(last), 0)
    stop = min(int(last) + 1, size) if first and last else size
    if start >= stop:
        raise Refusal(
            416,
            "range_not_satisfiable",
            f"it has {size} bytes",
            place=asked_for[0],
            headers={"Content-Range": f"bytes */{size}"},
        )
    return range(start, stop)
