"""Workflows as rows: how each stands, why, and the listing of all of them, newest activity first."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from operator import itemgetter

from holdfast.application.insight.checkpoint_rows import CheckpointRow, checkpoint_row
from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.application.insight.event_story import words
from holdfast.application.insight.last_good import Marks, last_good, marks_of
from holdfast.application.insight.recent_checkpoints import RecentCheckpoints, moment_of
from holdfast.application.insight.run_facts import RunFacts, read_facts, unreadable_facts
from holdfast.application.insight.run_news import RunNews
from holdfast.application.kit import Kit
from holdfast.application.recovery.incomplete import gone_text, quiet_text
from holdfast.application.recovery.owners import is_held
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Head, Lease
from holdfast.domain.time import parse_timestamp, timestamp_text

#: After so long everything that a prune announced is gone.
_PRUNE_SECONDS = 60.0
#: What took long to look at counts for as long again, for so many times as long where not all was looked
#: at, and for this long at most.
_REST_SHARE = 4
_REUSE_SECONDS_MAX = 2.0
_LONG_SECONDS = 0.05
#: With fewer it is the machine that is slow, and what is told is always new.
_MANY = 100


class RunState(StrEnum):
    """How a workflow stands."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    CRASHED = "crashed"
    FAILED = "failed"
    #: Somebody ended it for good.
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    #: Nothing says that it ended, nobody has it, and it was written not long ago.
    IDLE = "idle"
    #: It has no checkpoint.
    EMPTY = "empty"
    #: Damage hides how it stands.
    UNREADABLE = "unreadable"


#: What a run says of itself, and what that means here. A run that was stopped goes on like one that paused.
_TOLD: Mapping[str, tuple[RunState, str]] = {
    "failed": (RunState.FAILED, ""),
    "waiting": (RunState.WAITING, "a question is open"),
    "paused": (RunState.PAUSED, "it was paused"),
    "stopped": (RunState.PAUSED, "its process was told to end"),
    "completed": (RunState.COMPLETED, ""),
    "cancelled": (RunState.CANCELLED, "it was cancelled"),
}
RECOVERED = "it was recovered, and nobody went on with it"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One workflow.

    Attributes:
        status: how it stands; `reason` says why in words.
        checkpoints: how many are kept, as far as that can be read.
        newest: the newest of them.
        last_good: the newest of them that is neither in quarantine nor known to be damaged.
        last_activity: when it was last written; empty where nothing can be read.
        owner: who has it, or had it when it crashed.
        state_bytes: how large its newest state is.
        is_live: whether somebody has it now.
        questions: how many questions of it seem to be open.
        is_recovered: its state was brought back, and nobody went on with it since.
    """

    workflow_id: str
    status: RunState
    reason: str
    checkpoints: int
    newest: CheckpointRow | None
    last_activity: str
    owner: str | None
    state_bytes: int
    is_live: bool
    questions: int = 0
    last_good: CheckpointRow | None = None
    is_recovered: bool = False


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which rows are asked for; what is empty stands for anything.

    Attributes:
        statuses: one of these.
        agent, label: a checkpoint, or one of the last events, names it.
        since: active at that moment or later.
        text: part of the id, or of an agent's name or a label.
    """

    statuses: frozenset[str] = frozenset()
    agent: str = ""
    label: str = ""
    since: datetime | None = None
    text: str = ""

    def matches(self, row: RunRow, facts: RunFacts) -> bool:
        """Tell whether a row is asked for."""
        return (
            (not self.statuses or row.status in self.statuses)
            and (not self.agent or self.agent in facts.agents)
            and (not self.label or self.label in facts.labels)
            and (self.since is None or row.last_activity >= timestamp_text(self.since))
            and (not self.text or self._has_text(facts))
        )

    def _has_text(self, facts: RunFacts) -> bool:
        wanted = self.text.casefold()
        return any(wanted in name.casefold() for name in (facts.workflow_id, *facts.agents, *facts.labels))


@dataclass(frozen=True)
class Swept:
    """All workflows as they were looked at, the one that was active last first.

    Attributes:
        is_complete: whether each was looked at; of very many that takes several requests.
    """

    rows: list[tuple[RunRow, RunFacts]]
    is_complete: bool

    @cached_property
    def by_newest(self) -> list[tuple[int, str, RunFacts]]:
        """Those with checkpoints, the one that made the newest first."""
        found = [(facts.newest, facts) for _, facts in self.rows if facts.newest is not None]
        dated = [(-moment_of(newest.timestamp), facts.workflow_id, facts) for newest, facts in found]
        return sorted(dated, key=itemgetter(0, 1))


class RunBook:
    """Knows all workflows of a store; of one whose head has not moved nothing is read but its lease.

    Of very many not each can be looked at for every request. Then those are that the trail tells of and those
    that somebody has or had, and of the others some each time, in turn.
    """

    def __init__(self, kit: Kit, *, first_seconds: float = math.inf, sweep_seconds: float = math.inf) -> None:
        """Begin to know a store.

        Args:
            first_seconds: so long workflows are looked at for one answer before each was looked at once.
            sweep_seconds: so long afterwards.
        """
        self._kit = kit
        self._first_seconds = first_seconds
        self._sweep_seconds = sweep_seconds
        self.recent = RecentCheckpoints(kit.store)
        self._mutex = threading.Lock()
        self._facts: dict[str, RunFacts] = {}
        self._rows: dict[str, tuple[RunRow, RunFacts]] = {}
        self._news = RunNews(kit.store)
        #: Those of the news that were not looked at yet.
        self._waiting: list[str] = []
        #: Goes on where the last sweep had to end; None between two rounds.
        self._round: Iterator[str] | None = None
        self._seen: set[str] = set()
        self._marks: Marks = None
        self._swept = Swept([], is_complete=False)
        self._is_changed = False
        self._began = self._swept_until = -math.inf

    def row(self, workflow_id: str) -> RunRow | None:
        """Answer one row; None if there is no such workflow."""
        facts = self.facts(workflow_id)
        if facts is None:
            return None
        return self._judged(facts, self._kit.clock.now(), marks_of(self._kit.store, workflow_id))

    def facts(self, workflow_id: str) -> RunFacts | None:
        """Answer what is known of one workflow; None if there is none."""
        try:
            head = self._kit.store.head(workflow_id)
        except CheckpointError as damage:
            return unreadable_facts(self._kit, RunFacts(workflow_id, Head(), problem=words(damage.message)))
        if not head.sequence and not head.event_seq:
            self._facts.pop(workflow_id, None)
            return None
        known = self._facts.get(workflow_id)
        if known is None or known.head != head or not self._is_settled(known):
            known = read_facts(self._kit, workflow_id, head, known)
            self._facts[workflow_id] = known
        return known

    def all(self) -> list[tuple[RunRow, RunFacts]]:
        """Answer all rows with what they were made from, the one that was active last first."""
        return self.swept().rows

    def swept(self) -> Swept:
        """Look at the workflows, and answer what is known of them by now."""
        asked = time.monotonic()
        with self._mutex:
            # What others began to look at since is as new as if it were looked at once more.
            if self._began < asked and asked >= self._swept_until:
                self._began = time.monotonic()
                self._sweep()
                ended = time.monotonic()
                self._swept_until = ended + self._reused_seconds(ended - self._began)
            return self._swept

    def _reused_seconds(self, took_seconds: float) -> float:
        if took_seconds <= _LONG_SECONDS or len(self._rows) < _MANY:
            return 0.0
        share = 1 if self._round is None else _REST_SHARE
        return min(share * took_seconds, _REUSE_SECONDS_MAX)

    @property
    def is_complete(self) -> bool:
        """Whether every workflow was looked at, once at least."""
        return self._swept.is_complete

    def page(self, wanted: RunFilter, cursor: str | None, limit: int) -> tuple[list[RunRow], str | None]:
        """List the rows that are asked for, from a cursor on, and where the next page begins.

        Raises:
            InvalidIdError: the cursor is none.
        """
        after = None if cursor is None else read_cursor("runs", cursor, (str, str))
        found = [row for row, facts in self.all() if wanted.matches(row, facts)]
        rest = found if after is None else [row for row in found if _is_after(row, *after)]
        rows = rest[:limit]
        more = len(rest) > limit
        return rows, write_cursor("runs", (rows[-1].last_activity, rows[-1].workflow_id)) if more else None

    def _sweep(self) -> None:
        now, is_complete = self._kit.clock.now(), self._swept.is_complete
        seconds = self._sweep_seconds if is_complete else self._first_seconds
        self._marks = marks_of(self._kit.store)
        if self._round is None:
            self._round, self._seen = iter(self._kit.store.workflows()), set()
        # However many leases there are to look at, the others have their turn.
        self._look_at_news(now, self._began + seconds / 2)
        is_complete = self._go_round(self._round, now, self._began + seconds) or is_complete
        if self._is_changed or is_complete != self._swept.is_complete:
            # By names first: where two were active at one moment, that order stays.
            rows = [self._rows[name] for name in sorted(self._rows)]
            rows.sort(key=lambda pair: pair[0].last_activity, reverse=True)
            self._swept, self._is_changed = Swept(rows, is_complete), False

    def _look_at_news(self, now: datetime, deadline: float) -> None:
        """Look at those that moved or may have been left; whoever has to wait comes first the next time."""
        waiting = dict.fromkeys([*self._news.names(), *self._waiting, *self._leased()])
        for name in list(waiting):
            if time.monotonic() >= deadline:
                break
            del waiting[name]
            self._look(name, now)
        self._waiting = list(waiting)

    def _leased(self) -> list[str]:
        """Name those whose leases may have ended without a word."""
        return [name for name, (row, _) in self._rows.items() if row.owner is not None]

    def _go_round(self, names: Iterator[str], now: datetime, deadline: float) -> bool:
        """Look at workflows in turn for as long as there is time; tell whether the round came to its end."""
        try:
            for name in names:
                if name not in self._seen:
                    self._look(name, now)
                if time.monotonic() >= deadline:
                    return False
        except CheckpointError:
            # A listing that broke off would look like one that came to its end.
            self._round = None
            raise
        self._round = None
        for gone in self._rows.keys() - self._seen:
            self._forget(gone)
        return True

    def _look(self, workflow_id: str, now: datetime) -> None:
        self._seen.add(workflow_id)
        facts = self.facts(workflow_id)
        if facts is None:
            self._forget(workflow_id)
            return
        new = self._judged(facts, now, self._marks), facts
        if self._rows.get(workflow_id) != new:
            self._rows[workflow_id], self._is_changed = new, True

    def _forget(self, workflow_id: str) -> None:
        self._facts.pop(workflow_id, None)
        self._is_changed = self._rows.pop(workflow_id, None) is not None or self._is_changed

    def _is_settled(self, facts: RunFacts) -> bool:
        if facts.is_settled:
            return True
        moment = timestamp_text(self._kit.clock.now() - timedelta(seconds=_PRUNE_SECONDS))
        return not facts.problem and facts.last_at < moment

    def _judged(self, facts: RunFacts, now: datetime, marks: Marks) -> RunRow:
        lease, good = None, None
        try:
            lease = self._kit.store.lease(facts.workflow_id)
            good = last_good(self.recent, facts, marks)
        except CheckpointError as damage:
            facts = replace(facts, problem=words(damage.message))
        is_live = is_held(lease)
        status, reason = judge(facts, lease, now, self._kit.recovery.stale_seconds, is_live=is_live)
        newest = facts.newest
        return RunRow(
            facts.workflow_id,
            status,
            reason,
            facts.checkpoints,
            checkpoint_row(facts.workflow_id, newest) if newest else None,
            facts.last_at,
            lease.owner if lease else None,
            newest.state_bytes if newest else 0,
            is_live,
            len(facts.open),
            checkpoint_row(facts.workflow_id, good) if good else None,
            status is RunState.IDLE and reason == RECOVERED,
        )


def judge(
    facts: RunFacts, lease: Lease | None, now: datetime, patience_seconds: float, *, is_live: bool
) -> tuple[RunState, str]:
    """Tell how a workflow stands, and why."""
    if is_live:
        return (RunState.WAITING, "a question is open") if facts.open else (RunState.RUNNING, "")
    if facts.problem:
        return RunState.UNREADABLE, f"it cannot be read: {facts.problem}"
    if facts.newest is None:
        return RunState.EMPTY, "it has no checkpoint"
    if has_ended(facts.newest) and facts.told != "cancelled":
        is_failed = facts.newest.status == "failed"
        return (RunState.FAILED, facts.error) if is_failed else (RunState.COMPLETED, "")
    if facts.told in _TOLD:
        status, reason = _TOLD[facts.told]
        return status, reason or (facts.error if status is RunState.FAILED else "")
    if facts.ended or facts.newest.status == "failed":
        ended = RunState(facts.ended or "failed")
        return ended, facts.error if ended is RunState.FAILED else ""
    return _left(facts, lease, now, patience_seconds)


def _left(
    facts: RunFacts, lease: Lease | None, now: datetime, patience_seconds: float
) -> tuple[RunState, str]:
    """Tell of a workflow that did not end, and that nobody works on, whether it crashed."""
    assert facts.newest is not None
    if facts.newest.status == "completed":
        return RunState.IDLE, "its last work is done"
    if lease is not None:
        return RunState.CRASHED, gone_text(lease.owner)
    if facts.recovery:
        return RunState.IDLE, RECOVERED
    quiet_seconds = (now - parse_timestamp(facts.last_at)).total_seconds()
    if quiet_seconds >= patience_seconds:
        # Nobody ever had it for itself: it may have crashed, or be done without having said so.
        return RunState.IDLE, quiet_text(facts.newest.status, quiet_seconds)
    return RunState.IDLE, "no process works on it"


def _is_after(row: RunRow, last_activity: str | int, workflow_id: str | int) -> bool:
    """Tell whether a row comes after a key: earlier activity, or the same and a later name."""
    if row.last_activity != last_activity:
        return row.last_activity < str(last_activity)
    return row.workflow_id > str(workflow_id)
