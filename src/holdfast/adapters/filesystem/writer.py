"""From commits to file operations: which bytes go to which file at which offset."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.adapters.filesystem import layout, manifest
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.leases import LeaseFile
from holdfast.adapters.filesystem.manifest import Listed
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.quarantine import kept
from holdfast.adapters.wrong_bytes import WRONG_BLOB, evidence
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.record import Commit, Head, Keyframe, KeyframeEntry
from holdfast.domain.value import value

_REMEMBERED_FILES_MAX = 8192


class Ends(dict[str, int]):
    """Logical sizes of files by path, remembered so that a commit needs no look at the disk."""

    def __init__(self, files: Files) -> None:
        super().__init__()
        self._files = files

    def __missing__(self, path: str) -> int:
        if len(self) >= _REMEMBERED_FILES_MAX:
            # Asking the disk again is cheap; keeping them in order of use would cost every commit.
            self.clear()
        self[path] = end = self._files.size(path) or 0
        return end

    def follow(self, operations: Iterable[Operation]) -> None:
        """Follow what somebody committed. Of a file that is not known, a write may tell the middle only."""
        for operation in operations:
            path, kind = operation.path, operation.kind
            if kind is not Kind.WRITE:
                self.pop(path, None)
            elif path in self:
                self[path] = max(operation.offset + len(operation.data), self[path])


@value
class Standing:
    """Where a workflow stands on this disk."""

    head: Head
    #: The newest events file; an event never goes to an older one, even if the clock steps back.
    events_name: str = ""
    #: None: it never had a lease.
    lease: LeaseFile | None = None
    #: The last line of the manifest, where it is a checkpoint's and we know that it still is the last.
    listed: Listed | None = None


class Draft:
    """The operations of one group. All that it appends to a file is one of them."""

    def __init__(self, files: Files, ends: Ends) -> None:
        self._files = files
        self._ends = ends
        #: Where files end after what the group adds to them.
        self.new_ends: dict[str, int] = {}
        self._new_blobs: set[str] = set()
        self._appended: dict[str, list[bytes]] = {}
        #: What the group does beside appending, and before it.
        self.others: list[Operation] = []

    @property
    def operations(self) -> list[Operation]:
        """Everything that the group does so far."""
        operations, ends, write = self.others.copy(), self.new_ends, Kind.WRITE
        for path, pieces in self._appended.items():
            # Mostly it is one piece, and then joining it copies nothing.
            data = b"".join(pieces)
            operations.append(Operation(write, path, ends[path] - len(data), data))
        return operations

    def check(self, commit: Commit, standing: Standing) -> None:
        """Raise why a commit cannot follow on what is there."""
        if commit.expected is not standing.head and commit.expected != standing.head:
            raise commit.conflict(standing.head)
        if commit.needs:
            self.require(set(commit.needs).difference(commit.blobs))

    def add(self, commit: Commit, standing: Standing) -> Standing:
        """Take a commit into the group, once it was checked; answers where its workflow stands after it."""
        if commit.blobs:
            self._add_blobs(commit.blobs)
        listed = self._add_manifest_lines(commit, standing.listed)
        newest = standing.events_name
        for event in commit.events:
            newest = max(newest, layout.events_name(event.timestamp))
            self.append(layout.events_path(commit.workflow_id, newest), event.data)
        return Standing(commit.head, newest, standing.lease, listed)

    def require(self, needs: set[str]) -> None:
        """Raise if a blob that is referred to, and was there when somebody looked, has gone meanwhile."""
        for sha256 in needs:
            if sha256 not in self._new_blobs and self._files.size(layout.blob_path(sha256)) is None:
                raise CheckpointNotFoundError(
                    "a blob this commit refers to was collected",
                    place=sha256,
                    hint="Commit it with its bytes.",
                )

    def _add_blobs(self, blobs: dict[str, bytes]) -> None:
        for sha256, data in blobs.items():
            path = layout.blob_path(sha256)
            if sha256 in self._new_blobs or (stored := self._files.read(path)) == data:
                continue
            self._new_blobs.add(sha256)
            if stored is None:
                self.others.append(Operation(Kind.WRITE, path, 0, data))
            else:
                # Nobody is told that a value is kept by pointing at bytes that are not it.
                self.others += [
                    *kept(evidence(path, WRONG_BLOB, stored)),
                    Operation(Kind.REPLACE, path, 0, data),
                ]

    def _add_manifest_lines(self, commit: Commit, before: Listed | None) -> Listed | None:
        """Tell the manifest of a commit; answers what its last line tells then."""
        lines, record, record_at = b"", commit.record, 0
        folder = layout.workflow_folder(commit.workflow_id)
        path = layout.manifest_path(folder)
        if commit.keyframe is not None:
            lines = self.add_keyframe(commit.keyframe, folder)
        if before is not None and (lines or before.manifest_end != self.end(path)):
            before = None
        if record is not None:
            # A tombstone from another store whose group is gone there: no file stands for that here too.
            if record.data:
                record_at = self.append(layout.deltas_path(folder, record.entry.group), record.data)
            line = manifest.entry_line(record.entry, record_at, before)
            lines += line
        if commit.transitions:
            lines += b"".join(map(manifest.transition_line, commit.transitions))
        if not lines:
            return before
        end = self.add_manifest(commit.workflow_id, path, lines)
        if record is None or commit.transitions:
            return None
        told_before = None if before is None else before.entry
        return Listed(record.entry, record_at + record.entry.length, end, line, told_before)

    def add_manifest(self, workflow_id: str, path: str, lines: bytes) -> int:
        """Add lines to a manifest; answers where it ends then."""
        if self.end(path) == 0:
            self.append(path, manifest.header_line(workflow_id))
        return self.append(path, lines) + len(lines)

    def add_keyframe(self, keyframe: Keyframe, folder: str) -> bytes:
        """Store a keyframe file and its sum; answers its manifest line."""
        name = layout.keyframe_name(keyframe.entry.sequence, keyframe.entry.suffix)
        if keyframe.data:
            path = f"{folder}/{name}"
            # A file without a line in the manifest is what a killed writer left: it must not shine through.
            kind = Kind.WRITE if self._files.size(path) is None else Kind.REPLACE
            self.others.append(Operation(kind, path, 0, keyframe.data))
        self.add_sum(folder, keyframe.entry.sha256, name)
        return manifest.keyframe_line(keyframe.entry)

    def give_way(self, damaged: KeyframeEntry, new: KeyframeEntry, folder: str) -> None:
        """Take the sum of a damaged keyframe away, and its file where the new one has another name.

        The first thing that a group does: sums that it adds come after this.
        """
        name = layout.keyframe_name(damaged.sequence, damaged.suffix)
        if damaged.suffix != new.suffix:
            self.others.append(Operation(Kind.UNLINK, f"{folder}/{name}"))
        path, ending = layout.sums_path(folder), f"  {name}\n".encode()
        lines = (self._files.read(path) or b"").splitlines(keepends=True)
        kept = b"".join(line for line in lines if not line.endswith(ending))
        self.others.append(Operation(Kind.REPLACE, path, 0, kept))
        self.new_ends[path] = len(kept)

    def add_sum(self, folder: str, sha256: str, name: str) -> None:
        self.append(layout.sums_path(folder), f"{sha256}  {name}\n".encode())

    def end(self, path: str) -> int:
        """Size of a file after all that the group adds to it so far."""
        end = self.new_ends.get(path)
        return self._ends[path] if end is None else end

    def append(self, path: str, data: bytes) -> int:
        """Add to the end of a file; answers where that was."""
        offset = self.new_ends.get(path)
        if offset is None:
            offset = self._ends[path]
        self.new_ends[path] = offset + len(data)
        if path in self._appended:
            self._appended[path].append(data)
        else:
            self._appended[path] = [data]
        return offset
