"""Frames that were carried out on the files, one after the other, until they are durable there."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.filesystem.frame import Frame, Operation
from holdfast.adapters.filesystem.overlay import Pending
from holdfast.adapters.filesystem.own_files import leaves_nothing

#: A position in the journal, and the chain value there.
Position = tuple[int, bytes]


class Applied:
    """What to sync before the journal is settled up to `end`."""

    def __init__(self, start: Position) -> None:
        self.start = self.end = start
        self.paths: set[str] = set()
        #: Where the last frame begins that takes something away of which no trace may stay.
        self.final: Position | None = None

    def add(self, frame: Frame | Pending, operations: Sequence[Operation]) -> None:
        """Take the next frame."""
        self.paths.update([operation.path for operation in operations])
        if any(map(leaves_nothing, operations)):
            self.final = frame.lsn, frame.previous
        self.end = frame.end, frame.digest
