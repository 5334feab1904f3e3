"""Background work on the files: applying what is durable, syncing it, recycling the journal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import takewhile

from holdfast.adapters.filesystem.applied import Applied, Position
from holdfast.adapters.filesystem.apply import Applier
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.frame import Frame, Operation
from holdfast.adapters.filesystem.journal import Journal
from holdfast.adapters.filesystem.overlay import Overlay, Pending
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.ring_files import FOLDER
from holdfast.domain.errors import StoreClosedError

#: How long commits may gather before they are written to the files together, unless they fill half of the
#: journal before: opening a file costs more than writing to it, and readers see what is pending anyway.
BATCH_SECONDS = 1.0
#: How long nothing must happen before the journal is settled although it has room.
IDLE_SECONDS = 0.5


class Settler:
    """The one applier of a store, among all processes, by lock."""

    def __init__(
        self,
        disk: Disk,
        journal: Journal,
        overlay: Overlay,
        refresh: Callable[[], bool],
        appending: AbstractContextManager[None],
    ) -> None:
        self._disk = disk
        self._journal = journal
        self._overlay = overlay
        self._refresh = refresh
        self._appending = appending
        self._lock = disk.open(f"{FOLDER}/applier", write=True, create=True)
        self._mutex = threading.Lock()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._life = threading.Lock()
        #: Whether the thread was told of everything so far; what it has begun to apply may have come before.
        self._is_awake = False
        self._stopping = False
        self._closed = False
        self._thread: threading.Thread | None = None
        #: What this process applied since it last settled.
        self._applied: Applied | None = None
        self.error: Exception | None = None

    def wake(self) -> None:
        """There is something to apply."""
        if self._is_awake and not self._is_pressed():
            return
        # One thread, and none after the end: another would outlive the descriptors that it uses.
        with self._life:
            if self._stopping:
                return
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="holdfast-settler", daemon=True)
                self._thread.start()
            self._is_awake = True
            self._wake.set()
            if self._is_pressed():
                self._hurry.set()

    def _is_pressed(self) -> bool:
        """Tell whether more than half of the journal is not settled."""
        journal = self._journal
        block = journal.ring.superblock
        half = block.capacity // 2
        # What others settled is asked for only where what we settled does not do.
        return journal.end - block.settled > half and self._used > half

    @property
    def _used(self) -> int:
        """Journal bytes that are not settled."""
        return self._journal.end - self._journal.settled

    def _run(self) -> None:
        while True:
            idle = not self._wake.wait(IDLE_SECONDS if self._used else None)
            if self._stopping:
                return
            self._wake.clear()
            # After that: whoever still finds it awake has made durable before what is applied below.
            self._is_awake = False
            if not idle:
                self._hurry.wait(BATCH_SECONDS)
                self._hurry.clear()
            self._try(idle=idle)

    def _try(self, *, idle: bool) -> None:
        """One round; a fault is remembered and tried again, the journal still holds everything."""
        try:
            self.apply()
            if self._used and (idle or self._is_pressed()):
                self.settle()
            self.error = None
        except Exception as error:
            self.error = error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one process, and the one thread of it, that writes to the files."""
        with self._mutex:
            if self._closed:
                raise StoreClosedError("the store was closed meanwhile", place=self._disk.root)
            # What stands in the place of the store may be another one by now, whose files these are not.
            self._journal.place.check()
            self._disk.lock(self._lock)
            try:
                yield
            finally:
                self._disk.unlock(self._lock)

    def apply(self) -> None:
        """Write every durable, unapplied operation to its file."""
        with self.locked():
            self._apply()

    def _apply(self) -> None:
        self._refresh()
        generation = self._journal.generation
        frames = self._overlay.through(self._journal.durable)
        if frames:
            Applier(self._disk).apply(operation for frame in frames for operation in frame.operations)
            self._remember(frames)
            self._journal.page.raise_mark(Page.APPLIED, generation, frames[-1].end)
            self._overlay.drop(frames[-1].end)

    def _remember(self, frames: list[Pending]) -> None:
        """Keep what has to be synced; what another process applied in between is read from the ring then."""
        start = frames[0].lsn, frames[0].previous
        if self._applied is None or self._applied.end != start:
            self._applied = Applied(start)
        for frame in frames:
            self._applied.add(frame, frame.operations)

    def settle(self) -> None:
        """Make the files durable and recycle the journal up to there."""
        with self.locked():
            self._journal.sync_published()
            self._apply()
            self._settle()

    def _settle(self) -> None:
        journal = self._journal
        generation, page = journal.generation, journal.page
        journal.reread_settled()
        settled = journal.settled
        applier = Applier(self._disk)
        if page.mark(Page.REDO, generation) > settled:
            # A sync of these files failed: their pages may count as clean although they never
            # reached the disk. Only writing them again makes a later sync mean anything.
            applied, operations = self._read_applied()
            applier.apply_afresh(operations)
        elif self._applied is not None and self._applied.start == journal.settled_position:
            applied = self._applied
        else:
            applied, _ = self._read_applied()
        if applied.end == applied.start:
            return
        applier.adopt(applied.paths)
        try:
            applier.sync()
        except OSError:
            page.raise_mark(Page.REDO, generation, settled + 1)
            raise
        if applied.final is not None:
            self._leave_nothing(applied.final)
        journal.settle(*applied.end)
        self._applied = None

    def _read_applied(self) -> tuple[Applied, list[Operation]]:
        """What anybody applied since the settled point, as the ring tells it."""
        journal = self._journal
        # Commits go on meanwhile: what became durable after the last batch is in no file yet.
        through = journal.page.mark(Page.APPLIED, journal.generation)
        frames = takewhile(lambda frame: frame.end <= through, journal.frames_since_settled())
        return _added_up(journal.settled_position, frames)

    def _leave_nothing(self, final: Position) -> None:
        """Wipe the journal of what a frame took away; that frame is settled last, for a crash before then."""
        with self._appending:
            self._journal.settle(*final)
            self._journal.wipe()

    def redo(self, frames: list[Frame]) -> Position | None:
        """After a crash: carry everything since the settled point out again, durably.

        Answers where the last frame begins that took something away of which no trace may stay.
        """
        applied, operations = _added_up((0, b""), frames)
        applier = Applier(self._disk)
        # Whoever died may have died of a sync that failed.
        applier.apply_afresh(operations)
        applier.adopt(applied.paths)
        applier.sync()
        return applied.final

    def stop(self) -> None:
        """End the thread; what it did not get to is in the journal."""
        with self._life:
            self._stopping = True
        self._wake.set()
        self._hurry.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Keep every thread out for good: what it would use is closed meanwhile."""
        with self._mutex:
            self._closed = True
            try:
                yield
            finally:
                self.release()

    def release(self) -> None:
        self._disk.close(self._lock)


def _added_up(start: Position, frames: Iterable[Frame]) -> tuple[Applied, list[Operation]]:
    applied, operations = Applied(start), list[Operation]()
    for frame in frames:
        listed = frame.operations()
        applied.add(frame, listed)
        operations += listed
    return applied, operations
