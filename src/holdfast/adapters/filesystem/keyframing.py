"""Storing derived keyframes, and with them the sums of the delta files they seal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby, takewhile

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.filesystem.writer import Draft
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.domain.record import Keyframe, KeyframeEntry


def add_keyframe(
    draft: Draft,
    views: Views,
    workflow_id: str,
    keyframe: Keyframe,
    sums: dict[int, str],
    damaged: KeyframeEntry | None = None,
) -> None:
    """Store a keyframe, its sum and those of sealed files, unless it is there or not wanted any more.

    One that is there is replaced if it is `damaged`.
    """
    folder = layout.workflow_folder(workflow_id)
    listed = views.manifest(workflow_id)
    sequence = keyframe.entry.sequence
    known, stored = listed.entries.get(sequence), listed.keyframes.get(sequence)
    if known is None or (known.pruned if stored is None else stored != damaged):
        return
    draft.require(set(keyframe.entry.blobs))
    if stored is not None:
        draft.give_way(stored, keyframe.entry, folder)
    line = draft.add_keyframe(keyframe, folder)
    draft.add_manifest(workflow_id, layout.manifest_path(folder), line)
    oldest = min(sums, default=0)
    sealed = set(takewhile(lambda group: group >= oldest, _sealed(listed))) if sums else set()
    for group in sorted(sealed & sums.keys()):
        draft.add_sum(folder, sums[group], layout.deltas_name(group))


def damaged_keyframe(views: Views, listed: Manifest, sequence: int) -> KeyframeEntry | None:
    """Answer the keyframe that is listed and is not, or not any more, what its sum says; None otherwise."""
    stored = listed.keyframes.get(sequence)
    if stored is not None:
        try:
            views.keyframe(listed.workflow_id, sequence)
        except (CheckpointCorruptError, CheckpointNotFoundError):
            return stored
    return None


def sums_of_sealed(files: Files, listed: Manifest) -> dict[int, str]:
    """SHA-256 of delta files that nobody will append to any more and that are not summed yet, by group.

    They are summed in their order: before one that is summed all are. A long workflow has thousands.
    """
    folder = layout.workflow_folder(listed.workflow_id)
    summed = files.read(layout.sums_path(folder)) or b""
    sums = {}
    for group in _sealed(listed):
        name = layout.deltas_name(group)
        if summed.rfind(f"  {name}\n".encode()) >= 0:
            break
        data = files.read(f"{folder}/{name}")
        if data is not None:
            sums[group] = hashlib.sha256(data).hexdigest()
    return sums


def _sealed(listed: Manifest) -> Iterator[int]:
    """Groups before the newest, the newest of them first: their delta files are complete."""
    living = (entry.group for entry in reversed(listed.entries.values()) if not entry.pruned)
    newest = next(living, 0)
    return (group for group, _ in groupby(living) if group < newest)
