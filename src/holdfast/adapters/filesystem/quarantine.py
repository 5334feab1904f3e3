"""Wrong bytes are set aside with evidence: never returned, never deleted."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation


def set_aside(disk: Disk, place: str, reason: str, data: bytes) -> str:
    """Keep bytes and why they are wrong; answers the name of the evidence. Idempotent by content."""
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{layout.QUARANTINE}/{place.replace('/', '_')}-{sha256[:16]}"
    if disk.file_size(name + ".json") is not None:
        return name
    report = {
        "place": place,
        "reason": reason,
        "sha256": sha256,
        "bytes": len(data),
        "found_at": datetime.now(UTC).isoformat(),
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


def reports(disk: Disk) -> list[dict[str, Any]]:
    """What is in quarantine and why."""
    found = []
    for name in disk.list_folder(layout.QUARANTINE):
        if name.endswith(".json"):
            handle = disk.open(f"{layout.QUARANTINE}/{name}")
            try:
                found.append(json.loads(disk.read(handle, disk.size(handle), 0)))
            finally:
                disk.close(handle)
    return found
