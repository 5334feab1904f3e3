"""Wrong bytes that a store comes upon by itself, as files of its quarantine: what they are, and why."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime

from holdfast.domain.quarantine_marks import FOLDER, HASH_CHARS

REPORT = ".json"
_BYTES = ".bin"
_OTHER = re.compile(r"[^a-z0-9._-]+")
_PLACE_CHARS_MAX = 80
#: Why a blob is replaced by one who brings the same value.
WRONG_BLOB = "its bytes are not what was committed; a commit of the same value has brought them anew"


def evidence(place: str, reason: str, data: bytes) -> dict[str, bytes]:
    """Answer the files that keep wrong bytes and tell of them, named by content; the report comes last."""
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{FOLDER}{_word(place)}-{sha256[:HASH_CHARS]}"
    report = {
        "place": place,
        "reason": reason,
        "sha256": sha256,
        "bytes": len(data),
        "found_at": datetime.now(UTC).isoformat(),
        "kind": "file",
    }
    return {name + _BYTES: data, name + REPORT: json.dumps(report, indent=2).encode() + b"\n"}


def _word(place: str) -> str:
    """Name a place so that the store takes it for the name of one of its files."""
    word = _OTHER.sub("_", place.lower())[-_PLACE_CHARS_MAX:].strip("._-") or "file"
    return f"{hashlib.sha256(place.encode()).hexdigest()[:8]}-{word}"
