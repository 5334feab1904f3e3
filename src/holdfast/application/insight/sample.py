"""Which workflows are looked at, and what is read of each: the newest ones, and of those the newest part.

A store may hold a hundred thousand workflows and one of them a hundred thousand checkpoints. Whoever counts
over many of them looks at so many, newest first, and says how many there are.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, islice
from typing import Any

from holdfast.application.audit.audit_query import AuditQuery
from holdfast.application.audit.log_tiles import LogTiles
from holdfast.application.insight.following import AT_WORK
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.domain import run_events
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import Event
from holdfast.domain.record import Entry, KeyframeEntry
from holdfast.domain.time import parse_timestamp
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store

#: So many workflows are looked at, journals included, unless it is said otherwise.
WORKFLOWS_MAX = 100
#: So many where listings are enough, and so many checkpoints of all of them.
LISTED_MAX = 1_000
LISTED_ENTRIES_MAX = 1_000_000
#: More workflows than these are not asked one by one how new they are.
DATED_MAX = 1_000
#: So much of the trail is looked at, its end.
TRAIL_ENTRIES_MAX = 50_000
#: So much is read of one workflow, the newest first.
ENTRIES_MAX = 5_000
EVENTS_MAX = 2_000

#: Told how many workflows were looked at, and how many will be.
OnProgress = Callable[[int, int], None]

#: What is kept of an event; its result may be large, and nothing here needs it.
_KEPT = frozenset(
    {"attempt", "duration_seconds", "metrics", "retries", "next", "confidence", "status", "retry_count"}
    | {"mode", "events_replayed", "events_skipped", "passed_over", "quarantined"}
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Workflows to look at, newest first, out of how many."""

    names: tuple[str, ...]
    total: int

    def first(self, limit: int, also: str | None = None) -> Chosen:
        """Take fewer of them, and one that is named in any case."""
        names = self.names[:limit]
        return Chosen(names if also is None or also in names else (*names, also), self.total)


@dataclass(frozen=True, slots=True)
class Listed:
    """What the listing of one workflow says: checkpoints oldest first, tombstones included."""

    workflow_id: str
    entries: tuple[Entry, ...]
    keyframes: tuple[KeyframeEntry, ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """What was read of one workflow.

    Attributes:
        entries: its newest checkpoints, newest first, tombstones included.
        events: its newest events, oldest first, without results and texts.
        is_cut: the journal begins earlier than what was read.
        problem: why the journal could not be read to its end; empty where it could.
    """

    workflow_id: str
    entries: tuple[Entry, ...]
    events: tuple[Event, ...]
    is_cut: bool = False
    problem: str = ""

    @property
    def newest(self) -> Entry | None:
        """The newest checkpoint that is kept."""
        return next((entry for entry in self.entries if not entry.pruned), None)

    @property
    def status(self) -> str:
        """How the run stands, as its journal says; `completed` also where only its last checkpoint does."""
        told = next((status for event in reversed(self.events) if (status := _status_in(event))), AT_WORK)
        ended = self.newest is not None and has_ended(self.newest)
        return "completed" if ended and told == AT_WORK else told

    @property
    def last_written(self) -> datetime | None:
        """When it was last written."""
        moments = [event.timestamp for event in self.events[-1:]]
        moments += [parse_timestamp(entry.timestamp) for entry in self.entries[:1]]
        return max(moments, default=None)


@dataclass(frozen=True, slots=True)
class Sample:
    """The workflows that were looked at, newest first, out of how many, and when."""

    looked: tuple[Looked, ...]
    total: int
    now: datetime

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Workflows whose journal could not be read to its end."""
        return tuple(one.workflow_id for one in self.looked if one.problem)

    def only(self, workflow_id: str | None) -> Sample:
        """Leave out all but one; None leaves all."""
        if workflow_id is None:
            return self
        return replace(self, looked=tuple(one for one in self.looked if one.workflow_id == workflow_id))


def silently(done: int, total: int) -> None:
    """Tell nobody."""


def take_sample(
    kit: Kit,
    workflow_id: str | None = None,
    limit: int = WORKFLOWS_MAX,
    on_progress: OnProgress = silently,
) -> Sample:
    """Read the newest workflows, and one that is named, whether it is among them or not."""
    return sample_of(kit, newest_workflows(kit.store, limit).first(limit, workflow_id), on_progress)


def sample_of(kit: Kit, chosen: Chosen, on_progress: OnProgress = silently) -> Sample:
    """Read the workflows that were chosen."""
    looked = []
    for done, name in enumerate(chosen.names, 1):
        looked.append(look_at(kit, name))
        on_progress(done, len(chosen.names))
    return Sample(tuple(looked), chosen.total, kit.clock.now())


def newest_workflows(store: Store, limit: int) -> Chosen:
    """Choose the workflows whose last checkpoint is newest.

    Of very many not each is asked for its last checkpoint: the end of the trail names those that made one.
    """
    names = list(store.workflows())
    if limit and len(names) > DATED_MAX:
        recent = _recent_in_trail(store, set(names))
        others = (name for name in sorted(names, reverse=True) if name not in recent)
        return Chosen(tuple(islice(chain(recent, others), limit)), len(names))
    dated = ((_last_checkpoint(store, name), name) for name in names)
    return Chosen(tuple(name for _, name in heapq.nlargest(limit, dated)), len(names))


def listings(kit: Kit, names: tuple[str, ...], on_progress: OnProgress = silently) -> Iterator[Listed]:
    """Read listings one after the other, until there are too many checkpoints to go on."""
    left = LISTED_ENTRIES_MAX
    for done, name in enumerate(names, 1):
        try:
            entries = tuple(kit.store.entries(name))
            keyframes = tuple(kit.store.keyframes(name))
        except CheckpointError:
            # What cannot be read is looked after by `doctor`; the others count all the same.
            entries, keyframes = (), ()
        yield Listed(name, entries, keyframes)
        on_progress(done, len(names))
        left -= len(entries)
        if left <= 0:
            return


def end_of_trail(store: Store, query: AuditQuery) -> Iterable[bytes]:
    """Answer the lines at the end of the trail that may be asked for."""
    first = max(LogTiles(store).size() - TRAIL_ENTRIES_MAX, 0)
    return query.candidates(chain(store.leaves(after=first), store.waiting()))


def look_at(kit: Kit, workflow_id: str) -> Looked:
    """Read the newest part of one workflow; damage ends the reading and is told."""
    store, problem = kit.store, ""
    entries: list[Entry] = []
    events: list[Event] = []
    after = 0
    try:
        entries += islice(store.entries(workflow_id, newest_first=True), ENTRIES_MAX)
        after = max(store.head(workflow_id).event_seq - EVENTS_MAX, 0)
        events += (
            slim(event) for event in Reader(kit).opened_events(workflow_id, after) if event.seq > after
        )
    except CheckpointError as damage:
        problem = damage.message
    is_cut = bool(events) and events[0].seq > 1
    return Looked(workflow_id, tuple(entries), tuple(events), is_cut, problem)


def slim(event: Event) -> Event:
    """Leave of an event what is counted."""
    kept = {name: value for name, value in event.data.items() if name in _KEPT}
    error, fields = event.data.get("error"), event.data.get("fields")
    if isinstance(error, Mapping) and isinstance(error.get("type"), str):
        kept["error_type"] = error["type"]
    if event.type == run_events.RUN_UPDATED and isinstance(fields, Mapping):
        kept |= _run_fields(fields)
    return replace(event, data=kept)


def amount(value: Any) -> float | None:
    """Answer a number that is 0 or more and finite; whatever else an application put there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < math.inf else None


def is_recovery(event: Event) -> bool:
    """Tell whether an event says that the workflow was brought back."""
    return event.type == RECOVERED_EVENT


def _run_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    metadata = fields.get("metadata")
    learnt = metadata.get("adaptive") if isinstance(metadata, Mapping) else None
    told = {"run_status": fields.get("status"), "learnt": learnt}
    return {name: value for name, value in told.items() if value is not None}


def _status_in(event: Event) -> str | None:
    status = event.data.get("run_status")
    return status if isinstance(status, str) else None


def _recent_in_trail(store: Store, names: set[str]) -> dict[str, None]:
    """Name the workflows that made the last checkpoints, the last one first, each once."""
    query = AuditQuery(event_types=(AuditType.CHECKPOINT_CREATED,))
    lines = deque(end_of_trail(store, query), TRAIL_ENTRIES_MAX)
    told = (decode_entry(line, None).workflow_id for line in reversed(lines))
    return dict.fromkeys(name for name in told if name in names)


def _last_checkpoint(store: Store, workflow_id: str) -> str:
    try:
        newest = next(iter(store.entries(workflow_id, newest_first=True)), None)
    except CheckpointError:
        return ""
    return newest.timestamp if newest else ""
