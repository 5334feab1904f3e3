"""Checkpoints of one workflow, or of all of them, the newest first, in pages that never repeat a row."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from holdfast.application.insight.checkpoint_rows import CheckpointRow, checkpoint_row
from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.application.insight.runs import RunBook
from holdfast.application.kit import Kit
from holdfast.application.resolve import living
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text

#: So many are looked at for one page; the cursor goes on where that ended.
LOOKED_AT_MAX = 20_000
_SIGNS = str.maketrans("", "", "-:.TZ")

#: Later moments are smaller, then by name, then later checkpoints.
Place = tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class CheckpointFilter:
    """Which checkpoints are asked for; None stands for anything.

    Attributes:
        since, until: made at that moment or later, and not after it.
    """

    workflow_id: str | None = None
    agent: str | None = None
    status: str | None = None
    type: str | None = None
    label: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, entry: Entry) -> bool:
        """Tell whether a checkpoint is asked for."""
        return (
            self.agent in (None, entry.agent)
            and self.status in (None, entry.status)
            and self.type in (None, entry.type)
            and self.label in (None, entry.label)
            and (self.since is None or entry.timestamp >= timestamp_text(self.since))
            and (self.until is None or entry.timestamp <= timestamp_text(self.until))
        )


def checkpoint_page(
    kit: Kit, book: RunBook, wanted: CheckpointFilter, cursor: str | None, limit: int
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
    oldest = None if wanted.since is None else -_moment(timestamp_text(wanted.since))
    looked_at = 0
    for place, entry in _placed(kit, book, wanted.workflow_id):
        if after is not None and place <= after:
            continue
        if oldest is not None and place[0] > oldest:
            return rows, None
        if len(rows) == limit or looked_at == LOOKED_AT_MAX:
            return rows, write_cursor("checkpoints", last) if last else None
        looked_at, last = looked_at + 1, place
        if wanted.matches(entry):
            rows.append(checkpoint_row(place[1], entry))
    return rows, None


def _placed(kit: Kit, book: RunBook, workflow_id: str | None) -> Iterator[tuple[Place, Entry]]:
    """Yield checkpoints in order; a workflow is read only once its newest has its turn."""
    if workflow_id is not None:
        yield from _of(kit, workflow_id)
        return
    known = ((facts.newest, name) for _, facts in book.all() if (name := facts.workflow_id))
    waiting = sorted(((-_moment(newest.timestamp), name) for newest, name in known if newest), reverse=True)
    turns: list[tuple[Place, Entry, Iterator[tuple[Place, Entry]]]] = []
    while waiting or turns:
        while waiting and (not turns or waiting[-1][0] <= turns[0][0][0]):
            _push(turns, _of(kit, waiting.pop()[1]))
        if turns:
            place, entry, rest = heapq.heappop(turns)
            yield place, entry
            _push(turns, rest)


def _push(
    turns: list[tuple[Place, Entry, Iterator[tuple[Place, Entry]]]], rest: Iterator[tuple[Place, Entry]]
) -> None:
    try:
        following = next(rest, None)
    except CheckpointError:
        # What cannot be read is told where its workflow is listed; the others are listed all the same.
        return
    if following is not None:
        heapq.heappush(turns, (*following, rest))


def _of(kit: Kit, workflow_id: str) -> Iterator[tuple[Place, Entry]]:
    """Yield the checkpoints of one workflow; a clock that went back does not change their order."""
    moment = None
    for entry in living(kit.store, workflow_id):
        own = _moment(entry.timestamp)
        moment = own if moment is None else min(moment, own)
        yield (-moment, workflow_id, -entry.sequence), entry


def _moment(timestamp: str) -> int:
    """Turn a timestamp into a number that grows with time."""
    digits = timestamp.translate(_SIGNS)
    return int(digits) if digits.isascii() and digits.isdecimal() else 0
