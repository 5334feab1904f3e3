"""Workflows as rows: how each stands, why, and the listing of all of them, newest activity first."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.application.insight.checkpoint_rows import CheckpointRow, checkpoint_row
from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.application.insight.event_story import words
from holdfast.application.insight.run_facts import RunFacts, read_facts
from holdfast.application.kit import Kit
from holdfast.application.recovery.incomplete import gone_text, quiet_text
from holdfast.application.recovery.owners import is_held
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Head, Lease
from holdfast.domain.time import parse_timestamp, timestamp_text

#: After so long everything that a prune announced is gone.
_PRUNE_SECONDS = 60.0
#: What took long to look at counts for as long again, and for this long at most.
_REUSE_SECONDS_MAX = 2.0
_LONG_SECONDS = 0.05


class RunState(StrEnum):
    """How a workflow stands."""

    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    CRASHED = "crashed"
    FAILED = "failed"
    COMPLETED = "completed"
    #: Nothing says that it ended, nobody has it, and it was written not long ago.
    IDLE = "idle"
    #: It has no checkpoint.
    EMPTY = "empty"


#: What a run says of itself, and what that means here. A run that was stopped goes on like one that paused.
_TOLD: Mapping[str, tuple[RunState, str]] = {
    "failed": (RunState.FAILED, ""),
    "waiting": (RunState.WAITING, "a question is open"),
    "paused": (RunState.PAUSED, "it was paused"),
    "stopped": (RunState.PAUSED, "its process was told to end"),
    "completed": (RunState.COMPLETED, ""),
    "cancelled": (RunState.FAILED, "it was cancelled"),
}
CANCELLED = _TOLD["cancelled"][1]


@dataclass(frozen=True, slots=True)
class RunRow:
    """One workflow.

    Attributes:
        status: how it stands; `reason` says why in words.
        checkpoints: how many are kept.
        newest: the newest of them.
        last_activity: when it was last written; empty where nothing can be read.
        owner: who has it, or had it when it crashed.
        state_bytes: how large its newest state is.
        is_live: whether somebody has it now.
        questions: how many questions of it seem to be open.
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


class RunBook:
    """Knows all workflows of a store; of one whose head has not moved nothing is read but its lease."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._mutex = threading.Lock()
        self._facts: dict[str, RunFacts] = {}
        self._swept: list[tuple[RunRow, RunFacts]] = []
        self._swept_until = 0.0

    def row(self, workflow_id: str) -> RunRow | None:
        """Answer one row; None if there is no such workflow."""
        facts = self.facts(workflow_id)
        return None if facts is None else self._judged(facts, self._kit.clock.now())

    def facts(self, workflow_id: str) -> RunFacts | None:
        """Answer what is known of one workflow; None if there is none."""
        try:
            head = self._kit.store.head(workflow_id)
        except CheckpointError as damage:
            return RunFacts(workflow_id, Head(), problem=words(damage.message))
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
        # Two sweeps at once would read everything twice.
        with self._mutex:
            began = time.monotonic()
            if began >= self._swept_until:
                self._swept = self._sweep()
                took = time.monotonic() - began
                reused = min(took, _REUSE_SECONDS_MAX) if took > _LONG_SECONDS else 0.0
                self._swept_until = time.monotonic() + reused
            return self._swept

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

    def _sweep(self) -> list[tuple[RunRow, RunFacts]]:
        now = self._kit.clock.now()
        names = set(self._kit.store.workflows())
        for gone in self._facts.keys() - names:
            self._facts.pop(gone, None)
        # By names first: where two were active at one moment, that order stays.
        known = (facts for name in sorted(names) if (facts := self.facts(name)) is not None)
        rows = [(self._judged(one, now), one) for one in known]
        return sorted(rows, key=lambda pair: pair[0].last_activity, reverse=True)

    def _is_settled(self, facts: RunFacts) -> bool:
        if facts.is_settled:
            return True
        moment = timestamp_text(self._kit.clock.now() - timedelta(seconds=_PRUNE_SECONDS))
        return not facts.problem and facts.last_at < moment

    def _judged(self, facts: RunFacts, now: datetime) -> RunRow:
        try:
            lease = self._kit.store.lease(facts.workflow_id)
        except CheckpointError as damage:
            lease, facts = None, replace(facts, problem=words(damage.message))
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
        )


def judge(
    facts: RunFacts, lease: Lease | None, now: datetime, patience_seconds: float, *, is_live: bool
) -> tuple[RunState, str]:
    """Tell how a workflow stands, and why."""
    if is_live:
        return (RunState.WAITING, "a question is open") if facts.open else (RunState.RUNNING, "")
    if facts.problem:
        return RunState.FAILED, f"it cannot be read: {facts.problem}"
    if facts.newest is None:
        return RunState.EMPTY, "it has no checkpoint"
    if has_ended(facts.newest):
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
    quiet_seconds = (now - parse_timestamp(facts.last_at)).total_seconds()
    if quiet_seconds >= patience_seconds:
        # Nobody ever had it for itself: it may have crashed, or be done without having said so.
        return RunState.IDLE, quiet_text(facts.newest.status, quiet_seconds)
    return RunState.IDLE, "nobody has it"


def _is_after(row: RunRow, last_activity: str | int, workflow_id: str | int) -> bool:
    """Tell whether a row comes after a key: earlier activity, or the same and a later name."""
    if row.last_activity != last_activity:
        return row.last_activity < str(last_activity)
    return row.workflow_id > str(workflow_id)
