"""What the files hold of one checkpoint, believed by nobody."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.rebuild import split_records


def evidence(files: Files, listed: Manifest, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
    """Yield record, keyframe and blobs of a checkpoint as they are; what is not there is left out."""
    folder = layout.workflow_folder(workflow_id)
    if record := _record(files, folder, listed, sequence):
        yield "record", record
    yield from _keyframe(files, folder, sequence)
    for sha256 in sorted(_blobs(listed, sequence)):
        blob = files.read(layout.blob_path(sha256))
        if blob is not None:
            yield f"blob-{sha256}", blob


def _record(files: Files, folder: str, listed: Manifest, sequence: int) -> bytes:
    """Read a record where the manifest says it lies, or else everything that it may be in.

    A manifest that was lost is made anew from the records: it lists neither one that is damaged nor those
    behind it in the same file. What cannot be told apart there is evidence as a whole.
    """
    entry = listed.entries.get(sequence)
    if entry is not None:
        path = f"{folder}/{layout.deltas_name(entry.group)}"
        return files.read(path, listed.offsets.get(sequence, 0), entry.length) or b""
    groups = filter(None, map(layout.group_of, files.list_folder(folder)))
    group = max((group for group in groups if group <= sequence), default=0)
    data = files.read(f"{folder}/{layout.deltas_name(group)}") or b""
    ends = [offset + length for offset, length, _ in split_records(data)]
    return data[ends[-1] if ends else 0 :]


def _keyframe(files: Files, folder: str, sequence: int) -> Iterator[tuple[str, bytes]]:
    """Read a keyframe by its name: its line in the manifest may be what is wrong."""
    for name in files.list_folder(folder):
        found = layout.keyframe_of(name)
        if found is not None and found[0] == sequence:
            data = files.read(f"{folder}/{name}")
            if data is not None:
                yield "keyframe", data


def _blobs(listed: Manifest, sequence: int) -> set[str]:
    entry, keyframe = listed.entries.get(sequence), listed.keyframes.get(sequence)
    named = {*(entry.blobs if entry else ()), *(keyframe.blobs if keyframe else ())}
    return {name for name in named if layout.is_sha256(name)}
