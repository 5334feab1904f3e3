"""How a service stands towards its store: what it can make durable, and what waits."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from holdfast.domain.errors import CheckpointError
from holdfast.domain.ladder import Mode

_LOG = logging.getLogger("holdfast")
#: A step is told in the journals of so many workflows at most.
_TOLD_WORKFLOWS_MAX = 100

#: Type of the event, and of the audit entry, that tells of a step.
STEP_EVENT = "STORE_DEGRADED"
#: Type of the event that tells what was written late, and under which number.
WRITTEN_EVENT = "HELD_WRITTEN"


@dataclass(frozen=True, slots=True)
class Health:
    """Where a service stands.

    Attributes:
        mode: how much of what is recorded becomes durable.
        since: when it came to stand there; None: it never stood elsewhere.
        reason: the last fault; empty if there was none.
        held_commits: how many wait in memory or in the second store.
        held_bytes: memory that those take, of at most `memory_bytes`.
        oldest_held_at: since when the first of them waits.
        emergency_place: where the second store is; None where it is not in use.
        counters: steps by name (`full->event_only`), and faults, held, written, moved, refused.
    """

    mode: Mode = Mode.FULL
    since: datetime | None = None
    reason: str = ""
    held_commits: int = 0
    held_bytes: int = 0
    memory_bytes: int = 0
    oldest_held_at: datetime | None = None
    emergency_place: str | None = None
    counters: Mapping[str, int] = field(default_factory=Counter)

    @property
    def is_durable(self) -> bool:
        """Whether everything that was acknowledged is durable."""
        return self.held_commits == 0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the ladder, down or up."""

    before: Mode
    after: Mode
    at: datetime
    reason: str
    #: Workflows of what waited then.
    workflow_ids: tuple[str, ...] = ()
    emergency_place: str | None = None

    @property
    def is_down(self) -> bool:
        """Whether less is durable than before."""
        return self.after.depth > self.before.depth

    def data(self) -> dict[str, Any]:
        """Give the particulars of the event."""
        told = {"from": self.before.value, "to": self.after.value, "reason": self.reason}
        return {**told, "emergency_place": self.emergency_place} if self.emergency_place else told


@dataclass(frozen=True, slots=True)
class Written:
    """What was acknowledged as not durable and is durable now.

    Attributes:
        commits: how many.
        moved: sequences of checkpoints as told and as written, where these differ.
        refused: how many cannot be written to the store any more, and are in the second one.
    """

    workflow_id: str
    commits: int = 0
    moved: Mapping[int, int] = field(default_factory=dict)
    refused: int = 0

    def data(self) -> dict[str, Any]:
        """Give the particulars of the event."""
        moved = {str(before): after for before, after in self.moved.items()}
        return {"commits": self.commits, "moved": moved, "refused": self.refused}


OnModeChange = Callable[[Step], None]
OnWritten = Callable[[Written], None]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Functions of the program that want to be told; a forked child inherits them."""

    on_mode_change: list[OnModeChange] = field(default_factory=list)
    on_written: list[OnWritten] = field(default_factory=list)


class Tales:
    """Steps and late writes that are to be told, by a thread that may wait."""

    def __init__(
        self, record: Callable[[str, str, dict[str, Any]], None], listeners: Listeners | None = None
    ) -> None:
        """Begin with nothing to tell; `record` queues an event of a workflow, by type and data."""
        self._record = record
        self.listeners = listeners or Listeners()
        self._mutex = threading.Lock()
        #: Held while telling, so that everything is told in order; a listener may ask for more.
        self._telling = threading.RLock()
        self._steps: list[Step] = []
        self._late: dict[str, Written] = {}
        #: Called when there is something to tell or to try.
        self.on_news: Callable[[], None] = lambda: None
        #: Called with each workflow of which something was written late, or refused.
        self.on_late: Callable[[str], None] = lambda workflow_id: None

    def wake(self) -> None:
        """Say that there is something to do."""
        self.on_news()

    def step(self, step: Step) -> None:
        """Take up a step."""
        with self._mutex:
            self._steps.append(step)
        self.on_news()

    def written(self, workflow_id: str, moved: tuple[int, int] | None) -> None:
        """Take up a commit that was written late, and the sequences told and written if they differ."""
        with self._mutex:
            tally = self._late.get(workflow_id) or Written(workflow_id)
            numbers = {**tally.moved, moved[0]: moved[1]} if moved else tally.moved
            self._late[workflow_id] = replace(tally, commits=tally.commits + 1, moved=numbers)
        self.on_news()

    def refused(
        self, workflow_id: str, problem: Exception, place: str | None, lost: Exception | None
    ) -> None:
        """Take up a commit that the store will never take."""
        kept = f"it is kept in {place}" if lost is None else f"it is LOST ({lost})"
        _LOG.error("a commit of %s that waited was refused (%s); %s", workflow_id, problem, kept)
        with self._mutex:
            tally = self._late.get(workflow_id) or Written(workflow_id)
            self._late[workflow_id] = replace(tally, refused=tally.refused + 1)
        self.on_news()

    @property
    def is_due(self) -> bool:
        """Whether there is something that nobody has begun to tell."""
        return bool(self._steps or self._late)

    def tell(self) -> None:
        """Tell everything: a log line, an event and an audit entry in each workflow concerned, callbacks."""
        with self._telling:
            self._tell_all()
        self.tell_if_nobody_does()

    def tell_if_nobody_does(self) -> None:
        """Tell everything, or leave that to whoever is about it."""
        while self.is_due and self._telling.acquire(blocking=False):
            try:
                self._tell_all()
            finally:
                self._telling.release()

    def _tell_all(self) -> None:
        with self._mutex:
            steps, self._steps = self._steps, []
            late, self._late = self._late, {}
        for step in steps:
            self._tell_step(step)
        for tally in late.values():
            self._tell_written(tally)

    def end(self, kept: int, place: str | None, lost: int, problem: Exception | None) -> None:
        """Say what became of what still waited at the end: what is kept in a place, and what nowhere."""
        if kept:
            _LOG.error("%d commits could not be written; they are kept in %s", kept, place)
        if lost:
            _LOG.error("%d commits could not be written and are LOST: %s", lost, problem)

    def _tell_step(self, step: Step) -> None:
        level = logging.ERROR if step.is_down else logging.WARNING
        what = "what waits" if step.is_down else "nothing but what was refused, if anything was,"
        where = f"; {what} is kept in {step.emergency_place}" if step.emergency_place else ""
        _LOG.log(level, "storage: %s -> %s (%s)%s", step.before, step.after, step.reason, where)
        for workflow_id in step.workflow_ids[:_TOLD_WORKFLOWS_MAX]:
            self._note(workflow_id, STEP_EVENT, step.data())
        self._call(self.listeners.on_mode_change, step)

    def _tell_written(self, tally: Written) -> None:
        _LOG.warning("%d commits of %s that waited are durable now", tally.commits, tally.workflow_id)
        if tally.moved:
            _LOG.warning("checkpoints of %s have other numbers: %s", tally.workflow_id, dict(tally.moved))
        self._note(tally.workflow_id, WRITTEN_EVENT, tally.data())
        self._call([self.on_late], tally.workflow_id)
        self._call(self.listeners.on_written, tally)

    def _note(self, workflow_id: str, type: str, data: dict[str, Any]) -> None:
        try:
            self._record(workflow_id, type, data)
        except CheckpointError as problem:
            _LOG.warning("an event of %s is not recorded: %s", workflow_id, problem)

    def _call(self, listeners: list[Callable[[Any], None]], told: Any) -> None:
        for listener in list(listeners):
            try:
                listener(told)
            except (Exception, SystemExit):
                # What a listener does is its own affair: storage goes on.
                _LOG.exception("a listener of the storage ladder failed")
