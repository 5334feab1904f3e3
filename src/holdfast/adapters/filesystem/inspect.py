"""Looking at a store as a whole: what is wrong with it, and what takes the space."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.leases import parse as parse_lease
from holdfast.adapters.filesystem.manifest import Manifest, ManifestDamaged, parse
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.rebuild import event_lines, read_sums
from holdfast.adapters.filesystem.views import UNKNOWN_EVENT, Views, check_reach, event_seq
from holdfast.ports import Finding

_KEPT = (layout.CHECKPOINTS, layout.EVENTS, layout.LEASES, layout.BLOBS, layout.AUDIT)
#: Files of the store itself, but for those beside the order of leaves.
_NAMED = ("holds", "imports", "keys", "reports", "requests", "sessions")


def check_store(files: Files, views: Views) -> Iterator[Finding]:
    """Everything the store knows about itself, compared with what is there."""
    for report in quarantine.reports(files):
        yield _set_aside(report)
    for workflow_id in views.workflows():
        yield from _check_workflow(files, views, workflow_id)
    yield from _check_leases(files)
    yield from _check_blobs(files)


def _set_aside(report: dict[str, Any]) -> Finding:
    """Tell what stands in quarantine. In the place of a listing there is a new one, and nothing is lost."""
    place, reason = str(report["place"]), str(report["reason"])
    if place.endswith(f"/{layout.MANIFEST}"):
        said = f"{reason}; it is a view and was made anew, the bytes are kept"
        return Finding(f"{layout.QUARANTINE}: {place}", said, harm=False)
    return Finding(f"{layout.QUARANTINE}: {place}", reason, harm=not report.get("released"))


def _check_workflow(files: Files, views: Views, workflow_id: str) -> Iterator[Finding]:
    folder = layout.workflow_folder(workflow_id)
    path = layout.manifest_path(folder)
    try:
        listed = _listed(files, folder)
    except ManifestDamaged as error:
        yield Finding(path, f"{error}; it is a view and was rebuilt in memory", harm=False)
        listed = views.rebuilt(workflow_id)
    yield from _check_records(files, folder, listed)
    yield from _check_references(files, listed)
    yield from _check_events(files, workflow_id, listed)
    yield from _check_sums(files, folder, listed)


def _check_sums(files: Files, folder: str, listed: Manifest) -> Iterator[Finding]:
    """Compare sealed files with their sums. Where the manifest vouches for a file, the sums are wrong."""
    sums = files.read(layout.sums_path(folder))
    if sums is None and listed.keyframes:
        yield Finding(layout.sums_path(folder), "the file is gone; it is a view", harm=False)
    vouched = {
        layout.keyframe_name(sequence, keyframe.suffix): keyframe.sha256
        for sequence, keyframe in listed.keyframes.items()
    }
    for name, sha256 in read_sums(sums or b"").items():
        if layout.group_of(name) is None and layout.keyframe_of(name) is None:
            yield Finding(layout.sums_path(folder), f"a name that is none of ours: {name!r}", harm=False)
            continue
        data = files.read(f"{folder}/{name}")
        if data is None:
            yield Finding(f"{folder}/{name}", "the file is gone")
        elif (found := hashlib.sha256(data).hexdigest()) != sha256:
            harm = vouched.get(name) != found
            yield Finding(f"{folder}/{name}", "the bytes are not the ones that were sealed", harm=harm)


def _listed(files: Files, folder: str) -> Manifest:
    listed = parse(files.read(layout.manifest_path(folder)) or b"")
    if not listed.workflow_id and any(layout.group_of(name) for name in files.list_folder(folder)):
        raise ManifestDamaged("the manifest is missing")
    check_reach(files, folder, listed)
    return listed


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


def _check_references(files: Files, listed: Manifest) -> Iterator[Finding]:
    """Every blob that a checkpoint or a keyframe refers to is there."""
    kept = (entry.blobs for entry in listed.entries.values() if not entry.pruned)
    needed = {sha256 for blobs in kept for sha256 in blobs}
    needed.update(sha256 for keyframe in listed.keyframes.values() for sha256 in keyframe.blobs)
    for path in sorted(map(layout.blob_path, needed)):
        if files.size(path) is None:
            yield Finding(path, f"the blob is gone; checkpoints of {listed.workflow_id} need it")


def _check_events(files: Files, workflow_id: str, listed: Manifest) -> Iterator[Finding]:
    """Sequences without a hole, up to where the checkpoints say they went."""
    folder = layout.events_folder(workflow_id)
    for name in files.list_folder(folder):
        if layout.is_events_name(name) and not files.size(f"{folder}/{name}"):
            yield Finding(f"{folder}/{name}", "the file is empty; removed events leave no file")
    last = 0
    for line in event_lines(files, folder):
        sequence = event_seq(line)
        is_cut = not line.endswith(b"\n")
        if is_cut or sequence == UNKNOWN_EVENT or (last and sequence != last + 1):
            yield Finding(folder, f"damaged after event {last}")
            return
        last = sequence
    known = max((entry.event_seq for entry in listed.entries.values()), default=0)
    if last < known:
        yield Finding(folder, f"the last event is {last}, a checkpoint was made after event {known}")


def _check_leases(files: Files) -> Iterator[Finding]:
    for shard in files.list_folders(layout.LEASES):
        for folder in files.list_folders(f"{layout.LEASES}/{shard}"):
            path = f"{layout.LEASES}/{shard}/{folder}/{layout.LEASE}"
            lease = parse_lease(files.read(path) or b"").lease
            if lease is None or layout.lease_path(lease.workflow_id) != path:
                yield Finding(path, "not what was written; acquiring a lease of the workflow replaces it")


def _check_blobs(files: Files) -> Iterator[Finding]:
    for shard in files.list_folders(layout.BLOBS):
        for name in files.list_folder(f"{layout.BLOBS}/{shard}"):
            path = f"{layout.BLOBS}/{shard}/{name}"
            data = files.read(path)
            if data is not None and hashlib.sha256(data).hexdigest() != name:
                yield Finding(path, "the blob's bytes are not those its name says")


def store_stats(disk: Disk, pending_bytes: int) -> dict[str, Any]:
    """Bytes and files by kind, and how much of the journal the plain files do not durably hold yet."""
    kinds = {}
    for kind in (*_KEPT, *_NAMED, "journal", "progress", layout.QUARANTINE, "recovery"):
        count, size = _measure(disk, kind)
        kinds[kind] = {"files": count, "bytes": size}
    total = sum(kind["bytes"] for kind in kinds.values())
    return {"url": f"file:{disk.root}", "bytes": total, "pending_bytes": pending_bytes, "kinds": kinds}


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
