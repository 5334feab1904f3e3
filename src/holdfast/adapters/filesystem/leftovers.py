"""What writers left that were killed while they wrote a large value: found, and told.

A writer stages a large value under a temporary name, then puts it in its place and appends the frame that
refers to it, both under one hold of the append lock. So one that dies leaves a staged file, or a blob that
nothing names. Under the lock no blob is between the two: one that no manifest names then, what is pending
included, is nobody's. Whoever found it there and only refers to it looks again, under the same lock, before
it commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.ring_files import FOLDER
from holdfast.adapters.filesystem.staging import staged_files
from holdfast.adapters.filesystem.views import Views
from holdfast.ports import Finding

_SHA256 = re.compile(rb"[0-9a-f]{64}")
_PLACE = "leftovers: "
_REMEDY = "`holdfast doctor --fix` takes away what killed writers left, and so does any erasure"


def unnamed_blobs(files: Files, views: Views, going: str = "") -> tuple[str, ...]:
    """Name the blobs that nothing in the store names, a folder of a workflow that goes left out.

    Whoever takes them away looks again under the append lock. Where a manifest is damaged, everything beside
    it counts, and so does what was set aside: what might be brought back one day stays whole.
    """
    found = {path.rpartition("/")[2] for path in blob_paths(files)}
    for folder in _folders(files) if found else ():
        if folder != going:
            found.difference_update(_named_in(files, layout.manifest_path(folder)))
    for path in _doubtful(files, views, going) if found else ():
        found.difference_update(_named_in(files, path))
    return tuple(sorted(found))


def blob_paths(files: Files) -> Iterator[str]:
    """Paths of all blobs."""
    for shard in files.list_folders(layout.BLOBS):
        for name in files.list_folder(f"{layout.BLOBS}/{shard}"):
            if layout.is_sha256(name) and name.startswith(shard):
                yield layout.blob_path(name)


def _folders(files: Files) -> Iterator[str]:
    for shard in files.list_folders(layout.CHECKPOINTS):
        for name in files.list_folders(f"{layout.CHECKPOINTS}/{shard}"):
            yield f"{layout.CHECKPOINTS}/{shard}/{name}"


def _doubtful(files: Files, views: Views, going: str) -> Iterator[str]:
    """Paths of what may name blobs beside the manifests that can be read."""
    sound = {
        layout.workflow_folder(workflow_id)
        for workflow_id in views.workflows()
        if views.unsound_manifest(workflow_id) is None
    }
    for folder in _folders(files):
        if folder != going and folder not in sound:
            yield from files.walk(folder)
    yield from files.walk(layout.QUARANTINE)


def _named_in(files: Files, path: str) -> set[str]:
    return {name.decode() for name in _SHA256.findall(files.read(path) or b"")}


def check_leftovers(disk: Disk, files: Files, views: Views) -> Iterator[Finding]:
    """Tell what takes space and belongs to nothing. No reader can tell a dead writer from a living one."""
    staged = [f"{FOLDER}/{name}" for name in staged_files(disk)]
    if staged:
        told = f"{_told(disk, staged)} being written, or left by a writer that was killed"
        yield Finding(f"{_PLACE}{FOLDER}", f"{told}; {_REMEDY}", harm=False)
    unnamed = [layout.blob_path(sha256) for sha256 in unnamed_blobs(files, views)]
    if unnamed:
        told = f"{_told(disk, unnamed)} that nothing names"
        yield Finding(f"{_PLACE}{layout.BLOBS}", f"{told}; {_REMEDY}", harm=False)


def _told(disk: Disk, paths: list[str]) -> str:
    size_bytes = sum(disk.file_size(path) or 0 for path in paths)
    return f"{len(paths)} {'file' if len(paths) == 1 else 'files'} with {size_bytes} bytes"
