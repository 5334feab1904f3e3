"""Committing: from what is asked to a durable frame, among threads and processes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.append_lock import AppendLock
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame, Kind, Operation, encode_operations
from holdfast.adapters.filesystem.group import Group
from holdfast.adapters.filesystem.journal import Appended, Journal
from holdfast.adapters.filesystem.keyframing import add_keyframe, damaged_keyframe, sums_of_sealed
from holdfast.adapters.filesystem.leases import Decide, Leases, fence, read_lease
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.own_files import leaves_nothing
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.remaking import remake_manifest
from holdfast.adapters.filesystem.remover import Remover
from holdfast.adapters.filesystem.settler import Settler
from holdfast.adapters.filesystem.slimming import keyframe_path, slim, weight
from holdfast.adapters.filesystem.staging import Staging
from holdfast.adapters.filesystem.trails import Trails
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.filesystem.writer import Ends, Standing
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidStateError,
    StateTooLargeError,
    StoreClosedError,
    UnstorableValueError,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Keyframe, Removal
from holdfast.ports import Clock

_STANDINGS_MAX = 8192
#: What costs a commit only itself.
_REFUSALS = (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidStateError,
    StateTooLargeError,
    UnstorableValueError,
)


class Committer:
    """Appends to the journal what one process commits, and follows what the others do."""

    def __init__(self, disk: Disk, journal_bytes: int, clock: Clock) -> None:
        self._disk = disk
        self._clock = clock
        self._overlay = Overlay()
        self.files = Files(disk, self._overlay)
        self.views = Views(disk, self.files, self.refresh)
        self.trails = Trails(self.files, self.refresh)
        self._ends = Ends(self.files)
        self._mutex = threading.RLock()
        self._closed = False
        #: Up to where files held everything when we last looked.
        self._applied = 0
        #: Whether the journal has to tell everything again.
        self._is_over = False
        self._standings: OrderedDict[str, Standing] = OrderedDict()
        self._sound: set[str] = set()
        self.leases = Leases(disk, clock, self._keep_lease)
        self.journal = Journal(disk, journal_bytes)
        self._appending = AppendLock(self._mutex, self.journal, self._check_open, self._follow)
        self.settler = Settler(disk, self.journal, self._overlay, self.refresh, self._appending)
        self.remover = Remover(disk, self.files, self.views, self._appending, self._write)
        self.journal.open(self.settler.redo)
        # A ring that takes the place of another is as large.
        self._frame_bytes_max = self.journal.ring.capacity // 2
        #: What states leave free in the journal.
        self._event_bytes = self.journal.ring.capacity // 8

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
            forget, frames = self.journal.catch_up()
            told = [(frame, frame.operations()) for frame in frames]
            if forget or self._is_over:
                self._forget()
                self._overlay.renew(told)
                self._is_over = False
            else:
                for frame, operations in told:
                    self._take_up(frame, operations)
            applied = self.journal.page.mark(Page.APPLIED, self.journal.generation)
            if frames or applied != self._applied:
                self._overlay.drop(applied)
                self._applied = applied
        except BaseException:
            self._start_over()
            raise
        return forget or bool(frames)

    def _take_up(self, frame: Frame, operations: list[Operation]) -> None:
        self._overlay.add(frame, operations)
        self._ends.follow(operations)
        for operation in operations:
            folder = operation.path.rpartition("/")[0]
            # Shard and folder name: the key of what stands there, below checkpoints and events alike.
            self._standings.pop(folder.partition("/")[2], None)
            self.trails.follow(folder)

    def _start_over(self) -> None:
        """After what ended halfway, let the journal tell all again. Needs the mutex."""
        # What is pending stays until then: who reads in between must not miss what was acknowledged.
        self._is_over = True
        self._forget()
        self.journal.rewind()

    def _forget(self) -> None:
        self._applied = 0
        self._ends.clear()
        self._standings.clear()
        self.trails.forget()
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

    def trail_head(self, session_id: str) -> TrailHead:
        """Where the trail of a session stands, from memory if we can."""
        with self._mutex:
            return self.trails.known(session_id).head

    def tree_size(self) -> int:
        """How many leaves the tree has, all of them durable."""
        with self._mutex:
            self._check_open()
            self._follow()
            size = self.trails.size()
        # After a sync that failed, only what is known durable was taken up.
        if not self.journal.is_poisoned:
            self.journal.sync_published()
        return size

    # -- committing --------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Make commits durable, with one sync if one frame takes them all."""
        weights = []
        for commit in commits:
            if commit.workflow_id == NO_WORKFLOW:
                commit.check_nameless()
            elif commit.workflow_id not in self._sound:
                self._repair(commit.workflow_id)
            weights.append(weight(commit))
        if max(weights, default=0) <= self._frame_bytes_max:
            return self._commit_all(commits, weights, None)
        # What is written beside the journal must not go into another store that stands there by now.
        self.journal.place.check()
        with Staging(self._disk) as staging:
            slimmed = [slim(commit, staging, self._frame_bytes_max) for commit in commits]
            return self._commit_all(slimmed, list(map(weight, slimmed)), staging)

    def _commit_all(
        self, commits: Sequence[Commit], weights: list[int], staging: Staging | None
    ) -> list[Exception | None]:
        outcomes: list[Exception | None] = []
        while (done := len(outcomes)) < len(commits):
            outcomes += self._commit_some(commits[done:], weights[done:], staging)
        return outcomes

    def _commit_some(
        self, commits: Sequence[Commit], weights: list[int], staging: Staging | None
    ) -> list[Exception | None]:
        """Commit as many as one frame takes."""
        reserved_bytes = 0

        def draft(group: Group) -> None:
            self._draft(group, commits, weights)
            if staging is not None:
                taken = zip(commits, group.outcomes, strict=False)
                staging.choose([id(commit) for commit, outcome in taken if outcome is None])

        for commit in commits:
            if commit.record is not None:
                # States leave room for events: on a full disk, where nothing is settled, those go on longest.
                reserved_bytes = self._event_bytes
                break
        group = self._write(draft, self._committed, staging, reserved_bytes)
        others = group.draft.others
        if others and any(map(leaves_nothing, others)):
            # Gone is what no file holds any more, the journal included.
            self.settler.settle()
        return group.outcomes

    def _draft(self, group: Group, commits: Sequence[Commit], weights: list[int]) -> None:
        room, outcomes = self._frame_bytes_max, group.outcomes
        for commit, weight_bytes in zip(commits, weights, strict=True):
            room -= weight_bytes
            if outcomes and (room < 0 or group.must_be_apart(commit)):
                break
            try:
                self._add(group, commit)
                outcomes.append(None)
            except _REFUSALS as error:
                outcomes.append(error)

    def _add(self, group: Group, commit: Commit) -> None:
        if commit.workflow_id == NO_WORKFLOW:
            group.add(commit, None, self._frame_bytes_max)
            return
        key = _key(commit.workflow_id)
        standing = group.standings.get(key) or self._standings.get(key) or self.standing(commit.workflow_id)
        if commit.token or standing.lease is not None:
            fence(commit, standing.lease, self._clock)
        after = group.add(commit, standing, self._frame_bytes_max)
        if after is not None:
            group.standings[key] = after

    def _committed(self, group: Group) -> None:
        for key, standing in group.standings.items():
            self._remember(key, standing)
            if standing.listed is not None:
                self.views.note(standing.listed)

    def _write(
        self,
        draft: Callable[[Group], None],
        appended: Callable[[Group], None] | None = None,
        staging: Staging | None = None,
        reserved_bytes: int = 0,
    ) -> Group:
        """Append what `draft` puts into a group, as one frame, under the lock; then sync it outside.

        Answers the group, once all that it does is durable.
        """
        while True:
            with self._appending:
                group = Group(self.files, self._ends, self.trails)
                draft(group)
                operations = group.draft.operations
                if not operations and (staging is None or not staging.is_chosen):
                    return group
                payload = encode_operations(operations)
                fits = self.journal.room_for(len(payload) + reserved_bytes)
                if fits and (staging is None or not staging.collides(self.journal.unsettled())):
                    if staging is not None:
                        staging.place()
                    frame = self._append(group, operations, payload)
                    self.trails.remember(group.sessions)
                    if appended is not None:
                        appended(group)
                    break
            self._make_room(len(payload) + reserved_bytes)
        self._sync(frame)
        return group

    def _make_room(self, payload_bytes: int) -> None:
        """Recycle the journal, or go on in a larger one where this one could never take so much."""
        self.settler.settle()
        if not self.journal.takes(payload_bytes):
            with self._appending:
                self.journal.grow(payload_bytes)

    def _append(self, group: Group, operations: list[Operation], payload: bytes) -> Appended:
        try:
            frame = self.journal.append(payload)
            self._overlay.add(frame, operations)
            others = group.draft.others
            if others:
                self._ends.follow(others)
            self._ends.update(group.draft.new_ends)
            for operation in others:
                if operation.kind is Kind.REPLACE and operation.path.endswith(layout.MANIFEST):
                    # Its last line may be another one now.
                    self._standings.pop(operation.path.rpartition("/")[0].partition("/")[2], None)
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
            with self._appending:
                # Only under the lock nobody is in the middle of a line, and the file may be replaced only
                # while the journal holds nothing that would be redone on it.
                damaged = self.views.unsound_manifest(workflow_id)
                if damaged is not None and not self._overlay.of(path):
                    remake_manifest(self._disk, self.files, self.views, workflow_id, damaged)
                    # What is pending of other files was committed meanwhile, and stays so.
                    self._start_over()
        self._sound.add(workflow_id)

    # -- leases ------------------------------------------------------------------------------

    def _keep_lease(self, workflow_id: str, decide: Decide, audit: Sequence[AuditEntry]) -> None:
        """Make durable what is decided under the lock about a workflow's lease, and tell of it."""

        def draft(group: Group) -> None:
            operation = decide(read_lease(self.files, workflow_id))
            if operation is not None:
                group.do([operation])
                group.tell(audit)

        def appended(_: Group) -> None:
            key = _key(workflow_id)
            if (standing := self._standings.get(key)) is not None:
                self._standings[key] = replace(standing, lease=read_lease(self.files, workflow_id))

        self._write(draft, appended)

    # -- derived objects and removal ---------------------------------------------------------

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        """Store a keyframe and its sum, and the sums of delta files that nobody will append to any more."""
        # Hashed before the lock is taken: a sealed file does not change.
        listed = self.views.manifest(workflow_id)
        sums = sums_of_sealed(self.files, listed)
        damaged = damaged_keyframe(self.views, listed, keyframe.entry.sequence)
        kept = keyframe

        def draft(group: Group) -> None:
            add_keyframe(group.draft, self.views, workflow_id, kept, sums, damaged)
            # A file is put in its place only if something in the frame says what it is.
            staging.choose([0] if group.operations else [])

        with Staging(self._disk) as staging:
            if len(keyframe.data) > self._frame_bytes_max // 2:
                staging.add(0, keyframe_path(workflow_id, keyframe), keyframe.data)
                kept = Keyframe(keyframe.entry, b"")
            self._write(draft, staging=staging)

    def remove(self, workflow_id: str, removal: Removal) -> int:
        """Commit a removal; answers the bytes it gives back."""
        return self.remover.remove(workflow_id, removal, self._frame_bytes_max // 2)


@lru_cache(maxsize=4096)
def _key(workflow_id: str) -> str:
    """Shard and folder name: the same below checkpoints and events."""
    return layout.workflow_folder(workflow_id).partition("/")[2]
