"""Storing derived keyframes, and with them the sums of the delta files they seal."""

from __future__ import annotations

import hashlib

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
    if stored is not None:
        draft.give_way(stored, keyframe.entry, folder)
    draft.add_manifest(workflow_id, folder, draft.add_keyframe(keyframe, folder))
    sealed = set(_sealed(listed))
    for group, sha256 in sums.items():
        if group in sealed:
            draft.add_sum(folder, sha256, layout.deltas_name(group))


def damaged_keyframe(views: Views, workflow_id: str, sequence: int) -> KeyframeEntry | None:
    """Answer the keyframe that is listed and is not, or not any more, what its sum says; None otherwise."""
    listed = views.manifest(workflow_id).keyframes.get(sequence)
    if listed is not None:
        try:
            views.keyframe(workflow_id, sequence)
        except (CheckpointCorruptError, CheckpointNotFoundError):
            return listed
    return None


def sums_of_sealed(files: Files, views: Views, workflow_id: str) -> dict[int, str]:
    """SHA-256 of delta files that nobody will append to any more and that are not summed yet, by group."""
    folder = layout.workflow_folder(workflow_id)
    summed = files.read(layout.sums_path(folder)) or b""
    sums = {}
    for group in _sealed(views.manifest(workflow_id)):
        name = layout.deltas_name(group)
        data = None if name.encode() in summed else files.read(f"{folder}/{name}")
        if data is not None:
            sums[group] = hashlib.sha256(data).hexdigest()
    return sums


def _sealed(listed: Manifest) -> list[int]:
    """Groups before the newest: their delta files are complete."""
    return sorted({entry.group for entry in listed.entries.values() if not entry.pruned})[:-1]
