"""Checkpoints of one workflow, or of all of them, the newest first, in pages that never repeat a row."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from holdfast.application.insight.checkpoint_rows import CheckpointRow, checkpoint_row
from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.application.insight.recent_checkpoints import Place, Placed, moment_of
from holdfast.application.insight.runs import RunBook
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text

#: So many are looked at for one page; the cursor goes on where that ended.
LOOKED_AT_MAX = 20_000


@dataclass(frozen=True, slots=True)
class CheckpointFilter:
    """Which checkpoints are asked for; None stands for anything.

    Attributes:
        since, until: made at that moment or later, and not after it.
        labelled: workflow and number of those that were given the label after they were made.
    """

    workflow_id: str | None = None
    agent: str | None = None
    status: str | None = None
    type: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    labelled: frozenset[tuple[str, int]] = frozenset()

    def matches(self, workflow_id: str, entry: Entry) -> bool:
        """Tell whether a checkpoint is asked for."""
        return (
            self.agent in (None, entry.agent)
            and self.status in (None, entry.status)
            and self.type in (None, entry.type)
            and (self.label in (None, entry.label) or (workflow_id, entry.sequence) in self.labelled)
            and (self.since is None or entry.timestamp >= timestamp_text(self.since))
            and (self.until is None or entry.timestamp <= timestamp_text(self.until))
        )


def checkpoint_page(
    book: RunBook, wanted: CheckpointFilter, cursor: str | None, limit: int
) -> tuple[list[CheckpointRow], str | None]:
    """List checkpoints that are kept, from a cursor on, and where the next page begins.

    Raises:
        InvalidIdError: the cursor is none.
    """
    after: Place | None = None
    if cursor is not None:
        moment, name, number = read_cursor("checkpoints", cursor, (int, str, int))
        after = int(moment), str(name), int(number)
    rows, last = list[CheckpointRow](), after
    oldest = None if wanted.since is None else -moment_of(timestamp_text(wanted.since))
    looked_at = 0
    for place, entry in _placed(book, wanted.workflow_id, after):
        if oldest is not None and place[0] > oldest:
            return rows, None
        if len(rows) == limit or looked_at == LOOKED_AT_MAX:
            return rows, write_cursor("checkpoints", last) if last else None
        looked_at, last = looked_at + 1, place
        if wanted.matches(place[1], entry):
            rows.append(checkpoint_row(place[1], entry))
    return rows, None


def matched(book: RunBook, wanted: CheckpointFilter) -> Iterator[bool]:
    """Tell of each checkpoint that is kept whether it is asked for."""
    return (wanted.matches(place[1], entry) for place, entry in _placed(book, wanted.workflow_id, None))


def _placed(book: RunBook, workflow_id: str | None, after: Place | None) -> Iterator[Placed]:
    """Yield checkpoints in order; a workflow is read only once its newest has its turn."""
    if workflow_id is not None:
        facts = book.facts(workflow_id)
        yield from () if facts is None else book.recent.of(facts, after)
        return
    waiting = iter(book.swept().by_newest)
    following = next(waiting, None)
    turns: list[tuple[Place, Entry, Iterator[Placed]]] = []
    while following or turns:
        while following and (not turns or following[0] <= turns[0][0][0]):
            _push(turns, book.recent.of(following[2], after))
            following = next(waiting, None)
        if turns:
            place, entry, rest = heapq.heappop(turns)
            yield place, entry
            _push(turns, rest)


def _push(turns: list[tuple[Place, Entry, Iterator[Placed]]], rest: Iterator[Placed]) -> None:
    try:
        following = next(rest, None)
    except CheckpointError:
        # What cannot be read is told where its workflow is listed; the others are listed all the same.
        return
    if following is not None:
        heapq.heappush(turns, (*following, rest))
