"""What happens in the store, told to whoever listens: server-sent events, numbered as the trail numbers them.

Everything that changes a store is an entry of its trail, and every entry has its place in one tree. That
place is the id of an event here: whoever was cut off goes on after it, also at another server.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

import anyio
import anyio.to_thread
import msgspec

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store
from holdfast.server.problems import Refusal

LOOK_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
_BUFFERED = 2_000
_AT_ONCE = 500
_LOG = logging.getLogger("holdfast")
_T = TypeVar("_T")

#: Somebody looked: a page that looked again because of it would never rest.
READS = frozenset(
    {
        AuditType.STATE_READ,
        AuditType.STATE_RESTORED,
        AuditType.EVENTS_READ,
        AuditType.TRAIL_READ,
        AuditType.TRAIL_VERIFIED,
        AuditType.CHECKPOINT_VALIDATED,
    }
)


class LiveEvent(msgspec.Struct):
    """One entry of the trail, without its payload."""

    index: int
    time: str
    type: str
    workflow_id: str | None
    agent: str | None
    actor: str | None
    outcome: str
    facts: dict[str, bool | int | str]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the log somebody begins to listen, and how many entries it had then."""

    position: int
    size: int


class Live:
    """Looks at the log while somebody listens, once for all of them."""

    def __init__(self, store: Store, *, streams_max: int, look_seconds: float = LOOK_SECONDS) -> None:
        self._store = store
        self._streams_max = streams_max
        self._look_seconds = look_seconds
        #: One alone must not take all the places.
        self._each_max = max(1, streams_max // 4)
        #: How many streams each has.
        self._listeners: Counter[str] = Counter()
        self._size = 0
        self._recent: deque[LiveEvent] = deque(maxlen=_BUFFERED)
        self._has_ended = False
        #: How often the log could not be looked at: streams that were there then end.
        self._faults = 0
        #: Set and replaced each time there is something new; made where the loop runs.
        self._news: anyio.Event | None = None

    async def run(self) -> None:
        """Look at the log for as long as the server lives."""
        self._news = anyio.Event()
        while True:
            if self._listeners.total():
                try:
                    await self._look()
                except CheckpointError as problem:
                    _LOG.warning("the log cannot be followed: %s", problem)
                    self._break_off()
                except Exception:
                    # Nobody would ever look again.
                    _LOG.exception("the log cannot be followed")
                    self._break_off()
            await anyio.sleep(self._look_seconds)

    async def _look(self) -> None:
        size = await _in_thread(self._store.integrate)
        if size > self._size:
            self._recent.extend(await self._read(max(self._size, size - _BUFFERED), size))
            self._size = size
            self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            news, self._news = self._news, anyio.Event()
            news.set()

    def _break_off(self) -> None:
        """End the streams there are: whoever listens is to know that nothing is heard, and tries again."""
        self._faults += 1
        self._wake()

    def end(self) -> None:
        """End every stream, so that the server can end."""
        self._has_ended = True
        self._wake()

    def admit(self, who: str) -> None:
        """Refuse one listener too many.

        Raises:
            Refusal: there are as many as there may be, of all or of this one.
        """
        if self._is_full(who):
            raise Refusal(
                503, "too_many_streams", "too many are listening already", headers={"Retry-After": "10"}
            )

    def _is_full(self, who: str) -> bool:
        return self._listeners.total() >= self._streams_max or self._listeners[who] >= self._each_max

    def place(self, after: int | None) -> Place:
        """Answer where to begin: before whoever listens is told so, so that nothing is missed since.

        Args:
            after: the first entry to be told; None: the next that comes.
        """
        size = self._store.integrate()
        # What has not happened yet is of another log.
        return Place(size if after is None else min(after, size), size)

    async def listen(
        self,
        who: str,
        place: Place,
        wants: Callable[[LiveEvent], bool],
        is_known: Callable[[], bool],
        *,
        with_facts: bool,
        seconds: float = math.inf,
    ) -> AsyncGenerator[bytes, None]:
        """Tell what comes from a place on, and go on until one side ends.

        Args:
            who: listens.
            wants: whether an event is to be told.
            is_known: whether whoever listens still may; asked again and again, in a thread.
            with_facts: whether is told who did it, and what the trail says of it.
            seconds: it ends after so long, and not before all is told that had happened when it began.
        """
        if self._is_full(who):
            # Several came at once, and were all let in.
            return
        self._listeners[who] += 1
        try:
            ends = anyio.current_time() + seconds
            async for piece in self._told(place, wants, is_known, with_facts=with_facts, ends=ends):
                yield piece
        except CheckpointError as problem:
            _LOG.warning("a stream ends: %s", problem)
        finally:
            self._left(who)

    def _left(self, who: str) -> None:
        self._listeners[who] -= 1
        if not self._listeners[who]:
            del self._listeners[who]

    async def _told(
        self,
        place: Place,
        wants: Callable[[LiveEvent], bool],
        is_known: Callable[[], bool],
        *,
        with_facts: bool,
        ends: float,
    ) -> AsyncGenerator[bytes, None]:
        self._size = self._size or place.size
        position, faults = place.position, self._faults
        yield b"retry: 3000\n: listening\n\n"
        while not self._has_ended and faults == self._faults:
            news = self._news
            told = await self._since(position, place.size)
            # Asked last: of what happened since somebody may no longer listen nothing is told.
            if not await _in_thread(is_known):
                return
            wanted = filter(wants, told)
            # In one piece: who left meanwhile is noticed between two.
            if messages := b"".join(_message(one if with_facts else _without_facts(one)) for one in wanted):
                yield messages
            position = told[-1].index + 1 if told else position
            left = ends - anyio.current_time()
            if left <= 0 and (not told or position >= place.size):
                yield _heartbeat(position)
                return
            if not told and not await _woken(news, min(left, HEARTBEAT_SECONDS)):
                yield _heartbeat(position)

    async def _since(self, position: int, size: int) -> list[LiveEvent]:
        """Answer what follows a position, from memory where that reaches; the log has so many at least."""
        if self._recent and self._recent[0].index <= position:
            recent = [event for event in self._recent if event.index >= position][:_AT_ONCE]
            if recent:
                return recent
        return await self._read(position, position + _AT_ONCE) if position < max(self._size, size) else []

    async def _read(self, first: int, last: int) -> list[LiveEvent]:
        return await _in_thread(partial(read_events, self._store, first, last))


def read_events(store: Store, first: int, last: int) -> list[LiveEvent]:
    """Read entries of the log; one that is damaged is told as such, and ends nothing."""
    lines = islice(store.leaves(after=first), last - first)
    return [_event(index, line) for index, line in enumerate(lines, first)]


def _event(index: int, line: bytes) -> LiveEvent:
    try:
        entry = decode_entry(line, None)
    except CheckpointError:
        return LiveEvent(index, "", "DAMAGED", None, None, None, "failure", {})
    return _of_entry(index, entry)


def _of_entry(index: int, entry: AuditEntry) -> LiveEvent:
    return LiveEvent(
        index,
        timestamp_text(entry.timestamp),
        entry.type,
        entry.workflow_id,
        entry.agent,
        entry.actor,
        entry.outcome,
        dict(entry.facts),
    )


def _without_facts(event: LiveEvent) -> LiveEvent:
    """Leave out what is for whoever may read the trail."""
    return msgspec.structs.replace(event, actor=None, facts={})


def _message(event: LiveEvent) -> bytes:
    """Write an event; all that could end a line early is inside JSON, which escapes it."""
    return b"id: %d\nevent: entry\ndata: %b\n\n" % (event.index, msgspec.json.encode(event))


def _heartbeat(position: int) -> bytes:
    """Say that nothing happened; the id goes along: who is cut off now need not hear it all again."""
    return (f"id: {position - 1}\n" if position else "").encode() + b": still here\n\n"


async def _woken(news: anyio.Event | None, seconds: float) -> bool:
    """Wait so long for something new; tell whether it came."""
    with anyio.move_on_after(seconds):
        if news is None:
            await anyio.sleep(LOOK_SECONDS)
        else:
            await news.wait()
        return True
    return False


async def _in_thread(work: Callable[[], _T]) -> _T:
    return await anyio.to_thread.run_sync(work)
