"""What removing checkpoints does to the files: tombstones first, then space."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.manifest import Manifest, removal_line
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.views import Views, event_seq
from holdfast.domain.record import Removal


@dataclass(slots=True)
class Plan:
    operations: list[Operation] = field(default_factory=list)
    freed_bytes: int = 0


def plan_removal(
    files: Files, views: Views, workflow_id: str, removal: Removal, rewrite_bytes_max: int
) -> Plan:
    """Operations that remove, computed under the append lock so that nothing changes meanwhile.

    A manifest up to `rewrite_bytes_max` is written anew without the dead lines; a longer one gets a line.
    """
    folder = layout.workflow_folder(workflow_id)
    listed = views.manifest(workflow_id)
    kept = _without(listed, removal)
    plan = Plan()
    if kept.entries == listed.entries and kept.keyframes == listed.keyframes and not removal.erases:
        return plan
    plan.operations.append(_manifest_operation(files, folder, kept, removal, rewrite_bytes_max))
    gone = _group_files(listed, removal)
    sums = files.read(layout.sums_path(folder))
    if sums is not None and gone:
        plan.operations.append(
            Operation(Kind.REPLACE, layout.sums_path(folder), 0, _sums_without(sums, gone))
        )
    _unlink(plan, files, (f"{folder}/{name}" for name in sorted(gone)))
    _unlink(plan, files, _old_events(files, workflow_id, removal.events_through))
    if removal.erases:
        _unlink(plan, files, _strays(files, listed, folder))
        plan.operations += _cut_events(files, workflow_id, removal.events_through)
    _unlink(plan, files, map(layout.blob_path, _unused(files, views, removal.blobs, kept, folder)))
    return plan


def _manifest_operation(
    files: Files, folder: str, kept: Manifest, removal: Removal, rewrite_bytes_max: int
) -> Operation:
    path = layout.manifest_path(folder)
    lines = kept.lines()
    if len(lines) <= rewrite_bytes_max:
        return Operation(Kind.REPLACE, path, 0, lines)
    return Operation(Kind.WRITE, path, files.size(path) or 0, removal_line(removal))


def _without(listed: Manifest, removal: Removal) -> Manifest:
    """The manifest after the removal."""
    kept = listed.copy()
    kept.remove(removal.sequences, removal.groups)
    return kept


def _group_files(listed: Manifest, removal: Removal) -> set[str]:
    names = {layout.deltas_name(group) for group in removal.groups}
    for group in removal.groups:
        if (keyframe := listed.keyframes.get(group)) is not None:
            names.add(layout.keyframe_name(group, keyframe.suffix))
    return names


def _strays(files: Files, listed: Manifest, folder: str) -> list[str]:
    """Files of records and states that are not listed: placed by a writer that died before it said so.

    Under the append lock none of them is a living one's.
    """
    known = {layout.deltas_name(entry.group) for entry in listed.entries.values()}
    known.update(layout.keyframe_name(sequence, one.suffix) for sequence, one in listed.keyframes.items())
    names = (name for name in files.list_folder(folder) if name not in known)
    return [f"{folder}/{name}" for name in names if layout.group_of(name) or layout.keyframe_of(name)]


def _sums_without(sums: bytes, gone: set[str]) -> bytes:
    names = {name.encode() for name in gone}
    lines = sums.splitlines(keepends=True)
    return b"".join(line for line in lines if line.rstrip(b"\n").partition(b"  ")[2] not in names)


def _old_events(files: Files, workflow_id: str, through: int) -> list[str]:
    """Event files all of whose events may go. The newest file always stays: it carries the head."""
    folder = layout.events_folder(workflow_id)
    names = [name for name in files.list_folder(folder) if layout.is_events_name(name)]
    old = []
    for name in names[:-1]:
        lines = (files.read(f"{folder}/{name}") or b"").splitlines(keepends=True)
        if lines and event_seq(lines[-1]) > through:
            break
        old.append(f"{folder}/{name}")
    return old


def _cut_events(files: Files, workflow_id: str, through: int) -> list[Operation]:
    """Write the newest event file anew without the lines that go: which also has the journal wiped."""
    folder = layout.events_folder(workflow_id)
    names = [name for name in files.list_folder(folder) if layout.is_events_name(name)]
    if not names:
        return []
    path = f"{folder}/{names[-1]}"
    lines = (files.read(path) or b"").splitlines(keepends=True)
    kept = [line for line in lines if event_seq(line) > through]
    return [Operation(Kind.REPLACE, path, 0, b"".join(kept))] if kept else []


def plan_sweep(files: Files, views: Views, blobs: tuple[str, ...]) -> Plan:
    """Operations that remove blobs without a name, as far as they have none under the append lock."""
    plan = Plan()
    _unlink(plan, files, map(layout.blob_path, _unused(files, views, blobs, Manifest(), "")))
    return plan


def _unused(files: Files, views: Views, blobs: tuple[str, ...], kept: Manifest, folder: str) -> list[str]:
    """Those blobs that no manifest in the store names any more."""
    candidates = set(blobs).difference(_named_by(kept))
    for workflow_id in views.workflows() if candidates else ():
        other = layout.workflow_folder(workflow_id)
        if other != folder and candidates:
            data = files.read(layout.manifest_path(other)) or b""
            candidates = {sha256 for sha256 in candidates if sha256.encode() not in data}
        if other != folder and candidates:
            # A manifest that is cut or gone names too few: as any other reader, we believe the records then.
            candidates.difference_update(_named_by(views.manifest(workflow_id)))
    return sorted(candidates)


def _named_by(listed: Manifest) -> Iterator[str]:
    for entry in listed.entries.values():
        yield from entry.blobs
    for keyframe in listed.keyframes.values():
        yield from keyframe.blobs


def _unlink(plan: Plan, files: Files, paths: Iterable[str]) -> None:
    for path in paths:
        size = files.size(path)
        if size is not None:
            plan.operations.append(Operation(Kind.UNLINK, path))
            plan.freed_bytes += size
