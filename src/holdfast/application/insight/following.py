"""Following workflows: where each stands, and what has happened since one last looked."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import living
from holdfast.domain.checkpoint import CheckpointStatus, has_ended
from holdfast.domain.event import Event
from holdfast.domain.record import Entry
from holdfast.domain.run_events import RUN_UPDATED
from holdfast.domain.time import timestamp_text

#: What a workflow is called that nothing says otherwise about.
AT_WORK = "in_progress"
#: Nothing happens after these by itself.
ENDED = frozenset({"completed", "failed", "cancelled"})
#: So far back is looked for how a run stands; a run says so whenever it begins and ends.
EVENTS_BACK = 200
#: So long one turn may take among very many workflows, and so many that moved are looked at each time.
TURN_SECONDS_MAX = 1.0
_MOVED_MAX = 100
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def last_told(kit: Kit, workflow_id: str) -> str | None:
    """Answer what a run last said of itself, if that is not long ago; None if it said nothing."""
    last = kit.store.head(workflow_id).event_seq
    told: str | None = None
    for event in Reader(kit).opened_events(workflow_id, max(last - EVENTS_BACK, 0)):
        told = run_status(event) or told
    return told


def run_status(event: Event) -> str | None:
    """Answer how its run stands after an event; None where the event does not say."""
    fields = event.data.get("fields") if event.type == RUN_UPDATED else None
    told = fields.get("status") if isinstance(fields, Mapping) else None
    return told if isinstance(told, str) else None


def by_checkpoint(kit: Kit, workflow_id: str) -> str:
    """Tell how a workflow stands whose run says nothing about it, or that none of ours runs."""
    return told_by(next(living(kit.store, workflow_id), None))


def told_by(newest: Entry | None) -> str:
    """Tell how a workflow stands by its newest checkpoint alone."""
    if newest is None:
        return AT_WORK
    if newest.status == CheckpointStatus.FAILED:
        return "failed"
    return "completed" if has_ended(newest) else AT_WORK


def first_since(kit: Kit, workflow_id: str, moment: datetime) -> int:
    """Answer an event at or before which nothing is as young as a moment, without reading any event."""
    text = timestamp_text(moment)
    for entry in kit.store.entries(workflow_id, newest_first=True):
        if entry.timestamp < text:
            return entry.event_seq
    return 0


class Follower:
    """Answers what is new in workflows, the given ones or all, each time it is asked.

    It looks at heads, and reads the events of those that moved, and of these the new ones only. Of very many
    workflows it looks at some each time, in turn, and always at those that moved last.
    """

    def __init__(self, kit: Kit, workflow_ids: Sequence[str] = (), *, since: datetime | None = None) -> None:
        """Begin after what there is now, or with what happened since a moment."""
        self._kit = kit
        self._reader = Reader(kit)
        self._chosen = tuple(workflow_ids)
        #: What is younger than this is new in a workflow that was not looked at yet.
        self._since = since or kit.clock.now()
        self._seen: dict[str, int] = {}
        self._moved: deque[str] = deque(maxlen=_MOVED_MAX)
        self._round: Iterator[str] = iter(())
        if since is None:
            for workflow_id in self._chosen:
                self.begin_after(workflow_id, kit.store.head(workflow_id).event_seq)

    def begin_after(self, workflow_id: str, seq: int) -> None:
        """Take everything up to an event as known."""
        self._seen[workflow_id] = seq

    def changes(self) -> list[Event]:
        """Answer the events since the last time, verified, in the order of time where there are several."""
        new = [event for workflow_id in self._watched() for event in self._new(workflow_id)]
        return new if len(self._chosen) == 1 else sorted(new, key=lambda event: event.timestamp)

    def _watched(self) -> Iterator[str]:
        yield from self._chosen or tuple(self._moved)
        if not self._chosen:
            yield from self._turn()

    def _turn(self) -> Iterator[str]:
        """Yield workflows, going on where the last turn had to end; if it can be, one turn is a round."""
        end = time.monotonic() + TURN_SECONDS_MAX
        yield from self._until(end)
        if time.monotonic() <= end:
            self._round = self._kit.store.workflows()
            yield from self._until(end)

    def _until(self, end: float) -> Iterator[str]:
        for workflow_id in self._round:
            yield workflow_id
            if time.monotonic() > end:
                return

    def _new(self, workflow_id: str) -> list[Event]:
        last = self._kit.store.head(workflow_id).event_seq
        seen = self._seen.get(workflow_id)
        # What was not looked at before is new as far as it is young.
        floor = self._since if seen is None else _LONG_AGO
        after = first_since(self._kit, workflow_id, floor) if seen is None else seen
        self._seen[workflow_id] = max(after, last)
        if last <= after:
            return []
        events = self._reader.opened_events(workflow_id, after)
        new = [event for event in events if after < event.seq <= last and event.timestamp >= floor]
        if new and workflow_id not in self._moved:
            self._moved.append(workflow_id)
        return new
