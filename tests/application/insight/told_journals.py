"""Journals and listings made up in tests, as `sample` would have read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.application.insight.sample import Looked, Sample, slim
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.domain.event import Event
from holdfast.domain.record import Entry
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_STARTED, RUN_UPDATED
from holdfast.domain.time import timestamp_text

START = datetime(2026, 1, 11, 12, tzinfo=UTC)


class Told:
    """A journal that is written down event by event, a second apart unless it is said otherwise."""

    def __init__(self, workflow_id: str = "WF-1", start: datetime = START) -> None:
        self.workflow_id = workflow_id
        self.now = start
        self.events: list[Event] = []
        self.entries: list[Entry] = []

    def event(
        self,
        type: str,
        data: dict[str, Any] | None = None,
        *,
        agent: str | None = None,
        step: str | None = None,
        after_seconds: float = 1.0,
        cp_seq: int | None = None,
        cost: dict[str, Any] | None = None,
    ) -> Told:
        self.now += timedelta(seconds=after_seconds)
        seq = len(self.events) + 1
        event = Event(seq, self.now, type, self.workflow_id, agent, step, None, cp_seq, cost, data or {})
        self.events.append(slim(event))
        return self

    def started(self, agent: str, attempt: int = 1, step: str | None = None, **more: Any) -> Told:
        return self.event(AGENT_STARTED, {"attempt": attempt}, agent=agent, step=step or agent, **more)

    def completed(
        self, agent: str, seconds: float | None = None, step: str | None = None, attempt: int = 1, **data: Any
    ) -> Told:
        told = {"attempt": attempt, "result": "x" * 100, **data}
        told |= {} if seconds is None else {"duration_seconds": seconds}
        return self.event(AGENT_COMPLETED, told, agent=agent, step=step or agent)

    def failed(self, agent: str, attempt: int = 1, step: str | None = None, *, retries: bool = True) -> Told:
        data = {"attempt": attempt, "retries": retries, "error": {"type": "ValueError", "message": "no ink"}}
        return self.event(AGENT_FAILED, data, agent=agent, step=step or agent)

    def ran(self, agent: str, seconds: float = 1.0, step: str | None = None) -> Told:
        return self.started(agent, step=step).completed(agent, seconds, step)

    def status(self, status: str, learnt: dict[str, Any] | None = None) -> Told:
        metadata = {"metadata": {"adaptive": learnt}} if learnt else {}
        return self.event(RUN_UPDATED, {"fields": {"status": status, **metadata}}, step="run")

    def recovered(self, cp_seq: int | None = 1, passed_over: tuple[int, ...] = ()) -> Told:
        data = {"mode": "latest", "events_replayed": 2, "passed_over": list(passed_over)}
        return self.event(RECOVERED_EVENT, data, cp_seq=cp_seq)

    def checkpoint(self, state_bytes: int = 1000, *, after_seconds: float = 1.0, **more: Any) -> Told:
        self.now += timedelta(seconds=after_seconds)
        sequence = len(self.entries) + 1
        fields: dict[str, Any] = {"length": state_bytes // 10, "group": 1, "state_bytes": state_bytes, **more}
        kind = fields.pop("type", "stage_complete")
        moment = timestamp_text(self.now)
        self.entries.append(Entry(sequence, f"u-{sequence}", moment, kind, "sha256:0", **fields))
        return self

    def looked(self, *, is_cut: bool = False, problem: str = "") -> Looked:
        return Looked(self.workflow_id, tuple(reversed(self.entries)), tuple(self.events), is_cut, problem)


def sample(*told: Told, now: datetime | None = None, total: int | None = None) -> Sample:
    """Put journals together as one sample, taken a second after the last word."""
    moment = now or max((one.now for one in told), default=START) + timedelta(seconds=1)
    return Sample(tuple(one.looked() for one in told), len(told) if total is None else total, moment)
