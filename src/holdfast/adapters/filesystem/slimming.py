"""How much of the journal a commit takes, and what to do with one that takes too much."""

from __future__ import annotations

from dataclasses import replace

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.frame import frame_bytes
from holdfast.adapters.filesystem.staging import Staging
from holdfast.domain.errors import StateTooLargeError
from holdfast.domain.record import Commit, Keyframe

#: What a commit takes beside the bytes it brings: manifest lines, sums, paths.
_COMMIT_OVERHEAD_BYTES = 4096
#: What an audit entry takes beside its payload, and a file beside its bytes.
_ENTRY_BYTES = 768
_FILE_OVERHEAD_BYTES = 256
#: No frame is larger; a journal that grew for one has twice as much.
FRAME_BYTES_MAX = 256 * 1024 * 1024


def weight(commit: Commit) -> int:
    """About how many journal bytes a commit takes."""
    total = _COMMIT_OVERHEAD_BYTES
    if commit.blobs:
        total += sum(map(len, commit.blobs.values()))
    if commit.record is not None:
        total += len(commit.record.data)
    if commit.keyframe is not None:
        total += len(commit.keyframe.data)
    for event in commit.events:
        total += len(event.data)
    for entry in commit.audit:
        total += _ENTRY_BYTES + len(entry.stored)
    if commit.files:
        total += sum([_FILE_OVERHEAD_BYTES + len(data or b"") for data in commit.files.values()])
    return frame_bytes(total)


def slim(commit: Commit, staging: Staging, bytes_max: int) -> Commit:
    """Make durable files of values too large for the journal first; then they are referred to."""
    if weight(commit) <= bytes_max:
        return commit
    keyframe = commit.keyframe
    files = {layout.blob_path(sha256): data for sha256, data in commit.blobs.items()}
    if keyframe is not None:
        files[keyframe_path(commit.workflow_id, keyframe)] = keyframe.data
        keyframe = Keyframe(keyframe.entry, b"")
    needs = tuple(sha256 for sha256 in commit.needs if sha256 not in commit.blobs)
    rest = replace(commit, blobs={}, keyframe=keyframe, needs=needs)
    _check(rest)
    for path, data in files.items():
        staging.add(id(rest), path, data)
    return rest


def _check(commit: Commit) -> None:
    """Refuse what no journal takes; up to there it grows for what lies nowhere else."""
    total = weight(commit)
    if total > FRAME_BYTES_MAX:
        raise StateTooLargeError(
            f"one commit of {total} bytes does not fit the journal",
            place=commit.workflow_id,
            hint="Record less at once: keep large things elsewhere, and their names here.",
        )


def keyframe_path(workflow_id: str, keyframe: Keyframe) -> str:
    """Where the file of a keyframe lies."""
    name = layout.keyframe_name(keyframe.entry.sequence, keyframe.entry.suffix)
    return f"{layout.workflow_folder(workflow_id)}/{name}"
