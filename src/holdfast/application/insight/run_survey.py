"""How the workflows of a store stand, looked at a few at a time: there may be very many.

Beside `runs`, which also reads the ends of journals and so knows what waits, was paused or crashed: numbers
that are asked for every few seconds are made of listings and leases alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from holdfast.application.insight.following import AT_WORK, told_by
from holdfast.application.recovery.owners import is_held
from holdfast.application.resolve import living
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Entry, Head
from holdfast.domain.time import parse_timestamp
from holdfast.ports import Store

#: So many checkpoints of one workflow are looked at, the newest first.
ENTRIES_MAX = 1_000


class RunStanding(StrEnum):
    """How a workflow stands that has not come to its end."""

    #: Somebody has it at this moment.
    RUNNING = "running"
    #: Nobody has it: it was paused, waits for an answer, is written without a lease, or crashed.
    IDLE = "idle"
    FAILED = "failed"
    #: Its listing cannot be read.
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class RunNumbers:
    """What the workflows that were looked at come to.

    Attributes:
        runs: how many stand how; those that have ended are left out.
        whole_bytes: what their newest checkpoints would take, each state by itself.
        stored_bytes: what is stored of them, as records and keyframes.
        last_checkpoint_at: when the newest was made.
        is_complete: whether every workflow was looked at, once at least.
    """

    runs: Counter[RunStanding]
    whole_bytes: int
    stored_bytes: int
    last_checkpoint_at: float | None
    is_complete: bool

    @property
    def dedup_ratio(self) -> float | None:
        """How many times smaller they are than whole states would be; None where there are none."""
        return self.whole_bytes / self.stored_bytes if self.stored_bytes else None


@dataclass(frozen=True, slots=True)
class _Looked:
    head: Head
    standing: RunStanding | None
    whole_bytes: int = 0
    stored_bytes: int = 0
    newest: str = ""


class RunSurvey:
    """Goes round the workflows of a store again and again. For one thread at a time."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._known: dict[str, _Looked] = {}
        self._round: Iterator[str] | None = None
        self._seen: set[str] = set()
        self._is_complete = False

    def advance(self, budget_seconds: float) -> RunNumbers:
        """Look at as many workflows as there is time for, and answer what is known by now."""
        deadline = self._now() + budget_seconds
        if self._round is None:
            self._round, self._seen = iter(self._store.workflows()), set()
        try:
            for workflow_id in self._round:
                self._seen.add(workflow_id)
                self._known[workflow_id] = self._look(workflow_id)
                if self._now() >= deadline:
                    return self._numbers()
        except CheckpointError:
            # A listing that broke off would look like one that came to its end.
            self._round = None
            raise
        self._known = {name: looked for name, looked in self._known.items() if name in self._seen}
        self._round, self._is_complete = None, True
        return self._numbers()

    def _look(self, workflow_id: str) -> _Looked:
        known = self._known.get(workflow_id)
        try:
            head = self._store.head(workflow_id)
            if known is None or known.head != head or known.standing is RunStanding.UNREADABLE:
                return self._read(workflow_id, head)
            if known.standing in (RunStanding.RUNNING, RunStanding.IDLE):
                # A lease comes and goes without a trace in the workflow itself.
                return _Looked(head, self._leased(workflow_id), *_numbers_of(known))
        except CheckpointError:
            return _Looked(Head(), RunStanding.UNREADABLE)
        return known

    def _read(self, workflow_id: str, head: Head) -> _Looked:
        entries = list(islice(living(self._store, workflow_id), ENTRIES_MAX))
        if not entries:
            return _Looked(head, self._leased(workflow_id))
        oldest = entries[-1].sequence
        keyframes = [one.length for one in self._store.keyframes(workflow_id) if one.sequence >= oldest]
        return _Looked(
            head,
            self._standing(workflow_id, entries[0]),
            sum(entry.state_bytes for entry in entries),
            sum(entry.length for entry in entries) + sum(keyframes),
            entries[0].timestamp,
        )

    def _standing(self, workflow_id: str, newest: Entry) -> RunStanding | None:
        told = told_by(newest)
        if told == AT_WORK:
            return self._leased(workflow_id)
        return RunStanding.FAILED if told == RunStanding.FAILED else None

    def _leased(self, workflow_id: str) -> RunStanding:
        return RunStanding.RUNNING if is_held(self._store.lease(workflow_id)) else RunStanding.IDLE

    def _numbers(self) -> RunNumbers:
        known = self._known.values()
        newest = max((one.newest for one in known), default="")
        return RunNumbers(
            Counter(one.standing for one in known if one.standing is not None),
            sum(one.whole_bytes for one in known),
            sum(one.stored_bytes for one in known),
            parse_timestamp(newest).timestamp() if newest else None,
            self._is_complete,
        )


def _numbers_of(looked: _Looked) -> tuple[int, int, str]:
    return looked.whole_bytes, looked.stored_bytes, looked.newest
