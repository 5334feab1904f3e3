"""Views made anew from the truth: what a manifest must say, read from records, sums and events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.overlay import Files
from holdfast.domain.checkpoint import CheckpointStatus, usual_type
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.json_reading import read_object
from holdfast.domain.plainjson import loads_object
from holdfast.domain.record import Entry, KeyframeEntry

STATUS_EVENT = "CHECKPOINT_STATUS"
PRUNED_EVENT = "CHECKPOINTS_PRUNED"

#: What a record's line tells of a checkpoint, always or perhaps, and what it looks like.
_NEEDED = {"seq": int, "id": str, "ts": str, "checksum": str}
_TEXTS = ("type", "stage", "agent", "session", "label", "schema", "parent")
_KNOWN = {**dict.fromkeys(_TEXTS, str), "phase": int, "size": int, "event_seq": int, "blobs": list}


def rebuild_manifest(files: Files, workflow_id: str, folder: str, events_folder: str) -> Manifest:
    """Read a workflow's delta files, keyframes and events into a manifest."""
    manifest = Manifest(workflow_id)
    names = files.list_folder(folder)
    #: What records say of the checkpoint before, its checksum; empty where they leave that to its own record.
    checksums: dict[int, str] = {}
    for group in sorted(filter(None, map(layout.group_of, names))):
        data = files.read(f"{folder}/{layout.deltas_name(group)}") or b""
        for offset, length, header in split_records(data):
            entry = entry_of(header, group, length)
            manifest.entries[entry.sequence] = entry
            manifest.offsets[entry.sequence] = offset
            checksums[entry.sequence - 1] = header.get("parent", "")
    sums = read_sums(files.read(layout.sums_path(folder)) or b"")
    for sequence, suffix in sorted(filter(None, map(layout.keyframe_of, names))):
        keyframe = _keyframe(files, folder, sequence, suffix, sums)
        if keyframe is not None and (sequence in manifest.entries or sequence in checksums):
            manifest.keyframes[sequence] = keyframe
            if sequence not in manifest.entries:
                told = checksums[sequence] or _own_checksum(files, folder, keyframe)
                manifest.entries[sequence] = _tombstone(manifest.entries[sequence + 1], told)
    oldest = min(manifest.entries, default=1)
    if oldest > 1 and checksums.get(oldest - 1):
        manifest.entries[oldest - 1] = _tombstone(manifest.entries[oldest], checksums[oldest - 1])
    manifest.entries = dict(sorted(manifest.entries.items()))
    _replay_status(files, events_folder, manifest)
    return manifest


def _tombstone(after: Entry, checksum: str) -> Entry:
    """Name a checkpoint whose record went with its group, while others build on the keyframe of its state.

    Of its type, its time and its UUID nothing is left, and of a tombstone nobody asks for them.
    """
    sequence = after.sequence - 1
    return Entry(sequence, "", after.timestamp, after.type, checksum, sequence - 1, pruned=True)


def split_records(data: bytes) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Offset, length and header of each whole record in a delta file."""
    offset = 0
    while (end := data.find(b"\n", offset)) >= 0:
        try:
            header = _record_head(data[offset : end + 1])
        except CheckpointCorruptError:
            return
        payload = header.get("payload")
        length = end + 1 - offset
        if payload and "blob" not in payload:
            length += payload["len"] + 1
        if offset + length > len(data):
            return
        yield offset, length, header
        offset += length


def _record_head(line: bytes) -> dict[str, Any]:
    """Read the line of a record as far as a listing tells of it; its checksum is for a reader of states.

    Raises:
        CheckpointCorruptError: nobody here wrote it.
    """
    header = loads_object(line)
    payload = header.get("payload", {"len": 0})
    is_usual = all(type(header.get(name)) is kind for name, kind in _NEEDED.items())
    is_usual = is_usual and all(type(header.get(name, kind())) is kind for name, kind in _KNOWN.items())
    if not is_usual or type(payload) is not dict or type(payload.get("len")) is not int or payload["len"] < 0:
        raise CheckpointCorruptError("it is no record")
    return header


def entry_of(header: dict[str, Any], group: int, length: int) -> Entry:
    """The listing entry that a record's header stands for."""
    return Entry(
        sequence=header["seq"],
        uuid=header["id"],
        timestamp=header["ts"],
        type=header.get("type") or usual_type(header.get("agent")).value,
        checksum=header["checksum"],
        parent=header["seq"] - 1,
        group=group,
        length=length,
        state_bytes=header.get("size", 0),
        stage=header.get("stage"),
        agent=header.get("agent"),
        session=header.get("session"),
        phase=header.get("phase"),
        label=header.get("label"),
        blobs=tuple(header.get("blobs", ())),
        event_seq=header.get("event_seq", 0),
        schema=header.get("schema", "1.0.0"),
    )


def read_sums(data: bytes) -> dict[str, str]:
    """File name -> SHA-256 of a SHA256SUMS file."""
    pairs = (line.split("  ", 1) for line in data.decode(errors="replace").splitlines() if "  " in line)
    return {name: sha256 for sha256, name in pairs}


def _keyframe(
    files: Files, folder: str, sequence: int, suffix: str, sums: dict[str, str]
) -> KeyframeEntry | None:
    """A keyframe as its committed sum describes it; one that nobody vouches for is left out."""
    name = layout.keyframe_name(sequence, suffix)
    data = files.read(f"{folder}/{name}")
    if data is None or hashlib.sha256(data).hexdigest() != sums.get(name):
        return None
    return KeyframeEntry(sequence, sums[name], len(data), suffix, _references(data))


def _own_checksum(files: Files, folder: str, keyframe: KeyframeEntry) -> str:
    """The checksum of the checkpoint that a keyframe is of, where it tells."""
    data = files.read(f"{folder}/{layout.keyframe_name(keyframe.sequence, keyframe.suffix)}") or b""
    named = _header(data).get("checkpoint_id")
    return str(named.get("checksum", "")) if isinstance(named, dict) else ""


def _references(data: bytes) -> tuple[str, ...]:
    """Blobs a keyframe's header lists."""
    listed = _header(data).get("blobs", ())
    return tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()


def _header(data: bytes) -> dict[str, Any]:
    for line in data.splitlines()[:4]:
        text = line.removeprefix(b'"header": ').rstrip(b",")
        if b'"checkpoint_id"' in line:
            try:
                header = read_object(text)
            except ValueError:
                return {}
            inner = header.get("header", header)
            return inner if isinstance(inner, dict) else {}
    return {}


def _replay_status(files: Files, events_folder: str, manifest: Manifest) -> None:
    for line in event_lines(files, events_folder):
        if STATUS_EVENT.encode() in line or PRUNED_EVENT.encode() in line:
            try:
                _replay(manifest, loads_object(line))
            except (CheckpointCorruptError, ValueError, KeyError, TypeError, AttributeError):
                # A damaged line is for a validation to find, and tells nothing here.
                continue


def _replay(manifest: Manifest, event: dict[str, Any]) -> None:
    if event.get("type") == STATUS_EVENT:
        _set_status(manifest, event)
    elif event.get("type") == PRUNED_EVENT:
        _set_pruned(manifest, event)


def _set_status(manifest: Manifest, event: dict[str, Any]) -> None:
    entry = _told_of(manifest, event.get("cp_seq", 0), event)
    if entry is not None:
        data = event.get("data", {})
        manifest.entries[entry.sequence] = replace(
            entry,
            status=CheckpointStatus(data.get("status", entry.status)).value,
            retry_count=int(data.get("retry_count", entry.retry_count)),
            pinned=bool(data.get("pinned", entry.pinned)),
        )


def _set_pruned(manifest: Manifest, event: dict[str, Any]) -> None:
    for sequence in event.get("data", {}).get("sequences", ()):
        if (entry := _told_of(manifest, sequence, event)) is not None:
            manifest.entries[sequence] = replace(entry, pruned=True)


def _told_of(manifest: Manifest, sequence: int, event: dict[str, Any]) -> Entry | None:
    """Find the checkpoint that an event tells of, and none that was made later in the place of a lost one."""
    entry = manifest.entries.get(sequence)
    return None if entry is None or entry.event_seq > event["seq"] else entry


def event_lines(files: Files, folder: str) -> Iterator[bytes]:
    """Lines of all event files of a workflow, oldest first."""
    for name in files.list_folder(folder):
        if layout.is_events_name(name):
            yield from (files.read(f"{folder}/{name}") or b"").splitlines(keepends=True)
