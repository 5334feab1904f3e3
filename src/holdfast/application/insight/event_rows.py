"""Events as rows, in portions: from the oldest on, or from the newest back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.domain import plainjson
from holdfast.domain.event import Event, decode_event

#: So many events are looked at for one page, at most; the cursor goes on where it stopped.
LOOKED_AT_MAX = 5_000


@dataclass(frozen=True, slots=True)
class EventPage:
    """Some events, each verified, and where to go on."""

    events: tuple[Event, ...]
    next_cursor: str | None


def event_page(
    kit: Kit, workflow_id: str, *, type: str | None, cursor: str | None, limit: int, is_newest: bool
) -> EventPage:
    """Read events in order, or the newest first; those of one type if one is named.

    Raises:
        InvalidIdError: the cursor is none.
        ChecksumMismatchError: an event is not what was committed.
    """
    listing = "newest-events" if is_newest else "events"
    last = kit.store.head(workflow_id).event_seq
    start = last + 1 if is_newest else 0
    if cursor is not None:
        start = int(read_cursor(listing, cursor, (int,))[0])
    found, position = list[Event](), start
    numbered = (
        _backward(kit, workflow_id, min(start, last + 1)) if is_newest else _forward(kit, workflow_id, start)
    )
    for event in islice(numbered, LOOKED_AT_MAX):
        position = event.seq
        if type in (None, event.type):
            found.append(event)
        if len(found) == limit:
            break
    is_over = position <= 1 if is_newest else position >= last
    stands = position != start and not is_over
    return EventPage(tuple(found), write_cursor(listing, (position,)) if stands else None)


def of_type(kit: Kit, workflow_id: str, type: str | None) -> Iterator[bool]:
    """Tell of each event whether it is of a type; only those that may be are read, and none is verified."""
    mark = b"" if type is None else b'"type":' + plainjson.dumps(type)
    for line in kit.store.events(workflow_id):
        yield type is None or (mark in line and decode_event(line, None).type == type)


def _forward(kit: Kit, workflow_id: str, after: int) -> Iterator[Event]:
    if after < 0 or after >= kit.store.head(workflow_id).event_seq:
        return iter(())
    return (event for event in Reader(kit).opened_events(workflow_id, after) if event.seq > after)


def _backward(kit: Kit, workflow_id: str, before: int) -> Iterator[Event]:
    """Yield the events before one, the newest first, of as many as are looked at for one page."""
    after = max(before - 1 - LOOKED_AT_MAX, 0)
    portion = (event for event in Reader(kit).opened_events(workflow_id, after) if after < event.seq < before)
    return reversed(list(portion))
