"""Committing: from what is asked to a durable frame, among threads and processes."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.apply import TEMPORARY_SUFFIX, Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame, Operation, frame_bytes
from holdfast.adapters.filesystem.journal import FOLDER, Appended, Journal
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.removal import plan_removal
from holdfast.adapters.filesystem.settler import Settler
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.filesystem.writer import Draft, Ends, Standing
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError, StateTooLargeError
from holdfast.domain.record import Commit, Entry, Keyframe, Removal

_STANDINGS_MAX = 8192
#: What a commit takes beside the bytes it brings: manifest lines, sums, paths.
_COMMIT_OVERHEAD_BYTES = 4096


class Committer:
    """Appends to the journal what one process commits, and follows what the others do."""

    def __init__(self, disk: Disk, journal_bytes: int) -> None:
        self._disk = disk
        self._overlay = Overlay()
        self.files = Files(disk, self._overlay)
        self.views = Views(disk, self.files, self.refresh)
        self._ends = Ends(self.files)
        self._mutex = threading.RLock()
        self._standings: OrderedDict[str, Standing] = OrderedDict()
        self._sound: set[str] = set()
        self.recent: dict[str, Entry] = {}
        self.journal = Journal(disk, journal_bytes)
        self.settler = Settler(disk, self.journal, self._overlay, self.refresh)
        self.journal.open(self.settler.redo)

    @property
    def _frame_bytes_max(self) -> int:
        return self.journal.ring.capacity // 2

    # -- what others did ---------------------------------------------------------------------

    def refresh(self) -> bool:
        """Take up what others committed; True if anything changed."""
        with self._mutex, self._knowing_or_nothing():
            forget, frames = self.journal.catch_up()
            if forget:
                self._forget()
            for frame in frames:
                self._take_up(frame)
            self._overlay.drop(self.journal.page.mark(Page.APPLIED, self.journal.generation))
            return forget or bool(frames)

    def _take_up(self, frame: Frame) -> None:
        operations = frame.operations()
        self._overlay.add(frame, operations)
        for operation in operations:
            self._ends.note(operation)
            # Shard and folder name: the key of what stands there, below checkpoints and events alike.
            self._standings.pop(operation.path.rpartition("/")[0].partition("/")[2], None)

    @contextmanager
    def _knowing_or_nothing(self) -> Iterator[None]:
        """If this ends halfway, forget all: the journal tells it again. Needs the mutex."""
        try:
            yield
        except BaseException:
            self._forget()
            self.journal.rewind()
            raise

    def _forget(self) -> None:
        self._overlay.clear()
        self._ends.clear()
        self._standings.clear()
        self._sound.clear()

    def standing(self, workflow_id: str) -> Standing:
        """Where a workflow stands, from memory if we can."""
        with self._mutex:
            key = _key(workflow_id)
            standing = self._standings.get(key)
            if standing is None:
                standing = self.views.standing(workflow_id)
                self._remember(key, standing)
            return standing

    def _remember(self, key: str, standing: Standing) -> None:
        self._standings[key] = standing
        self._standings.move_to_end(key)
        if len(self._standings) > _STANDINGS_MAX:
            self._standings.popitem(last=False)

    # -- committing --------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Make commits durable, with one sync if one frame takes them all."""
        for workflow_id in {commit.workflow_id for commit in commits} - self._sound:
            self._repair(workflow_id)
        commits = [self._write_large(commit) for commit in commits]
        outcomes: list[Exception | None] = []
        while len(outcomes) < len(commits):
            outcomes += self._commit_some(commits[len(outcomes) :])
        return outcomes

    def _commit_some(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Commit as many as one frame takes."""
        outcomes: list[Exception | None] = []
        standings: dict[str, Standing] = {}

        def draft() -> list[Operation]:
            outcomes.clear()
            standings.clear()
            return self._draft(commits, outcomes, standings)

        def appended() -> None:
            for key, standing in standings.items():
                self._remember(key, standing)
            for commit, outcome in zip(commits, outcomes, strict=False):
                if outcome is None and commit.record is not None:
                    self.recent[commit.workflow_id] = commit.record.entry

        self._write(draft, appended)
        return outcomes

    def _draft(
        self, commits: Sequence[Commit], outcomes: list[Exception | None], standings: dict[str, Standing]
    ) -> list[Operation]:
        draft = Draft(self.files, self._ends)
        room = self._frame_bytes_max
        for commit in commits:
            if len(commits) > 1:
                room -= _weight(commit)
                if outcomes and room < 0:
                    break
            key = _key(commit.workflow_id)
            try:
                standing = standings.get(key) or self.standing(commit.workflow_id)
                standings[key] = draft.add(commit, standing)
                outcomes.append(None)
            except (CheckpointConflictError, CheckpointNotFoundError) as error:
                outcomes.append(error)
        return draft.operations

    def _write(self, draft: Callable[[], list[Operation]], appended: Callable[[], None]) -> None:
        """Append what `draft` makes under the lock as one frame, then sync it outside the lock."""
        while True:
            with self._mutex, self.journal.locked():
                self.refresh()
                operations = draft()
                if not operations:
                    return
                if self.journal.room_for(operations):
                    frame = self._append(operations)
                    appended()
                    break
            self.settler.settle()
        self._sync(frame)

    def _append(self, operations: list[Operation]) -> Appended:
        with self._knowing_or_nothing():
            frame = self.journal.append(operations)
            self._overlay.add(frame, operations)
            for operation in operations:
                self._ends.note(operation)
        return frame

    def _sync(self, frame: Appended) -> None:
        try:
            self.journal.sync(frame)
        except BaseException:
            # What we appended is in doubt, and everything chained on it.
            with self._mutex, self._knowing_or_nothing():
                raise

    def _repair(self, workflow_id: str) -> None:
        """Before lines are added to a manifest, make sure that it is whole: once per opening."""
        path = layout.manifest_path(layout.workflow_folder(workflow_id))
        while (damaged := self.views.unsound_manifest(workflow_id)) is not None:
            self.settler.settle()
            with self._mutex, self.journal.locked():
                self.refresh()
                # The file may be replaced only while the journal holds nothing that would be redone on it.
                if not self._overlay.of(path):
                    quarantine.set_aside(self._disk, path, "the manifest was not what was written", damaged)
                    self._write_file(path, self.views.rebuilt(workflow_id).lines())
                    self._forget()
        self._sound.add(workflow_id)

    # -- what does not fit the journal -------------------------------------------------------

    def _write_large(self, commit: Commit) -> Commit:
        """Values too large for the journal become durable files first, then they are referred to."""
        if _weight(commit) <= self._frame_bytes_max:
            return commit
        for sha256, data in commit.blobs.items():
            if self.files.size(layout.blob_path(sha256)) is None:
                self._write_file(layout.blob_path(sha256), data)
        keyframe = commit.keyframe
        if keyframe is not None:
            self._write_keyframe(commit.workflow_id, keyframe)
            keyframe = Keyframe(keyframe.entry, b"")
        slim = replace(commit, blobs={}, keyframe=keyframe, needs=(*commit.needs, *commit.blobs))
        if _weight(slim) > self._frame_bytes_max:
            raise StateTooLargeError(
                f"one commit of {_weight(slim)} bytes does not fit the journal",
                place=commit.workflow_id,
                hint="Record fewer events at once, or raise journal_bytes.",
            )
        return slim

    def _write_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        name = layout.keyframe_name(keyframe.entry.sequence, keyframe.entry.suffix)
        self._write_file(f"{layout.workflow_folder(workflow_id)}/{name}", keyframe.data)

    def _write_file(self, path: str, data: bytes) -> None:
        # Two processes may write the same file at once, so each has its own temporary one; it lies in the
        # journal's folder, where the next recovery removes what a killed process left.
        applier = Applier(self._disk)
        applier.place(path, data, f"{FOLDER}/{uuid.uuid4().hex}{TEMPORARY_SUFFIX}")
        applier.sync()

    # -- derived objects and removal ---------------------------------------------------------

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        """Write a keyframe file durably, then commit its sum."""
        sequence = keyframe.entry.sequence
        listed = self.views.manifest(workflow_id)
        known = listed.entries.get(sequence)
        if sequence in listed.keyframes or known is None or known.pruned:
            return
        self._write_keyframe(workflow_id, keyframe)
        folder = layout.workflow_folder(workflow_id)

        def draft() -> list[Operation]:
            draft = Draft(self.files, self._ends)
            line = draft.add_keyframe(Keyframe(keyframe.entry, b""), folder)
            draft.add_manifest(workflow_id, folder, line)
            self._seal_groups(draft, folder, listed)
            return draft.operations

        self._write(draft, _nothing)

    def _seal_groups(self, draft: Draft, folder: str, listed: Manifest) -> None:
        """Sums of delta files that nobody will append to any more."""
        groups = sorted({entry.group for entry in listed.entries.values() if not entry.pruned})
        summed = self.files.read(layout.sums_path(folder)) or b""
        for group in groups[:-1]:
            name = layout.deltas_name(group)
            data = None if name.encode() in summed else self.files.read(f"{folder}/{name}")
            if data is not None:
                draft.add_sum(folder, hashlib.sha256(data).hexdigest(), name)

    def remove(self, workflow_id: str, removal: Removal) -> int:
        """Commit a removal; answers the bytes it gives back."""
        freed = 0

        def draft() -> list[Operation]:
            nonlocal freed
            limit = self._frame_bytes_max // 2
            plan = plan_removal(self.files, self.views, workflow_id, removal, limit)
            freed = plan.freed_bytes
            return plan.operations

        self._write(draft, _nothing)
        return freed


def _nothing() -> None:
    """Nothing more to do once the frame is appended."""


def _key(workflow_id: str) -> str:
    """Shard and folder name: the same below checkpoints and events."""
    return layout.workflow_folder(workflow_id).partition("/")[2]


def _weight(commit: Commit) -> int:
    """About how many journal bytes a commit takes."""
    record = len(commit.record.data) if commit.record else 0
    keyframe = len(commit.keyframe.data) if commit.keyframe else 0
    events = sum(len(event.data) for event in commit.events)
    blobs = sum(map(len, commit.blobs.values()))
    return frame_bytes(_COMMIT_OVERHEAD_BYTES + record + keyframe + events + blobs)
