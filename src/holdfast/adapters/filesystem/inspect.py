"""Looking at a store as a whole: what is wrong with it, and what takes the space."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.manifest import Manifest, ManifestDamaged, parse
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.rebuild import read_sums
from holdfast.adapters.filesystem.views import Views
from holdfast.ports import Finding


def check_store(disk: Disk, files: Files, views: Views) -> Iterator[Finding]:
    """Everything the store knows about itself, compared with what is there."""
    for report in quarantine.reports(disk):
        yield Finding(f"{layout.QUARANTINE}: {report['place']}", str(report["reason"]))
    for workflow_id in views.workflows():
        yield from _check_workflow(files, views, workflow_id)
    yield from _check_blobs(files)


def _check_workflow(files: Files, views: Views, workflow_id: str) -> Iterator[Finding]:
    folder = layout.workflow_folder(workflow_id)
    path = layout.manifest_path(folder)
    try:
        listed = parse(files.read(path) or b"")
    except ManifestDamaged as error:
        yield Finding(path, f"{error}; it is a view and was rebuilt in memory", harm=False)
        listed = views.rebuilt(workflow_id)
    yield from _check_records(files, folder, listed)
    for name, sha256 in read_sums(files.read(layout.sums_path(folder)) or b"").items():
        data = files.read(f"{folder}/{name}")
        if data is None:
            yield Finding(f"{folder}/{name}", "the file is gone")
        elif hashlib.sha256(data).hexdigest() != sha256:
            yield Finding(f"{folder}/{name}", "the bytes are not the ones that were sealed")


def _check_records(files: Files, folder: str, listed: Manifest) -> Iterator[Finding]:
    ends: dict[int, int] = {}
    for sequence, entry in listed.entries.items():
        if not entry.pruned:
            ends[entry.group] = max(ends.get(entry.group, 0), listed.offsets[sequence] + entry.length)
    for group, end in ends.items():
        path = f"{folder}/{layout.deltas_name(group)}"
        size = files.size(path) or 0
        if size < end:
            yield Finding(path, f"cut: {size} of {end} bytes")
    for sequence, keyframe in listed.keyframes.items():
        path = f"{folder}/{layout.keyframe_name(sequence, keyframe.suffix)}"
        if files.size(path) is None:
            yield Finding(path, "the keyframe is gone; restoring takes the one before")


def _check_blobs(files: Files) -> Iterator[Finding]:
    for shard in files.list_folders(layout.BLOBS):
        for name in files.list_folder(f"{layout.BLOBS}/{shard}"):
            path = f"{layout.BLOBS}/{shard}/{name}"
            data = files.read(path)
            if data is not None and hashlib.sha256(data).hexdigest() != name:
                yield Finding(path, "the blob's bytes are not those its name says")


def store_stats(disk: Disk) -> dict[str, Any]:
    """Bytes and files by kind."""
    kinds = {}
    for kind in (layout.CHECKPOINTS, layout.EVENTS, layout.BLOBS, "journal", layout.QUARANTINE, "recovery"):
        count, size = _measure(disk, kind)
        kinds[kind] = {"files": count, "bytes": size}
    total = sum(kind["bytes"] for kind in kinds.values())
    return {"url": f"file:{disk.root}", "bytes": total, "kinds": kinds}


def _measure(disk: Disk, folder: str) -> tuple[int, int]:
    count = size = 0
    for name in disk.list_folder(folder):
        path = f"{folder}/{name}"
        try:
            inner = _measure(disk, path)
        except NotADirectoryError:
            inner = (1, disk.file_size(path) or 0)
        count, size = count + inner[0], size + inner[1]
    return count, size
