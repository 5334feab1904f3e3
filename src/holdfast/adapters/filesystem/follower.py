"""What a read-only opening knows: the journal followed from outside, laid over the files."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.reader import JournalReader
from holdfast.adapters.filesystem.trails import Trails
from holdfast.adapters.filesystem.views import Views
from holdfast.ports import Finding


class Follower:
    """Keeps an overlay up to date from a journal that others may be writing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._reader = JournalReader(disk)
        self._overlay = Overlay()
        self._mutex = threading.Lock()
        self.files = Files(disk, self._overlay)
        self.views = Views(disk, self.files, self.refresh)
        self.trails = Trails(self.files, self.refresh)

    @property
    def pending_bytes(self) -> int:
        """Journal bytes that are not settled."""
        return self._reader.end - self._reader.settled

    def refresh(self) -> bool:
        """Take up what others committed; True if anything changed."""
        with self._mutex:
            try:
                return self._take_up()
            except BaseException:
                # Half a look is none: start over at the next one.
                self._overlay.renew(())
                self.trails.forget()
                self._reader.close()
                raise

    def _take_up(self) -> bool:
        forget, frames = self._reader.refresh()
        told = [(frame, frame.operations()) for frame in frames]
        if forget:
            self._overlay.renew(told)
            self.trails.forget()
        else:
            for frame, operations in told:
                self._overlay.add(frame, operations)
        self._overlay.drop(self._reader.settled)
        return forget or bool(frames)

    def check(self) -> Iterator[Finding]:
        if self._reader.ring is None and self._has_begun():
            # Files may be right without it, but nobody can say whether they are all there is.
            yield Finding("journal", "no ring can be read: what was committed and not yet settled is gone")
        if (damage := self._reader.damage()) is not None:
            yield Finding("journal", f"damaged at {damage.lsn}, durable up to {damage.durable}")

    def _has_begun(self) -> bool:
        """Tell whether there ever was a ring: whoever makes a store may die before it."""
        tops = (layout.CHECKPOINTS, layout.EVENTS, layout.AUDIT)
        return self._reader.is_told_of or any(map(self._disk.list_folder, tops))

    def close(self) -> None:
        self._reader.close()
