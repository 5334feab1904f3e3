"""Committing: from what is asked to a durable frame, among threads and processes."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from holdfast.adapters.filesystem import layout, quarantine
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame, Operation, encode_operations, frame_bytes
from holdfast.adapters.filesystem.journal import Appended, Journal
from holdfast.adapters.filesystem.leases import Decide, Leases, fence, read_lease
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.removal import plan_removal
from holdfast.adapters.filesystem.settler import Settler
from holdfast.adapters.filesystem.staging import Staging, write_file
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.filesystem.writer import Draft, Ends, Standing
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    StateTooLargeError,
    StoreClosedError,
)
from holdfast.domain.record import Commit, Entry, Keyframe, Removal
from holdfast.ports import Clock

_STANDINGS_MAX = 8192
#: What a commit takes beside the bytes it brings: manifest lines, sums, paths.
_COMMIT_OVERHEAD_BYTES = 4096


class Committer:
    """Appends to the journal what one process commits, and follows what the others do."""

    def __init__(self, disk: Disk, journal_bytes: int, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._overlay = Overlay()
        self.files = Files(disk, self._overlay)
        self.views = Views(disk, self.files, self.refresh)
        self._ends = Ends(self.files)
        self._mutex = threading.RLock()
        self._closed = False
        self._standings: OrderedDict[str, Standing] = OrderedDict()
        self._sound: set[str] = set()
        self.recent: dict[str, Entry] = {}
        self.leases = Leases(disk, clock, self._keep_lease)
        self.journal = Journal(disk, journal_bytes)
        self.settler = Settler(disk, self.journal, self._overlay, self.refresh)
        self.journal.open(self.settler.redo)

    def close(self, *, shrink: bool) -> None:
        """Let go of the journal when no thread is inside it; who comes later is told."""
        # In this order: who settles looks at the journal while it keeps the others from settling.
        with self.settler.ending(), self._mutex:
            self._closed = True
            self.journal.close(shrink=shrink)

    def release(self) -> None:
        """In a forked child: close what it inherited; locks and threads are its parent's."""
        self.journal.release()
        self.settler.release()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the store was closed meanwhile", place=self._disk.root)

    @property
    def _frame_bytes_max(self) -> int:
        return self.journal.ring.capacity // 2

    @property
    def pending_bytes(self) -> int:
        """Journal bytes that are not settled."""
        return self.journal.end - self.journal.settled

    # -- what others did ---------------------------------------------------------------------

    def refresh(self) -> bool:
        """Take up what others committed; True if anything changed."""
        with self._mutex:
            self._check_open()
            return self._follow()

    def _follow(self) -> bool:
        try:
            return self._take_up_all()
        except BaseException:
            self._start_over()
            raise

    def _take_up_all(self) -> bool:
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

    def _start_over(self) -> None:
        """After what ended halfway, forget all: the journal tells it again. Needs the mutex."""
        self._forget()
        self.journal.rewind()

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
        for commit in commits:
            if commit.workflow_id not in self._sound:
                self._repair(commit.workflow_id)
        with Staging(self._disk) as staging:
            commits = [self._slim(commit, staging) for commit in commits]
            outcomes: list[Exception | None] = []
            while len(outcomes) < len(commits):
                outcomes += self._commit_some(commits[len(outcomes) :], staging)
        return outcomes

    def _commit_some(self, commits: Sequence[Commit], staging: Staging) -> list[Exception | None]:
        """Commit as many as one frame takes."""
        outcomes: list[Exception | None] = []
        standings: dict[str, Standing] = {}

        def draft() -> list[Operation]:
            outcomes.clear()
            standings.clear()
            operations = self._draft(commits, outcomes, standings)
            taken = zip(commits, outcomes, strict=False)
            staging.choose([id(commit) for commit, outcome in taken if outcome is None])
            return operations

        def appended() -> None:
            for key, standing in standings.items():
                self._remember(key, standing)
            for commit, outcome in zip(commits, outcomes, strict=False):
                if outcome is None and commit.record is not None:
                    self.recent[commit.workflow_id] = commit.record.entry

        self._write(draft, appended, staging)
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
                if commit.token or standing.lease is not None:
                    fence(commit, standing.lease, self._clock)
                standings[key] = draft.add(commit, standing)
                outcomes.append(None)
            except (CheckpointConflictError, CheckpointCorruptError, CheckpointNotFoundError) as error:
                outcomes.append(error)
        return draft.operations

    def _write(
        self, draft: Callable[[], list[Operation]], appended: Callable[[], None], staging: Staging
    ) -> None:
        """Append what `draft` makes under the lock as one frame, then sync it outside the lock."""
        while True:
            with self._locked():
                operations = draft()
                if not operations and not staging.is_chosen:
                    return
                payload = encode_operations(operations)
                fits = self.journal.room_for(len(payload))
                if fits and not staging.collides(self.journal.unsettled()):
                    staging.place()
                    frame = self._append(operations, payload)
                    appended()
                    break
            self.settler.settle()
        self._sync(frame)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the append lock, knowing what everybody committed."""
        with self._mutex:
            self._check_open()
            self.journal.lock()
            try:
                self._follow()
                yield
            finally:
                self.journal.unlock()

    def _append(self, operations: list[Operation], payload: bytes) -> Appended:
        try:
            frame = self.journal.append(payload)
            self._overlay.add(frame, operations)
            for operation in operations:
                self._ends.note(operation)
        except BaseException:
            self._start_over()
            raise
        return frame

    def _sync(self, frame: Appended) -> None:
        try:
            self.journal.sync(frame)
        except BaseException:
            # What we appended is in doubt, and everything chained on it.
            with self._mutex:
                self._start_over()
            raise

    def _repair(self, workflow_id: str) -> None:
        """Before lines are added to a manifest, make sure that it is whole: once per opening."""
        path = layout.manifest_path(layout.workflow_folder(workflow_id))
        while self.views.unsound_manifest(workflow_id) is not None:
            self.settler.settle()
            with self._locked():
                # Only under the lock it is certain that nobody is in the middle of a line. The file may be
                # replaced only while the journal holds nothing that would be redone on it.
                damaged = self.views.unsound_manifest(workflow_id)
                if damaged is not None and not self._overlay.of(path):
                    quarantine.set_aside(self._disk, path, "the manifest was not what was written", damaged)
                    write_file(self._disk, path, self.views.rebuilt(workflow_id).lines())
                    self._forget()
        self._sound.add(workflow_id)

    # -- what does not fit the journal -------------------------------------------------------

    def _slim(self, commit: Commit, staging: Staging) -> Commit:
        """Values too large for the journal become durable files first, then they are referred to."""
        if _weight(commit) <= self._frame_bytes_max:
            return commit
        keyframe = commit.keyframe
        files = {layout.blob_path(sha256): data for sha256, data in commit.blobs.items()}
        if keyframe is not None:
            files[_keyframe_path(commit.workflow_id, keyframe)] = keyframe.data
            keyframe = Keyframe(keyframe.entry, b"")
        needs = tuple(sha256 for sha256 in commit.needs if sha256 not in commit.blobs)
        slim = replace(commit, blobs={}, keyframe=keyframe, needs=needs)
        if _weight(slim) > self._frame_bytes_max:
            raise StateTooLargeError(
                f"one commit of {_weight(slim)} bytes does not fit the journal",
                place=commit.workflow_id,
                hint="Record fewer events at once, or raise journal_bytes.",
            )
        for path, data in files.items():
            staging.add(id(slim), path, data)
        return slim

    # -- leases ------------------------------------------------------------------------------

    def _keep_lease(self, workflow_id: str, decide: Decide) -> None:
        """Make durable what is decided under the lock about a workflow's lease."""

        def draft() -> list[Operation]:
            operation = decide(read_lease(self.files, workflow_id))
            return [] if operation is None else [operation]

        def appended() -> None:
            key = _key(workflow_id)
            if (standing := self._standings.get(key)) is not None:
                self._standings[key] = replace(standing, lease=read_lease(self.files, workflow_id))

        with Staging(self._disk) as staging:
            self._write(draft, appended, staging)

    # -- derived objects and removal ---------------------------------------------------------

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        """Store a keyframe and its sum, and the sums of delta files that nobody will append to any more."""
        folder = layout.workflow_folder(workflow_id)
        sequence = keyframe.entry.sequence
        # Hashed before the lock is taken: a sealed file does not change.
        sums = self._sums_of_sealed(folder, self.views.manifest(workflow_id))

        def draft() -> list[Operation]:
            listed = self.views.manifest(workflow_id)
            known = listed.entries.get(sequence)
            if sequence in listed.keyframes or known is None or known.pruned:
                return []
            draft = Draft(self.files, self._ends)
            line = draft.add_keyframe(Keyframe(keyframe.entry, data), folder)
            draft.add_manifest(workflow_id, folder, line)
            sealed = set(_sealed(listed))
            for group, sha256 in sums.items():
                if group in sealed:
                    draft.add_sum(folder, sha256, layout.deltas_name(group))
            return draft.operations

        with Staging(self._disk) as staging:
            data = keyframe.data
            if len(data) > self._frame_bytes_max // 2:
                staging.add(0, _keyframe_path(workflow_id, keyframe), data)
                staging.choose([0])
                data = b""
            self._write(draft, _nothing, staging)

    def _sums_of_sealed(self, folder: str, listed: Manifest) -> dict[int, str]:
        """SHA-256 of delta files that are sealed and not summed yet, by group."""
        summed = self.files.read(layout.sums_path(folder)) or b""
        sums = {}
        for group in _sealed(listed):
            name = layout.deltas_name(group)
            data = None if name.encode() in summed else self.files.read(f"{folder}/{name}")
            if data is not None:
                sums[group] = hashlib.sha256(data).hexdigest()
        return sums

    def remove(self, workflow_id: str, removal: Removal) -> int:
        """Commit a removal; answers the bytes it gives back."""
        freed = 0

        def draft() -> list[Operation]:
            nonlocal freed
            limit = self._frame_bytes_max // 2
            plan = plan_removal(self.files, self.views, workflow_id, removal, limit)
            freed = plan.freed_bytes
            return plan.operations

        with Staging(self._disk) as staging:
            self._write(draft, _nothing, staging)
        return freed


def _nothing() -> None:
    """Nothing more to do once the frame is appended."""


def _sealed(listed: Manifest) -> list[int]:
    """Groups before the newest: their delta files are complete."""
    return sorted({entry.group for entry in listed.entries.values() if not entry.pruned})[:-1]


def _keyframe_path(workflow_id: str, keyframe: Keyframe) -> str:
    name = layout.keyframe_name(keyframe.entry.sequence, keyframe.entry.suffix)
    return f"{layout.workflow_folder(workflow_id)}/{name}"


@lru_cache(maxsize=4096)
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
