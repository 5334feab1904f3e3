"""Wrong bytes are set aside with evidence: never returned, never deleted."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.wrong_bytes import REPORT, evidence
from holdfast.domain.json_reading import read_object


def set_aside(disk: Disk, place: str, reason: str, data: bytes) -> str:
    """Keep bytes and why they are wrong; answers the name of the evidence. Idempotent by content."""
    files = evidence(place, reason, data)
    report = list(files)[-1]
    if disk.file_size(report) is None:
        applier = Applier(disk)
        applier.apply(kept(files))
        applier.sync()
    return report.removesuffix(REPORT)


def kept(files: dict[str, bytes]) -> list[Operation]:
    """Say what keeps evidence."""
    return [Operation(Kind.REPLACE, path, 0, data) for path, data in files.items()]


def reports(files: Files) -> list[dict[str, Any]]:
    """What is in quarantine and why; of a report that cannot be read there is its name."""
    found = []
    for name in files.list_folder(layout.QUARANTINE):
        if name.endswith(".json"):
            found.append(_read(files, f"{layout.QUARANTINE}/{name}"))
    return found


def _read(files: Files, path: str) -> dict[str, Any]:
    try:
        report = read_object(files.read(path) or b"")
        return {**report, "place": report["place"], "reason": report["reason"]}
    except (ValueError, KeyError):
        return {"place": path, "reason": "the report cannot be read"}
