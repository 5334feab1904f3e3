"""The newest checkpoints of the workflows that were listed last, kept for as long as these stand still."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from holdfast.application.insight.run_facts import RunFacts
from holdfast.application.resolve import living
from holdfast.domain.record import Entry, Head
from holdfast.ports import Store

#: So many are kept of one workflow, and of all together.
EACH_MAX = 200
ALL_MAX = 50_000
#: What a prune removed is not told by the head of a workflow: nothing is believed for longer.
_FRESH_SECONDS = 60.0
_SIGNS = str.maketrans("", "", "-:.TZ")

#: Later moments are smaller, then by name, then later checkpoints.
Place = tuple[int, str, int]
Placed = tuple[Place, Entry]


@dataclass(frozen=True, slots=True)
class _Kept:
    head: Head
    until: float
    placed: tuple[Placed, ...]


class RecentCheckpoints:
    """Answers the checkpoints of workflows, the newest first. Safe to use from several threads."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._mutex = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._count = 0

    def of(self, facts: RunFacts, after: Place | None = None) -> Iterator[Placed]:
        """Yield the checkpoints of one workflow that come after a place.

        A clock that went back does not change their order.
        """
        placed = self._newest(facts)
        yield from (one for one in placed if after is None or one[0] > after)
        if len(placed) == EACH_MAX:
            seen = placed[-1][0] if after is None else max(after, placed[-1][0])
            yield from (one for one in _read(self._store, facts.workflow_id) if one[0] > seen)

    def _newest(self, facts: RunFacts) -> Sequence[Placed]:
        if facts.checkpoints == 1 and facts.newest is not None and facts.is_settled:
            return [_placed_newest(facts.workflow_id, facts.newest)]
        with self._mutex:
            kept = self._kept.get(facts.workflow_id)
            if kept is not None and kept.head == facts.head and self._now() < kept.until:
                self._kept.move_to_end(facts.workflow_id)
                return kept.placed
        placed = tuple(islice(_read(self._store, facts.workflow_id), EACH_MAX))
        if facts.is_settled:
            self._keep(facts.workflow_id, _Kept(facts.head, self._now() + _FRESH_SECONDS, placed))
        return placed

    def _keep(self, name: str, new: _Kept) -> None:
        with self._mutex:
            before = self._kept.pop(name, None)
            self._kept[name] = new
            self._count += len(new.placed) - (len(before.placed) if before else 0)
            while self._count > ALL_MAX:
                self._count -= len(self._kept.popitem(last=False)[1].placed)


def moment_of(timestamp: str) -> int:
    """Turn a timestamp into a number that grows with time."""
    digits = timestamp.translate(_SIGNS)
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def _placed_newest(workflow_id: str, newest: Entry) -> Placed:
    return (-moment_of(newest.timestamp), workflow_id, -newest.sequence), newest


def _read(store: Store, workflow_id: str) -> Iterator[Placed]:
    moment = None
    for entry in living(store, workflow_id):
        own = moment_of(entry.timestamp)
        moment = own if moment is None else min(moment, own)
        yield (-moment, workflow_id, -entry.sequence), entry
