"""The report of a workflow for people: what it is, how it stands, what happened, what it cost, how to verify.

It is made from what is stored alone and names no moment but those that are recorded there: of the same store
it says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from holdfast.application.insight.event_story import Kind, Story, is_number, is_pin, story_of, words
from holdfast.application.insight.following import AT_WORK, by_checkpoint, run_status
from holdfast.application.insight.run_report_html import as_html
from holdfast.application.insight.run_report_markdown import as_markdown
from holdfast.application.insight.run_report_values import (
    AgentLine,
    CheckpointCount,
    Moment,
    RunReport,
    StageLine,
)
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import known_head, living
from holdfast.application.travel.travelling import TimeTravel
from holdfast.domain import run_events
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import Event
from holdfast.domain.progress_report import ReportSection, has_section, section_of
from holdfast.domain.record import Entry

__all__ = ["RunReport", "as_html", "as_markdown", "report"]

#: So much of what happened is told: the beginning, and the end.
FIRST_MOMENTS, LAST_MOMENTS = 100, 400
_TOLD_EVERY = 1000
_TOLD = frozenset(
    {
        Kind.RUN,
        Kind.STAGE,
        Kind.AGENT,
        Kind.DECISION,
        Kind.APPROVAL,
        Kind.FAILURE,
        Kind.RECOVERY,
        Kind.FINDING,
    }
)
#: Of these there are many, and the end of what they begin is told.
_PASSED_OVER = frozenset(
    {run_events.AGENT_STARTED, run_events.EFFECT_STARTED, "AGENT_STATE_UPDATED", "CHECKPOINT_STATUS"}
)


def report(
    kit: Kit, workflow_id: str, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> RunReport:
    """Read a workflow and put together what is told of it; every event is verified.

    Args:
        kit: the store.
        workflow_id: the run.
        on_progress: told now and then how many events were read, and how many there are.

    Raises:
        CheckpointNotFoundError: there is no such workflow.
        ChecksumMismatchError: an event is not what was committed.
    """
    head = known_head(kit.store, workflow_id)
    tally = _Tally()
    reader = Reader(kit)
    for event in reader.opened_events(workflow_id):
        if event.seq > head.event_seq:
            break
        tally.take(reader, event)
        if event.seq % _TOLD_EVERY == 0:
            on_progress(event.seq, head.event_seq)
    state, notes = _state(kit, workflow_id, head.event_seq)
    tasks = state.get("tasks")
    steps = len(tasks) if isinstance(tasks, list | tuple) else 0
    total = _count(state.get("total_steps"))
    return RunReport(
        workflow_id,
        tally.status or by_checkpoint(kit, workflow_id),
        _program(state),
        tally.began_at,
        tally.last_at,
        steps,
        # Rounds and items are steps that nobody could count before.
        total if total >= steps else 0,
        _stages(state, tally),
        tuple(AgentLine(name, **counts) for name, counts in tally.agents.items()),
        tuple(tally.moments()),
        tally.left_out,
        LAST_MOMENTS if tally.left_out else 0,
        _costs(state, tally),
        _checkpoints(kit, workflow_id),
        tuple(tally.sections),
        head.event_seq,
        head.event_hash if head.event_seq else "",
        (*tally.notes, *notes),
    )


class _Tally:
    """Counts events, and keeps the first and the last of what is worth telling."""

    def __init__(self) -> None:
        self.status = ""
        self.began_at: datetime | None = None
        self.last_at: datetime | None = None
        self.agents: dict[str, dict[str, Any]] = {}
        self.stages: dict[str, str] = {}
        self.costs: dict[str, float] = {}
        self.sections: list[ReportSection] = []
        self.notes: list[str] = []
        self.left_out = 0
        self._first: list[Moment] = []
        self._last: list[Moment] = []

    def take(self, reader: Reader, event: Event) -> None:
        """Count one event."""
        self.began_at = self.began_at or event.timestamp
        self.last_at = self.last_at if is_pin(event) else event.timestamp
        self.status = run_status(event) or self.status
        _add(self.costs, event.cost or {})
        self._count_agent(event)
        if event.type == run_events.STAGE_UPDATED and isinstance(state := event.data.get("state"), Mapping):
            self.stages[words(event.data.get("stage"))] = words(state.get("status")) or AT_WORK
        if has_section(event):
            self._add_section(reader, event)
        if event.type not in _PASSED_OVER:
            self._keep(event, story_of(event))

    def moments(self) -> list[Moment]:
        """Answer what is told, in order."""
        if len(self._last) > LAST_MOMENTS:
            self._cut()
        return [*self._first, *self._last]

    def _add_section(self, reader: Reader, event: Event) -> None:
        try:
            self.sections.append(section_of(reader.with_values(event)))
        except CheckpointError as problem:
            self.notes.append(f"event {event.seq} holds what is not known here ({words(problem.message)})")

    def _keep(self, event: Event, story: Story) -> None:
        if story.kind not in _TOLD:
            return
        moment = Moment(event.seq, event.timestamp, story.kind, story.text, story.detail)
        if len(self._first) < FIRST_MOMENTS:
            self._first.append(moment)
            return
        self._last.append(moment)
        if len(self._last) > 2 * LAST_MOMENTS:
            self._cut()

    def _cut(self) -> None:
        self.left_out += len(self._last) - LAST_MOMENTS
        del self._last[:-LAST_MOMENTS]

    def _count_agent(self, event: Event) -> None:
        name = _COUNTED.get(event.type)
        if name is None or event.step_id is None or event.agent is None:
            return
        known = self.agents.setdefault(event.agent, {})
        known[name] = known.get(name, 0) + 1
        seconds = event.data.get("duration_seconds")
        if is_number(seconds):
            known["seconds"] = known.get("seconds", 0.0) + seconds
        following = event.data.get("next")
        if isinstance(following, Mapping):
            # What begins right after is recorded with the result before.
            after = self.agents.setdefault(words(following.get("agent") or following.get("step_id")), {})
            after["begun"] = after.get("begun", 0) + 1


_COUNTED = {
    run_events.AGENT_STARTED: "begun",
    run_events.AGENT_COMPLETED: "done",
    run_events.AGENT_FAILED: "failed",
    run_events.AGENT_SKIPPED: "skipped",
}


def _state(kit: Kit, workflow_id: str, event_seq: int) -> tuple[Mapping[str, Any], list[str]]:
    """Answer the state after the last event; where that cannot be had, say why and go on without."""
    try:
        point = TimeTravel(kit, None, Reader(kit)).at(f"{workflow_id}@event:{event_seq}")
    except CheckpointError as problem:
        return {}, [f"the state cannot be read ({words(problem.message)})"]
    return point.tree, [words(note) for note in point.notes]


def _count(value: Any) -> int:
    return int(value) if is_number(value) and value > 0 else 0


def _program(state: Mapping[str, Any]) -> str:
    structure = state.get("dag_structure")
    return words(structure.get("workflow")) if isinstance(structure, Mapping) else ""


def _stages(state: Mapping[str, Any], tally: _Tally) -> tuple[StageLine, ...]:
    """Answer the stages in the order of the plan, those that are in no plan after them."""
    structure = state.get("dag_structure")
    planned = structure.get("stages") if isinstance(structure, Mapping) else None
    lines = [_stage(one, tally) for one in planned or () if isinstance(one, Mapping)]
    named = {line.name for line in lines}
    return (*lines, *(StageLine(name, status) for name, status in tally.stages.items() if name not in named))


def _stage(planned: Mapping[str, Any], tally: _Tally) -> StageLine:
    name = words(planned.get("name"))
    agents = planned.get("agents")
    named = (
        [one.get("name") for one in agents if isinstance(one, Mapping)] if isinstance(agents, list) else []
    )
    begun = "begun" if any(words(one) in tally.agents for one in named) else "not begun"
    return StageLine(name, tally.stages.get(name, begun), tuple(map(words, named)))


def _costs(state: Mapping[str, Any], tally: _Tally) -> dict[str, float]:
    """Answer what was counted, by the run itself where it did, else by what its events cost."""
    metrics = state.get("metrics")
    counted: dict[str, float] = {}
    _add(counted, metrics if isinstance(metrics, Mapping) else {})
    return {**tally.costs, **counted}


def _add(costs: dict[str, float], more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if is_number(value):
            costs[words(name)] = costs.get(words(name), 0) + value


def _checkpoints(kit: Kit, workflow_id: str) -> CheckpointCount:
    entries: Iterable[Entry] = kit.store.entries(workflow_id)
    removed = total = 0
    for entry in entries:
        total += 1
        removed += entry.pruned
    newest = next(living(kit.store, workflow_id), None)
    if newest is None:
        return CheckpointCount(removed=removed)
    return CheckpointCount(
        total - removed,
        removed,
        f"{workflow_id}@{newest.sequence}",
        newest.timestamp,
        newest.checksum,
        newest.state_bytes,
    )
