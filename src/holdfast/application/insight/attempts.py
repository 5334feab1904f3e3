"""Attempts of agents, put together from the events of a journal: who began when, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.application.insight.following import AT_WORK
from holdfast.application.insight.sample import Looked, amount, is_recovery
from holdfast.domain.event import Event
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_STARTED


class End(StrEnum):
    """How an attempt ended."""

    COMPLETED = "completed"
    #: It failed, and another attempt followed or was to follow.
    FAILED = "failed"
    #: It failed, and nobody tries again.
    GAVE_UP = "gave_up"
    #: The process died under it: another one had to go on.
    LOST = "lost"
    #: The run ended, paused or waits while it was at work.
    STOPPED = "stopped"
    #: It is at work, for all that is known.
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one step."""

    workflow_id: str
    agent: str
    step_id: str
    number: int
    seq: int
    began: datetime
    end: End = End.OPEN
    ended: datetime | None = None
    seconds: float | None = None
    error: str | None = None
    spent: Mapping[str, float] | None = None
    #: The event that told of its end.
    end_seq: int = 0


def attempts_of(looked: Looked) -> list[Attempt]:
    """Put the attempts of one run together, in the order in which they began."""
    found = _Attempts(looked.workflow_id)
    for event in looked.events:
        found.take(event)
    return found.all


class _Attempts:
    """Follows a journal event by event."""

    def __init__(self, workflow_id: str) -> None:
        self._workflow_id = workflow_id
        self.all: list[Attempt] = []
        #: Where in the list the attempt of a step is that has not ended.
        self._open: dict[str, int] = {}
        self._last: datetime | None = None

    def take(self, event: Event) -> None:
        if is_recovery(event):
            self._end_all(End.LOST, self._last or event.timestamp)
        elif event.data.get("run_status", AT_WORK) != AT_WORK:
            self._end_all(End.STOPPED, event.timestamp)
        elif event.step_id is not None and amount(event.data.get("attempt")) is not None:
            self._take_step(event, event.step_id)
        self._last = event.timestamp

    def _take_step(self, event: Event, step_id: str) -> None:
        if event.type == AGENT_STARTED:
            self._begin(event, step_id, event.agent or step_id, event.data["attempt"])
        elif event.type == AGENT_COMPLETED:
            self._end(event, step_id, End.COMPLETED)
            self._begin_next(event)
        elif event.type == AGENT_FAILED:
            end = End.GAVE_UP if event.data.get("retries") is False else End.FAILED
            self._end(event, step_id, end)

    def _begin(self, event: Event, step_id: str, agent: str, number: Any) -> None:
        if step_id in self._open:
            place = self._open[step_id]
            self.all[place] = replace(self.all[place], end=End.LOST, ended=self._last)
        self._open[step_id] = len(self.all)
        self.all.append(Attempt(self._workflow_id, agent, step_id, int(number), event.seq, event.timestamp))

    def _begin_next(self, event: Event) -> None:
        """What begins right after is told with the result before it."""
        following = event.data.get("next")
        if isinstance(following, Mapping) and isinstance(following.get("step_id"), str):
            agent = following.get("agent")
            step_id, number = following["step_id"], amount(following.get("attempt")) or 1
            self._begin(event, step_id, agent if isinstance(agent, str) else step_id, number)

    def _end(self, event: Event, step_id: str, end: End) -> None:
        measured = amount(event.data.get("duration_seconds"))
        if step_id not in self._open:
            # Its beginning is before what was read; how long it took is told with a result only.
            self._begin(event, step_id, event.agent or step_id, event.data["attempt"])
        elif measured is None:
            began = self.all[self._open[step_id]].began
            measured = max((event.timestamp - began).total_seconds(), 0.0)
        place = self._open.pop(step_id)
        self.all[place] = replace(
            self.all[place],
            end=end,
            ended=event.timestamp,
            seconds=measured,
            error=event.data.get("error_type"),
            spent=_spent(event),
            end_seq=event.seq,
        )

    def _end_all(self, end: End, at: datetime) -> None:
        for place in self._open.values():
            self.all[place] = replace(self.all[place], end=end, ended=at)
        self._open.clear()


def _spent(event: Event) -> dict[str, float]:
    """Add up what an attempt says that it used: its metrics, and the cost of the event."""
    spent: dict[str, float] = {}
    for told in (event.data.get("metrics"), event.cost):
        for name, value in told.items() if isinstance(told, Mapping) else ():
            number = amount(value)
            if number is not None:
                spent[str(name)] = spent.get(str(name), 0.0) + number
    return spent
