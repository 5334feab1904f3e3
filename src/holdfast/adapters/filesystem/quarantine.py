"""Wrong bytes are set aside with evidence: never returned, never deleted."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Any

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.overlay import Files

_OTHER = re.compile(r"[^a-z0-9._-]+")
_PLACE_CHARS_MAX = 80


def set_aside(disk: Disk, place: str, reason: str, data: bytes) -> str:
    """Keep bytes and why they are wrong; answers the name of the evidence. Idempotent by content."""
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{layout.QUARANTINE}/{_word(place)}-{sha256[:16]}"
    if disk.file_size(name + ".json") is not None:
        return name
    report = {
        "place": place,
        "reason": reason,
        "sha256": sha256,
        "bytes": len(data),
        "found_at": datetime.now(UTC).isoformat(),
        "kind": "file",
    }
    applier = Applier(disk)
    applier.apply(
        [
            Operation(Kind.REPLACE, name + ".bin", 0, data),
            Operation(Kind.REPLACE, name + ".json", 0, json.dumps(report, indent=2).encode() + b"\n"),
        ]
    )
    applier.sync()
    return name


def _word(place: str) -> str:
    """Name a place so that the store takes it for the name of one of its files."""
    word = _OTHER.sub("_", place.lower())[-_PLACE_CHARS_MAX:].strip("._-") or "file"
    return f"{hashlib.sha256(place.encode()).hexdigest()[:8]}-{word}"


def reports(files: Files) -> list[dict[str, Any]]:
    """What is in quarantine and why; of a report that cannot be read there is its name."""
    found = []
    for name in files.list_folder(layout.QUARANTINE):
        if name.endswith(".json"):
            found.append(_read(files, f"{layout.QUARANTINE}/{name}"))
    return found


def _read(files: Files, path: str) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads(files.read(path) or b"")
        return {**report, "place": report["place"], "reason": report["reason"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"place": path, "reason": "the report cannot be read"}
