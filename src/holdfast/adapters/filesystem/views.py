"""Reading a workflow back: manifest, records, keyframes, events, blobs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple, TypeVar

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.leases import read_lease
from holdfast.adapters.filesystem.manifest import Listed, Manifest, ManifestDamaged, parse, parse_line
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.rebuild import event_lines, rebuild_manifest
from holdfast.adapters.filesystem.writer import Standing
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
)
from holdfast.domain.plainjson import loads_object
from holdfast.domain.record import Entry, Head

T = TypeVar("T")

_REMEMBERED_MANIFESTS = 16
_REMEMBERED_LINES = 1024
_READ_AGAIN_MAX = 20


class _Known(NamedTuple):
    """A manifest as far as it was read and found whole.

    Lines are only ever added to it, and one that replaces it has another first line: where the first and the
    last still stand, so do those between.
    """

    end: int
    first_line: bytes
    last_line: bytes
    manifest: Manifest

    def followed_by(self, lines: bytes, written: dict[bytes, Listed]) -> _Known:
        """Read on. Raises ManifestDamaged at the first wrong line."""
        if not lines and self.end:
            return self
        manifest = parse(lines, self.manifest, written)
        first_line = self.first_line or lines[: lines.find(b"\n") + 1]
        last_line = lines[lines.rfind(b"\n", 0, -1) + 1 :]
        return _Known(self.end + len(lines), first_line, last_line, manifest)


class Views:
    """What the files say, with what is pending laid over them."""

    def __init__(self, disk: Disk, files: Files, refresh: Callable[[], bool]) -> None:
        self._disk = disk
        self._files = files
        self._refresh = refresh
        self._manifests: OrderedDict[str, _Known] = OrderedDict()
        #: Lines of manifests that this process wrote and has not read since.
        self._written: dict[bytes, Listed] = {}

    def steady(self, read: Callable[[], T]) -> T:
        """Read, and read again if somebody moved things meanwhile.

        A reader without the lock may meet a half-applied line or a file just pruned. If the
        journal has moved since, that explains it; if it has not, it is real.
        """
        for _ in range(_READ_AGAIN_MAX):
            try:
                return read()
            except (ManifestDamaged, CheckpointCorruptError, CheckpointNotFoundError):
                if not self._refresh():
                    break
        return read()

    # -- manifest ----------------------------------------------------------------------------

    def note(self, listed: Listed) -> None:
        """Remember what a line tells that was just committed: a keyframe has the last ones read again."""
        if len(self._written) >= _REMEMBERED_LINES:
            self._written.clear()
        self._written[listed.line] = listed

    def manifest(self, workflow_id: str) -> Manifest:
        """All that is listed about a workflow. A damaged or missing manifest is made anew."""
        folder = layout.workflow_folder(workflow_id)
        try:
            return self.steady(lambda: self._parsed(workflow_id, folder))
        except ManifestDamaged:
            return self.rebuilt(workflow_id)

    def _continued(self, folder: str) -> _Known | None:
        """Read a manifest; of one that still goes on from what we know, only the lines after that."""
        path, known = layout.manifest_path(folder), self._manifests.get(folder)
        if known is not None:
            # The first line is looked at last: it vouches for what was read before it.
            parts = (known.end - len(known.last_line), None), (0, len(known.first_line))
            read, first_line = self._files.read_parts(path, *parts)
            added = read or b""
            if added.startswith(known.last_line) and first_line == known.first_line:
                return known.followed_by(added[len(known.last_line) :], self._written)
        data = self._files.read(path)
        if data is None:
            return None
        read_now = _Known(0, b"", b"", Manifest()).followed_by(data, self._written)
        check_reach(self._files, folder, read_now.manifest)
        return read_now

    def unsound_manifest(self, workflow_id: str) -> bytes | None:
        """The bytes of a manifest that must be made anew (empty if it is missing), else None."""
        folder = layout.workflow_folder(workflow_id)
        try:
            self._parsed(workflow_id, folder)
        except ManifestDamaged:
            return self._files.read(layout.manifest_path(folder)) or b""
        return None

    def rebuilt(self, workflow_id: str) -> Manifest:
        folder, events = layout.workflow_folder(workflow_id), layout.events_folder(workflow_id)
        return rebuild_manifest(self._files, workflow_id, folder, events)

    def _parsed(self, workflow_id: str, folder: str) -> Manifest:
        known = self._continued(folder)
        if known is None:
            if any(layout.group_of(name) is not None for name in self._files.list_folder(folder)):
                raise ManifestDamaged("the manifest is missing")
            return Manifest(workflow_id)
        if known.manifest.workflow_id != workflow_id:
            raise ManifestDamaged(f"the folder holds {known.manifest.workflow_id!r}")
        self._manifests[folder] = known
        if len(self._manifests) > _REMEMBERED_MANIFESTS:
            self._manifests.popitem(last=False)
        return known.manifest

    def standing(self, workflow_id: str) -> Standing:
        """Head of a workflow: its last checkpoint and its last event."""
        last = self.manifest(workflow_id).last
        folder = layout.events_folder(workflow_id)
        names = [name for name in self._files.list_folder(folder) if layout.is_events_name(name)]
        event_seq, event_hash = 0, Head().event_hash
        if names:
            event_seq, event_hash = self.steady(lambda: self._last_event(f"{folder}/{names[-1]}"))
        head = Head(
            last.sequence if last else 0,
            last.checksum if last else Head().checksum,
            event_seq,
            event_hash,
        )
        return Standing(head, names[-1] if names else "", read_lease(self._files, workflow_id))

    def _last_event(self, path: str) -> tuple[int, str]:
        size = self._files.size(path) or 0
        window = 65536
        while True:
            tail = self._files.read(path, max(size - window, 0)) or b""
            lines = tail.splitlines()
            if len(lines) > 1 or window >= size:
                break
            window *= 4
        try:
            if not tail.endswith(b"\n"):
                raise ValueError("the next event would go on in the same line")
            event = loads_object(lines[-1])
            return int(event["seq"]), str(event["hash"])
        except (CheckpointCorruptError, ValueError, KeyError, TypeError, IndexError) as error:
            raise CheckpointCorruptError(
                "the last event is damaged",
                place=path,
                hint="Put the file back from a backup, or go on in a fork: `holdfast fork WORKFLOW NEW`.",
            ) from error

    def workflows(self) -> Iterator[str]:
        """Ids of all workflows, as their manifests (or records) name them."""
        for top, name_of in (
            (layout.CHECKPOINTS, self._workflow_id),
            (layout.EVENTS, self._event_workflow_id),
        ):
            for shard in self._files.list_folders(top):
                for folder in self._files.list_folders(f"{top}/{shard}"):
                    found = name_of(f"{top}/{shard}/{folder}")
                    if found is not None:
                        yield found

    def _workflow_id(self, folder: str) -> str | None:
        first = (self._files.read(layout.manifest_path(folder), 0, 4096) or b"").partition(b"\n")
        try:
            name = parse_line(first[0] + first[1]).get("wf")
        except ManifestDamaged:
            name = None
        if not isinstance(name, str):
            name = self._recorded_workflow_id(folder)
        return name if name and layout.workflow_folder(name) == folder else None

    def _recorded_workflow_id(self, folder: str) -> str | None:
        for name in self._files.list_folder(folder):
            if layout.group_of(name) is not None:
                return _named_in(self._files.read(f"{folder}/{name}") or b"")
        return None

    def _event_workflow_id(self, folder: str) -> str | None:
        """A workflow that has events but no checkpoint yet."""
        for line in event_lines(self._files, folder):
            name = _named_in(line)
            known = name is not None and layout.events_folder(name) == folder
            if not known or name is None:
                return None
            return None if self._workflow_id(layout.workflow_folder(name)) else name
        return None

    # -- bytes -------------------------------------------------------------------------------

    def records(self, workflow_id: str, first: int, last: int) -> list[bytes]:
        return self.steady(lambda: self._records(workflow_id, first, last))

    def _records(self, workflow_id: str, first: int, last: int) -> list[bytes]:
        folder = layout.workflow_folder(workflow_id)
        manifest = self.manifest(workflow_id)
        # A pruned checkpoint's record is needed by those after it for as long as its group is there.
        newest = manifest.last.sequence if manifest.last else 0
        wanted = [
            entry
            for sequence in range(max(first, 1), min(last, newest) + 1)
            if (entry := manifest.entries.get(sequence)) is not None
            and (not entry.pruned or self._has_group(folder, entry.group))
        ]
        for sequence in (first, last):
            if not any(entry.sequence == sequence for entry in wanted):
                raise CheckpointNotFoundError(
                    "no such checkpoint", place=f"{workflow_id}@{sequence}", hint="See `holdfast list`."
                )
        found: list[bytes] = []
        for group in dict.fromkeys(entry.group for entry in wanted):
            members = [entry for entry in wanted if entry.group == group]
            found += self._read_group(folder, group, members, manifest.offsets)
        return found

    def _has_group(self, folder: str, group: int) -> bool:
        return self._files.size(f"{folder}/{layout.deltas_name(group)}") is not None

    def _read_group(
        self, folder: str, group: int, entries: list[Entry], offsets: dict[int, int]
    ) -> list[bytes]:
        path = f"{folder}/{layout.deltas_name(group)}"
        start = offsets[entries[0].sequence]
        end = offsets[entries[-1].sequence] + entries[-1].length
        data = self._files.read(path, start, end - start)
        if data is None or len(data) < end - start:
            raise CheckpointCorruptError(
                "records are missing", place=path, hint="Recover from an older checkpoint."
            )
        places = ((offsets[e.sequence] - start, e.length) for e in entries)
        return [data[at : at + length] for at, length in places]

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        entry = self.manifest(workflow_id).keyframes.get(sequence)
        place = f"{workflow_id}@{sequence}"
        if entry is None:
            raise CheckpointNotFoundError("no keyframe here", place=place)
        name = layout.keyframe_name(sequence, entry.suffix)
        path = f"{layout.workflow_folder(workflow_id)}/{name}"
        return self.steady(lambda: self._verified(path, entry.sha256))

    def blob(self, sha256: str) -> bytes:
        return self.steady(lambda: self._verified(layout.blob_path(sha256), sha256))

    def _verified(self, path: str, sha256: str) -> bytes:
        size = self._files.size(path)
        data = self._mapped(path, size) if size and size >= self._disk.map_bytes else self._files.read(path)
        if data is None:
            raise CheckpointNotFoundError("the file is gone", place=path)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise ChecksumMismatchError(
                "the bytes are not the ones committed", place=path, hint="Run `holdfast validate --all`."
            )
        return data

    def _mapped(self, path: str, size: int) -> bytes | None:
        """A large file through a map: read once, by the one copy that is returned."""
        try:
            handle = self._disk.open(path)
        except FileNotFoundError:
            return self._files.read(path)
        try:
            # What is pending is not in the file yet, or not all of it.
            if self._files.is_pending(path) or self._disk.size(handle) != size:
                return self._files.read(path)
            with self._disk.map(handle, size) as mapped:
                return mapped[:]
        finally:
            self._disk.close(handle)

    def events(self, workflow_id: str, after: int) -> Iterator[bytes]:
        for line in self._event_lines(layout.events_folder(workflow_id), after):
            if event_seq(line) > after:
                yield line

    def _event_lines(self, folder: str, after: int) -> list[bytes]:
        """Event lines after one; read again if somebody was just writing, as half a line or a gap shows."""
        lines = self._lines_after(folder, after)
        for _ in range(_READ_AGAIN_MAX):
            if _without_gaps(lines):
                break
            moved = self._refresh()
            lines = self._lines_after(folder, after)
            if not moved:
                break
        return lines

    def _lines_after(self, folder: str, after: int) -> list[bytes]:
        """Event lines after one, and some before it. For the last ones only the end of a journal is read."""
        if not after:
            return list(event_lines(self._files, folder))
        found: list[bytes] = []
        for name in reversed(self._files.list_folder(folder)):
            if layout.is_events_name(name):
                lines = self._last_lines(f"{folder}/{name}", after)
                found[:0] = lines
                if lines and event_seq(lines[0]) <= after + 1:
                    break
        return found

    def _last_lines(self, path: str, after: int) -> list[bytes]:
        """Lines at the end of a file of events, as far back as the one after a given one."""
        size, reach = self._files.size(path) or 0, _TAIL_BYTES
        while True:
            start = max(size - reach, 0)
            lines = (self._files.read(path, start) or b"").splitlines(keepends=True)
            if not start:
                return lines
            # The first one has begun before.
            del lines[:1]
            if lines and event_seq(lines[0]) <= after + 1:
                return lines
            reach *= _TAIL_FACTOR


#: How much of the end of a file of events is read first, and how many times as much each time after that.
_TAIL_BYTES = 64 * 1024
_TAIL_FACTOR = 4
#: Stands for the sequence of an event line that is damaged.
UNKNOWN_EVENT = 1 << 62


def check_reach(files: Files, folder: str, listed: Manifest) -> None:
    """See that a manifest goes as far as the records: one that was cut between two lines looks whole.

    Raises ManifestDamaged if records follow that it does not list.
    """
    last = listed.last
    group, end = (last.group, listed.offsets.get(last.sequence, 0) + last.length) if last else (0, 0)
    newest = max(filter(None, map(layout.group_of, files.list_folder(folder))), default=0)
    if newest > group or (newest == group and (files.size(layout.deltas_path(folder, group)) or 0) > end):
        raise ManifestDamaged("records follow that it does not list")


def event_seq(line: bytes) -> int:
    """Sequence of an event line, which begins with it; damaged lines count as wanted."""
    number = line[7 : line.find(b",", 7)]
    is_number = line.startswith(b'{"seq":') and number.isdigit()
    # Events are counted from 1.
    return (is_number and int(number)) or UNKNOWN_EVENT


def _without_gaps(lines: list[bytes]) -> bool:
    sequences = [event_seq(line) for line in lines]
    return all(line.endswith(b"\n") for line in lines) and all(b - a == 1 for a, b in pairwise(sequences))


def _named_in(line: bytes) -> str | None:
    try:
        name = loads_object(line.partition(b"\n")[0]).get("wf")
    except CheckpointCorruptError:
        return None
    return name if isinstance(name, str) else None
