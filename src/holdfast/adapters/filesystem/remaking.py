"""A manifest that is not what was written, made anew for whoever is about to add lines to it."""

from __future__ import annotations

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.staging import write_file
from holdfast.adapters.filesystem.views import Views


def remake_manifest(disk: Disk, files: Files, views: Views, workflow_id: str, damaged: bytes) -> None:
    """Write a manifest anew from the records, and set aside what it was.

    So is what lies behind the last record that can be read: a manifest that is made anew would list neither
    that nor anything that is added behind it. Needs the append lock, and nothing pending of the workflow.
    """
    folder = layout.workflow_folder(workflow_id)
    path, made = layout.manifest_path(folder), views.rebuilt(workflow_id)
    last = made.last
    group, end = (last.group, made.offsets.get(last.sequence, 0) + last.length) if last else (0, 0)
    for other in filter(None, map(layout.group_of, files.list_folder(folder))):
        if other >= group:
            _cut(disk, files, layout.deltas_path(folder, other), end if other == group else 0)
    quarantine.set_aside(disk, path, "the manifest was not what was written", damaged)
    write_file(disk, path, made.lines())


def _cut(disk: Disk, files: Files, path: str, end: int) -> None:
    data = files.read(path) or b""
    if len(data) > end:
        quarantine.set_aside(disk, path, "a record cannot be read, nor what lies behind it", data[end:])
    if end:
        if len(data) > end:
            write_file(disk, path, data[:end])
        return
    disk.unlink(path)
    disk.sync_folder(path.rpartition("/")[0])
