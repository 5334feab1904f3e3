"""`FilesystemStore`: plain files under a write-ahead journal."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from holdfast.adapters.filesystem import inherited, layout, own_files, quarantine
from holdfast.adapters.filesystem.committer import Committer
from holdfast.adapters.filesystem.disk import MAP_BYTES, Disk
from holdfast.adapters.filesystem.evidence import evidence
from holdfast.adapters.filesystem.faults import WRITE_FAULTS, Writing, reading, write_error
from holdfast.adapters.filesystem.follower import Follower
from holdfast.adapters.filesystem.inspect import check_store, store_stats
from holdfast.adapters.filesystem.inspect_trail import check_trail
from holdfast.adapters.filesystem.leases import Leases, read_lease
from holdfast.adapters.filesystem.leftovers import check_leftovers
from holdfast.adapters.filesystem.manifest import Manifest
from holdfast.adapters.filesystem.named import Named
from holdfast.adapters.filesystem.ring_files import Damage
from holdfast.adapters.filesystem.settings import create_store, is_store, read_settings
from holdfast.adapters.filesystem.trails import Trails
from holdfast.adapters.filesystem.views import Views
from holdfast.adapters.system import SystemClock
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.errors import (
    CheckpointWriteError,
    StoreClosedError,
    StoreDamageWarning,
    StoreNotFoundError,
    StoreReadOnlyError,
)
from holdfast.domain.lease import as_of
from holdfast.domain.record import Commit, Entry, Head, Keyframe, KeyframeEntry, Lease, Removal
from holdfast.ports import Clock, Finding

JOURNAL_BYTES = 8 * 1024 * 1024


class FilesystemStore:
    """A store in a folder. Several threads and processes may use it at once.

    A commit is one append to the journal and one fdatasync. Everything else (record files,
    manifests, sums) is written from the journal in the background.
    """

    def __init__(
        self, disk: Disk, *, read_only: bool, journal_bytes: int, background: bool, clock: Clock
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._read_only = read_only
        self._journal_bytes = journal_bytes
        self._background = background
        self._closed = False
        self._reopening = threading.Lock()
        self._begin()
        inherited.hold(self)

    @classmethod
    def open(
        cls,
        path: str,
        *,
        read_only: bool = False,
        create: bool = True,
        journal_bytes: int = JOURNAL_BYTES,
        background: bool = True,
        map_bytes: int = MAP_BYTES,
        disk: Disk | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Open the store in a folder, or create one there.

        Args:
            read_only: Never write, not even a lock: for copies and for readers without permission.
            create: Make the store if there is none.
            journal_bytes: Size of the journal's ring; a commit may take half of it.
            background: Apply and settle in a thread; else only in `settle` and `close`.
            map_bytes: From this size on, files are read through a memory map.
            disk: Another door to the file system, for tests.
            clock: What leases expire by; all who write one store must agree on it.
        """
        disk = disk or Disk(os.path.abspath(path), map_bytes)
        with reading(disk.root):
            exists = is_store(disk)
        if not exists and create and not read_only:
            with Writing(disk.root):
                create_store(disk)
        with reading(disk.root):
            read_settings(disk)
        return cls(
            disk,
            read_only=read_only,
            journal_bytes=journal_bytes,
            background=background,
            clock=clock or SystemClock(),
        )

    def _begin(self) -> None:
        """Everything a process needs of its own: at opening, and again after a fork."""
        self._committer: Committer | None = None
        if self._read_only:
            self._source: Committer | Follower = Follower(self._disk)
        else:
            with Writing(self._disk.root):
                self._source = self._committer = Committer(self._disk, self._journal_bytes, self._clock)
            if (damage := self._committer.journal.damage) is not None:
                self._report_damage(damage)
        self._folder = Named(self._disk)
        self._pid = os.getpid()

    def _report_damage(self, damage: Damage) -> None:
        reason = str(damage)
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
        self._check_own()
        # What is open would be written as if the rest were there, and what is not would be made anew.
        self._folder.check()

    def _check_own(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed", place=self.url)
        if self._pid != os.getpid():
            with self._reopening:
                if self._pid != os.getpid():
                    self._begin()

    def let_go(self) -> None:
        """In a forked child, at once: a descriptor it holds would keep the locks of a parent that dies."""
        self._reopening = threading.Lock()
        if self._committer is not None and not self._closed:
            self._committer.release()
            self._committer = None

    def _writer(self) -> Committer:
        self._alive()
        return self._appender()

    def _appender(self) -> Committer:
        """Answer who appends to the journal, whose name is looked at then: it stands for the folder's."""
        self._check_own()
        if self._committer is None:
            raise StoreReadOnlyError(
                "the store was opened for reading only", place=self.url, hint="Open it without read_only."
            )
        return self._committer

    def _fresh(self) -> Views:
        """Views that know what everybody committed until now."""
        self._alive()
        self._source.refresh()
        return self._source.views

    # -- writing -----------------------------------------------------------------------------

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        committer = self._appender()
        try:
            outcomes = committer.commit(commits)
        except WRITE_FAULTS as error:
            raise write_error(error, self.url) from error
        if self._background:
            committer.settler.wake()
        return outcomes

    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        committer = self._writer()
        with Writing(self.url):
            self._fresh()
            committer.put_keyframe(workflow_id, keyframe)

    def remove(self, workflow_id: str, removal: Removal) -> int:
        committer = self._writer()
        with Writing(self.url):
            committer.refresh()
            return committer.remove(workflow_id, removal)

    def sweep(self) -> int:
        """Take away what killed writers left; answer the bytes given back."""
        committer = self._writer()
        with Writing(self.url):
            committer.refresh()
            return committer.remover.sweep()

    # -- leases ------------------------------------------------------------------------------

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        with self._leasing() as leases:
            return leases.acquire(workflow_id, owner, ttl_seconds, audit)

    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        with self._leasing() as leases:
            return leases.renew(lease, ttl_seconds)

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        with self._leasing() as leases:
            leases.release(lease, audit)

    @contextmanager
    def _leasing(self) -> Iterator[Leases]:
        committer = self._writer()
        with Writing(self.url):
            yield committer.leases
        if self._background:
            committer.settler.wake()

    def lease(self, workflow_id: str) -> Lease | None:
        with reading(self.url):
            self._fresh()
            file = read_lease(self._source.files, workflow_id)
        lease = None if file is None else file.in_force(workflow_id)
        return None if lease is None else as_of(lease, self._clock.now())

    # -- reading -----------------------------------------------------------------------------

    def head(self, workflow_id: str) -> Head:
        with reading(self.url):
            views = self._fresh()
            return (self._committer or views).standing(workflow_id).head

    def workflows(self) -> Iterator[str]:
        with reading(self.url):
            yield from self._fresh().workflows()

    def _manifest(self, workflow_id: str) -> Manifest:
        with reading(self.url):
            return self._fresh().manifest(workflow_id)

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        # A manifest that was read is never changed: what is added makes another one.
        listed = self._manifest(workflow_id).entries
        yield from reversed(listed.values()) if newest_first else listed.values()

    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        return [
            (workflow_id, entry)
            for workflow_id in self.workflows()
            for entry in self.entries(workflow_id)
            if entry.uuid.startswith(uuid_prefix)
        ]

    def records(self, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        with reading(self.url):
            yield from self._fresh().records(workflow_id, first, last)

    def keyframes(self, workflow_id: str) -> list[KeyframeEntry]:
        found = self._manifest(workflow_id).keyframes
        return [found[sequence] for sequence in sorted(found)]

    def newest_keyframe(self, workflow_id: str, through: int) -> KeyframeEntry | None:
        found = self._manifest(workflow_id).keyframes
        newest = max((sequence for sequence in found if sequence <= through), default=None)
        return None if newest is None else found[newest]

    def keyframe(self, workflow_id: str, sequence: int) -> bytes:
        with reading(self.url):
            return self._fresh().keyframe(workflow_id, sequence)

    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        with reading(self.url):
            yield from self._fresh().events(workflow_id, after)

    def has_blob(self, sha256: str) -> bool:
        with reading(self.url):
            self._fresh()
            return self._source.files.size(layout.blob_path(sha256)) is not None

    def blob(self, sha256: str) -> bytes:
        with reading(self.url):
            return self._fresh().blob(sha256)

    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        with reading(self.url):
            listed = self._fresh().manifest(workflow_id)
            yield from evidence(self._source.files, listed, workflow_id, sequence)

    # -- the trail ---------------------------------------------------------------------------

    def _trails(self) -> Trails:
        self._fresh()
        return self._source.trails

    def trail_head(self, session_id: str) -> TrailHead:
        with reading(self.url):
            trails = self._trails()
            committer = self._committer
            return committer.trail_head(session_id) if committer else trails.session(session_id).head

    def sessions(self) -> Iterator[str]:
        with reading(self.url):
            yield from self._trails().sessions()

    def trail(self, session_id: str, *, after: int = 0) -> Iterator[bytes]:
        with reading(self.url):
            yield from self._trails().entries(session_id, after)

    def payload(self, session_id: str, seq: int) -> bytes | None:
        with reading(self.url):
            return self._trails().payload(session_id, seq)

    def integrate(self) -> int:
        """The order of commits is that of the leaves: an entry has its place at once."""
        if self._committer is None:
            with reading(self.url):
                return self._trails().size()
        committer = self._writer()
        with Writing(self.url):
            return committer.tree_size()

    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        with reading(self.url):
            yield from self._trails().leaves(after)

    def waiting(self) -> Iterator[bytes]:
        self._alive()
        return iter(())

    def place(self, session_id: str, seq: int) -> int | None:
        with reading(self.url):
            return self._trails().place(session_id, seq)

    def file(self, name: str) -> bytes | None:
        with reading(self.url):
            self._fresh()
            return own_files.read(self._source.files, name)

    def files(self, prefix: str) -> Iterator[str]:
        with reading(self.url):
            self._fresh()
            yield from own_files.names(self._source.files, prefix)

    # -- looking after itself ----------------------------------------------------------------

    def check(self) -> Iterator[Finding]:
        with reading(self.url):
            views = self._fresh()
            if isinstance(self._source, Follower):
                yield from self._source.check()
            yield from check_store(self._source.files, views)
            yield from check_leftovers(self._disk, self._source.files, views)
            yield from check_trail(self._source.files, self._source.trails)

    def stats(self) -> dict[str, Any]:
        with reading(self.url):
            trails = self._trails()
            stats = store_stats(self._disk, self._source.pending_bytes)
            return {**stats, "audit_entries": trails.size(), "sessions": sum(1 for _ in trails.sessions())}

    def settle(self) -> None:
        committer = self._writer()
        with Writing(self.url):
            committer.settler.settle()

    def close(self) -> None:
        was_closed, self._closed = self._closed, True
        if was_closed or self._pid != os.getpid():
            return
        if self._committer is not None:
            self._close_journal(self._committer)
        elif isinstance(self._source, Follower):
            self._source.close()
        inherited.drop(self)

    def _close_journal(self, committer: Committer) -> None:
        committer.settler.stop()
        try:
            with Writing(self.url):
                committer.settler.settle()
        except (CheckpointWriteError, StoreNotFoundError):
            # The journal still holds everything, wherever it is now; the next opening redoes it.
            committer.close(shrink=False)
        else:
            committer.close(shrink=True)
