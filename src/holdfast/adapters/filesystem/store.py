"""`FilesystemStore`: plain files under a write-ahead journal."""

from __future__ import annotations

import hashlib
import os
import threading
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from holdfast.adapters.filesystem import layout, manifest, quarantine
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.faults import reading, writing
from holdfast.adapters.filesystem.frame import Frame, Kind, Operation, frame_bytes
from holdfast.adapters.filesystem.inspect import check_store, store_stats
from holdfast.adapters.filesystem.journal import FOLDER as JOURNAL
from holdfast.adapters.filesystem.journal import Damage, Journal
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.reader import JournalReader
from holdfast.adapters.filesystem.removal import plan_removal
from holdfast.adapters.filesystem.settings import Settings, read_settings, write_settings
from holdfast.adapters.filesystem.settler import Settler
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.filesystem.writer import Draft, Ends, Standing
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    StateTooLargeError,
    StoreClosedError,
    StoreDamageWarning,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from holdfast.domain.record import Commit, Entry, Head, Keyframe, KeyframeEntry, Removal
from holdfast.ports import Finding

JOURNAL_BYTES = 8 * 1024 * 1024
_STANDINGS_MAX = 8192


class FilesystemStore:
    """A store in a folder. Several threads and processes may use it at once.

    A commit is one append to the journal and one fdatasync. Everything else (record files,
    manifests, sums) is written from the journal in the background.
    """

    def __init__(self, disk: Disk, *, read_only: bool, journal_bytes: int, background: bool) -> None:
        self._disk = disk
        self._read_only = read_only
        self._journal_bytes = journal_bytes
        self._background = background
        self._mutex = threading.RLock()
        self._closed = False
        self._begin()

    @classmethod
    def open(
        cls,
        path: str,
        *,
        read_only: bool = False,
        create: bool = True,
        journal_bytes: int = JOURNAL_BYTES,
        background: bool = True,
        disk: Disk | None = None,
    ) -> FilesystemStore:
        """Open the store in a folder, or create one there.

        Args:
            read_only: Never write, not even a lock: for copies and for readers without permission.
            create: Make the store if there is none.
            journal_bytes: Size of the journal's ring; a commit may take half of it.
            background: Apply and settle in a thread; else only in `settle` and `close`.
            disk: Another door to the file system, for tests.
        """
        disk = disk or Disk(os.path.abspath(path))
        with reading(disk.root):
            exists = _exists(disk)
        if not exists and (read_only or not create):
            read_settings(disk)
        if not exists:
            with writing(disk.root):
                _create(disk)
        with reading(disk.root):
            read_settings(disk)
        return cls(disk, read_only=read_only, journal_bytes=journal_bytes, background=background)

    def _begin(self) -> None:
        """Everything a process needs of its own: at opening, and again after a fork."""
        self._pid = os.getpid()
        self._overlay = Overlay()
        self._files = Files(self._disk, self._overlay)
        self._ends = Ends(self._files)
        self._views = Views(self._disk, self._files, self._refresh)
        self._standings: OrderedDict[str, Standing] = OrderedDict()
        self._recent: dict[str, Entry] = {}
        self._journal: Journal | None = None
        self._reader = JournalReader(self._disk) if self._read_only else None
        if not self._read_only:
            with writing(self._disk.root):
                self._open_journal()
        self._refresh()

    def _open_journal(self) -> None:
        journal = Journal(self._disk, self._journal_bytes)
        self._settler = Settler(self._disk, journal, self._overlay, self._refresh)
        journal.open(self._settler.redo)
        self._journal = journal
        if journal.damage is not None:
            self._report_damage(journal.damage)

    def _report_damage(self, damage: Damage) -> None:
        reason = f"journal damaged at {damage.lsn}; durable up to {damage.durable}"
        name = quarantine.set_aside(self._disk, "journal", reason, damage.image)
        warnings.warn(
            f"{self.url}: {reason}. The bytes are kept in {name}.bin; run `holdfast validate --all` "
            "to see whether a checkpoint is missing.",
            StoreDamageWarning,
            stacklevel=4,
        )

    # -- state of this opening ---------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"file:{self._disk.root}"

    @property
    def read_only(self) -> bool:
        return self._read_only

    def _alive(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed", place=self.url)
        if self._pid != os.getpid():
            self._after_fork()

    def _after_fork(self) -> None:
        """We are a child: the descriptors' locks are the parent's, its threads are not here."""
        self._mutex = threading.RLock()
        if self._journal is not None:
            self._journal.release()
            self._settler.release()
        self._begin()

    def _writer(self) -> Journal:
        self._alive()
        if self._journal is None:
            raise StoreReadOnlyError(
                "the store was opened for reading only", place=self.url, hint="Open it without read_only."
            )
        return self._journal

    def _refresh(self) -> bool:
        """Take up what others committed; True if anything changed."""
        with self._mutex:
            source = self._journal or self._reader
            if source is None:
                return False
            if isinstance(source, Journal):
                forget, frames = source.catch_up()
                applied = source.page.mark(Page.APPLIED, source.generation)
            else:
                forget, frames = source.refresh()
                applied = source.settled
            if forget:
                self._forget()
            for frame in frames:
                self._take_up(frame)
            self._overlay.drop(applied)
            return forget or bool(frames)

    def _forget(self) -> None:
        self._overlay.clear()
        self._ends.clear()
        self._standings.clear()

    def _take_up(self, frame: Frame) -> None:
        """Follow a frame that another process wrote."""
        operations = frame.operations()
        self._overlay.add(frame, operations)
        for operation in operations:
            self._ends.note(operation)
            self._standings.pop(operation.path.rpartition("/")[0].partition("/")[2], None)

    # -- committing --------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        journal = self._writer()
        with writing(self.url):
            commits = [self._write_large(commit) for commit in commits]
            outcomes: list[Exception | None] = []
            while len(outcomes) < len(commits):
                outcomes += self._commit_some(journal, commits[len(outcomes) :])
        if self._background:
            self._settler.wake()
        return outcomes

    def _commit_some(self, journal: Journal, commits: Sequence[Commit]) -> list[Exception | None]:
        """Commit as many as one frame takes, with one sync."""
        with self._mutex, journal.locked():
            self._refresh()
            draft, outcomes, standings = self._draft(commits)
            if not draft.operations:
                return outcomes
            fits = journal.room_for(draft.payload_bytes)
            if fits:
                frame = self._append(journal, draft.operations)
                for key, standing in standings.items():
                    self._remember(key, standing)
        if not fits:
            self._settler.settle()
            return []
        self._sync(journal, frame)
        return outcomes

    def _draft(self, commits: Sequence[Commit]) -> tuple[Draft, list[Exception | None], dict[str, Standing]]:
        draft = Draft(self._files, self._ends)
        outcomes: list[Exception | None] = []
        standings: dict[str, Standing] = {}
        for commit in commits:
            if outcomes and draft.payload_bytes + _weight(commit) > self._frame_bytes_max:
                break
            key = _key(commit.workflow_id)
            try:
                standing = standings.get(key) or self._standing(commit.workflow_id)
                standings[key] = draft.add(commit, standing)
                outcomes.append(None)
            except (CheckpointConflictError, CheckpointNotFoundError) as error:
                outcomes.append(error)
            else:
                if commit.record is not None:
                    self._recent[commit.workflow_id] = commit.record.entry
        return draft, outcomes, standings

    @property
    def _frame_bytes_max(self) -> int:
        return self._journal_bytes // 2

    def _append(self, journal: Journal, operations: list[Operation]) -> Frame:
        frame = journal.append(operations)
        self._overlay.add(frame, operations)
        for operation in operations:
            self._ends.note(operation)
        return frame

    def _sync(self, journal: Journal, frame: Frame) -> None:
        try:
            journal.sync(frame)
        except BaseException:
            # What we appended is in doubt, and everything chained on it: know nothing any more.
            with self._mutex:
                self._forget()
            raise

    def _write_large(self, commit: Commit) -> Commit:
        """Values too large for the journal become durable files first, then they are referred to."""
        weight = _weight(commit)
        if weight <= self._frame_bytes_max:
            return commit
        for sha256, data in commit.blobs.items():
            if self._files.size(layout.blob_path(sha256)) is None:
                self._write_file(layout.blob_path(sha256), data)
        keyframe = commit.keyframe
        if keyframe is not None:
            folder = layout.workflow_folder(commit.workflow_id)
            name = layout.keyframe_name(keyframe.entry.sequence, keyframe.entry.suffix)
            self._write_file(f"{folder}/{name}", keyframe.data)
            keyframe = Keyframe(keyframe.entry, b"")
        slim = replace(commit, blobs={}, keyframe=keyframe, needs=(*commit.needs, *commit.blobs))
        if _weight(slim) > self._frame_bytes_max:
            raise StateTooLargeError(
                f"one commit of {_weight(slim)} bytes does not fit the journal",
                place=commit.workflow_id,
                hint="Record fewer events at once, or raise journal_bytes.",
            )
        return slim

    def _write_file(self, path: str, data: bytes) -> None:
        applier = Applier(self._disk)
        applier.apply([Operation(Kind.REPLACE, path, 0, data)])
        applier.sync()

    # -- standing ----------------------------------------------------------------------------

    def _standing(self, workflow_id: str) -> Standing:
        key = _key(workflow_id)
        standing = self._standings.get(key)
        if standing is None:
            standing = self._views.standing(workflow_id)
            self._remember(key, standing)
        return standing

    def _remember(self, key: str, standing: Standing) -> None:
        self._standings[key] = standing
        self._standings.move_to_end(key)
        if len(self._standings) > _STANDINGS_MAX:
            self._standings.popitem(last=False)

    def head(self, workflow_id: str) -> Head:
        self._alive()
        with reading(self.url), self._mutex:
            self._refresh()
            return self._standing(workflow_id).head

    # -- reading -----------------------------------------------------------------------------

    def workflows(self) -> Iterator[str]:
        self._alive()
        self._refresh()
        with reading(self.url):
            yield from self._views.workflows()

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        self._alive()
        listed = self._manifest(workflow_id).entries
        order = reversed(listed) if newest_first else iter(listed)
        yield from [listed[sequence] for sequence in order]

    def _manifest(self, workflow_id: str) -> manifest.Manifest:
        with reading(self.url):
            self._refresh()
            return self._views.manifest(workflow_id)

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        return [
            (workflow_id, entry)
            for workflow_id in self.workflows()
            for entry in self.entries(workflow_id)
            if entry.uuid.startswith(uuid_prefix)
        ]

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        self._alive()
        with reading(self.url):
            self._refresh()
            yield from self._views.records(workflow_id, first, last)

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        self._alive()
        found = self._manifest(workflow_id).keyframes
        return [found[sequence] for sequence in sorted(found)]

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        self._alive()
        with reading(self.url):
            self._refresh()
            return self._views.keyframe(workflow_id, sequence)

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        self._alive()
        with reading(self.url):
            self._refresh()
            yield from self._views.events(workflow_id, after)

    def has_blob(self, sha256: str) -> bool:
        self._alive()
        with reading(self.url):
            self._refresh()
            return self._files.size(layout.blob_path(sha256)) is not None

    def blob(self, sha256: str) -> bytes:
        self._alive()
        with reading(self.url):
            self._refresh()
            return self._views.blob(sha256)

    # -- derived objects and removal ---------------------------------------------------------

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        journal = self._writer()
        folder = layout.workflow_folder(workflow_id)
        sequence = keyframe.entry.sequence
        with writing(self.url):
            listed = self._manifest(workflow_id)
            known = listed.entries.get(sequence)
            if sequence in listed.keyframes or known is None or known.pruned:
                return
            name = layout.keyframe_name(sequence, keyframe.entry.suffix)
            self._write_file(f"{folder}/{name}", keyframe.data)
            with self._mutex, journal.locked():
                self._refresh()
                draft = Draft(self._files, self._ends)
                line = draft.add_keyframe(Keyframe(keyframe.entry, b""), folder)
                draft.add_manifest(workflow_id, folder, line)
                self._seal_groups(draft, folder, listed)
                frame = self._append(journal, draft.operations)
            self._sync(journal, frame)

    def _seal_groups(self, draft: Draft, folder: str, listed: manifest.Manifest) -> None:
        """Sums of delta files that nobody will append to any more."""
        groups = sorted({entry.group for entry in listed.entries.values() if not entry.pruned})
        summed = self._files.read(layout.sums_path(folder)) or b""
        for group in groups[:-1]:
            name = layout.deltas_name(group)
            data = None if name.encode() in summed else self._files.read(f"{folder}/{name}")
            if data is not None:
                draft.add_sum(folder, hashlib.sha256(data).hexdigest(), name)

    def remove(self, workflow_id: str, removal: Removal) -> int:
        journal = self._writer()
        with writing(self.url):
            while True:
                with self._mutex, journal.locked():
                    self._refresh()
                    plan = plan_removal(self._files, self._views, workflow_id, removal)
                    fits = journal.room_for(plan.payload_bytes)
                    if fits and plan.operations:
                        frame = self._append(journal, plan.operations)
                if fits:
                    break
                self._settler.settle()
            if plan.operations:
                self._sync(journal, frame)
        return plan.freed_bytes

    # -- looking after itself ----------------------------------------------------------------

    def check(self) -> Iterator[Finding]:
        self._alive()
        with reading(self.url):
            self._refresh()
            if self._reader is not None and (damage := self._reader.damage()) is not None:
                yield Finding("journal", f"damaged at {damage.lsn}, durable up to {damage.durable}")
            yield from check_store(self._disk, self._files, self._views)

    def stats(self) -> dict[str, Any]:
        self._alive()
        with reading(self.url):
            return store_stats(self._disk)

    def settle(self) -> None:
        self._writer()
        with writing(self.url):
            self._settler.settle()
            self._write_latest()

    def _write_latest(self) -> None:
        if self._recent:
            recent, self._recent = self._recent, {}
            data = manifest.latest_json(self._files.read(layout.LATEST), recent)
            Applier(self._disk).apply([Operation(Kind.REPLACE, layout.LATEST, 0, data)])

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._pid != os.getpid():
            return
        if self._reader is not None:
            self._reader.close()
        if self._journal is not None:
            self._close_journal(self._journal)

    def _close_journal(self, journal: Journal) -> None:
        self._settler.stop()
        try:
            with writing(self.url):
                self._settler.settle()
                self._write_latest()
        except CheckpointWriteError:
            # The journal still holds everything; the next opening redoes it.
            journal.close(shrink=False)
        else:
            journal.close(shrink=True)
        self._settler.release()


def _key(workflow_id: str) -> str:
    """Shard and folder name: the same below checkpoints and events."""
    return layout.workflow_folder(workflow_id).partition("/")[2]


def _weight(commit: Commit) -> int:
    """About how many journal bytes a commit takes."""
    record = len(commit.record.data) if commit.record else 0
    keyframe = len(commit.keyframe.data) if commit.keyframe else 0
    events = sum(len(event.data) for event in commit.events)
    return frame_bytes(4096 + record + keyframe + events + sum(map(len, commit.blobs.values())))


def _exists(disk: Disk) -> bool:
    try:
        read_settings(disk)
    except StoreNotFoundError:
        return False
    return True


def _create(disk: Disk) -> None:
    disk.make_root()
    disk.make_folder(JOURNAL)
    disk.sync_folder("")
    write_settings(disk, Settings(str(uuid.uuid4())))
