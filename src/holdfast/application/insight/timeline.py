"""A workflow along time: a lane for each agent, and its checkpoints as columns that a page draws at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from holdfast.application.insight.attempts import Attempt, attempts_of
from holdfast.application.insight.event_lines import event_lines
from holdfast.application.insight.event_story import story_of
from holdfast.application.insight.sample import Looked, slim
from holdfast.application.kit import Kit
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.application.sessions.passing_on import HANDED_OFF_EVENT, TAKEN_OVER_EVENT
from holdfast.domain import run_events
from holdfast.domain.annotation import NOTED_EVENT, read_annotation
from holdfast.domain.event import Event
from holdfast.domain.record import Entry
from holdfast.domain.reducers import DECISION_EVENT

#: The newest of these are drawn.
CHECKPOINTS_MAX = 50_000
EVENTS_MAX = 50_000
MARKS_MAX = 2_000
#: The lane of what belongs to no agent.
NO_LANE = -1

_ATTEMPTS = frozenset(
    {
        run_events.AGENT_STARTED,
        run_events.AGENT_COMPLETED,
        run_events.AGENT_FAILED,
        run_events.RUN_UPDATED,
        RECOVERED_EVENT,
    }
)
_MARKED = frozenset(
    {
        run_events.AGENT_FAILED,
        run_events.APPROVAL_REQUESTED,
        run_events.APPROVAL_GRANTED,
        run_events.APPROVAL_DENIED,
        run_events.MILESTONE_REACHED,
        run_events.RUN_UPDATED,
        DECISION_EVENT,
        RECOVERED_EVENT,
        HANDED_OFF_EVENT,
        TAKEN_OVER_EVENT,
    }
)


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt of one step; `end_ms` is None while it is at work."""

    step: str
    attempt: int
    begin_ms: float
    end_ms: float | None
    status: str
    event_seq: int


@dataclass(frozen=True, slots=True)
class Lane:
    """What one agent did, in order."""

    agent: str
    spans: list[Span]


@dataclass(frozen=True, slots=True)
class CheckpointColumns:
    """Checkpoints in order, one column for each thing known.

    Attributes:
        lane: -1 where no agent made it.
        label: all that it has, with commas between them.
    """

    sequence: list[int] = field(default_factory=list)
    time_ms: list[float] = field(default_factory=list)
    type: list[str] = field(default_factory=list)
    status: list[str] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    label: list[str | None] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened; `text` says it in words."""

    event_seq: int
    time_ms: float
    type: str
    agent: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """Work that went from one agent to the next."""

    from_lane: int
    to_lane: int
    time_ms: float
    event_seq: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """One workflow along time, in milliseconds since 1970; `is_cut` where it is older than what is drawn."""

    workflow_id: str
    begin_ms: float | None
    end_ms: float | None
    lanes: list[Lane]
    checkpoints: CheckpointColumns
    marks: list[Mark]
    links: list[Link]
    is_cut: bool


def timeline(kit: Kit, workflow_id: str, *, has_words: bool = True) -> Timeline:
    """Read the listing and the journal of a workflow, and lay them out.

    Args:
        has_words: whether marks say in words what happened, which may tell of the state.
    """
    newest = list(islice(kit.store.entries(workflow_id, newest_first=True), CHECKPOINTS_MAX + 1))
    entries = [entry for entry in reversed(newest[:CHECKPOINTS_MAX]) if not entry.pruned]
    after = max(kit.store.head(workflow_id).event_seq - EVENTS_MAX, 0)
    told = _events(kit, workflow_id, after)
    # What somebody says of a checkpoint afterwards is no part of the work: it may be weeks later.
    events = [event for event in told if event.type != NOTED_EVENT]
    looked = Looked(workflow_id, (), tuple(slim(one) for one in events if one.type in _ATTEMPTS))
    attempts = attempts_of(looked)
    # A checkpoint of an agent names the step: one for each item, or each round of a loop.
    agent_of = {one.step_id: one.agent for one in attempts}
    makers = [None if entry.agent is None else agent_of.get(entry.agent, entry.agent) for entry in entries]
    lanes = _lanes(attempts, makers)
    columns = _columns(entries, makers, lanes, _given(told))
    spans = _spans(attempts)
    marked = [event for event in events if event.type in _MARKED][-MARKS_MAX:]
    begin_ms, end_ms = _ends(columns, events)
    return Timeline(
        workflow_id,
        begin_ms,
        end_ms,
        [Lane(agent, spans[agent]) for agent in lanes],
        columns,
        [_mark(event, has_words=has_words) for event in marked],
        list(_links(events, lanes)),
        len(newest) > CHECKPOINTS_MAX or after > 0,
    )


def _events(kit: Kit, workflow_id: str, after: int) -> list[Event]:
    lines = event_lines(kit, workflow_id, after, _ATTEMPTS | _MARKED | {NOTED_EVENT})
    return [line.event for line in lines if line.event is not None]


def _given(events: Iterable[Event]) -> dict[int, tuple[str, ...]]:
    """Answer the labels that checkpoints were given after they were made: what was said last holds."""
    noted = (event for event in events if event.type == NOTED_EVENT and event.cp_seq is not None)
    return {event.cp_seq or 0: read_annotation(event.data, event.seq).labels for event in noted}


def _lanes(attempts: Iterable[Attempt], makers: Iterable[str | None]) -> dict[str, int]:
    """Number the agents in the order in which they first appear."""
    names = dict.fromkeys(attempt.agent for attempt in attempts)
    names |= dict.fromkeys(maker for maker in makers if maker is not None)
    return {name: number for number, name in enumerate(names)}


def _columns(
    entries: list[Entry],
    makers: list[str | None],
    lanes: dict[str, int],
    given: dict[int, tuple[str, ...]],
) -> CheckpointColumns:
    columns = CheckpointColumns()
    for entry, maker in zip(entries, makers, strict=True):
        columns.sequence.append(entry.sequence)
        columns.time_ms.append(_text_ms(entry.timestamp))
        columns.type.append(entry.type)
        columns.status.append(entry.status)
        columns.lane.append(NO_LANE if maker is None else lanes[maker])
        labels = (*filter(None, [entry.label]), *given.get(entry.sequence, ()))
        columns.label.append(", ".join(labels) or None)
    return columns


def _spans(attempts: Iterable[Attempt]) -> defaultdict[str, list[Span]]:
    spans: defaultdict[str, list[Span]] = defaultdict(list)
    for one in attempts:
        ended = None if one.ended is None else _ms(one.ended)
        spans[one.agent].append(Span(one.step_id, one.number, _ms(one.began), ended, str(one.end), one.seq))
    return spans


def _mark(event: Event, *, has_words: bool) -> Mark:
    text = story_of(event).text if has_words else ""
    return Mark(event.seq, _ms(event.timestamp), event.type, event.agent, text)


def _links(events: Iterable[Event], lanes: dict[str, int]) -> Iterator[Link]:
    """Follow what one agent hands to the next: the result of one tells who begins with it."""
    for event in events:
        following = event.data.get("next") if event.type == run_events.AGENT_COMPLETED else None
        if not isinstance(following, dict):
            continue
        names = (event.agent or event.step_id, following.get("agent") or following.get("step_id"))
        if all(isinstance(name, str) and name in lanes for name in names) and names[0] != names[1]:
            yield Link(lanes[str(names[0])], lanes[str(names[1])], _ms(event.timestamp), event.seq)


def _ends(columns: CheckpointColumns, events: list[Event]) -> tuple[float | None, float | None]:
    moments = [*columns.time_ms[:1], *columns.time_ms[-1:]]
    moments += [_ms(event.timestamp) for event in (*events[:1], *events[-1:])]
    return min(moments, default=None), max(moments, default=None)


def _text_ms(text: str) -> float:
    try:
        return _ms(datetime.fromisoformat(text))
    except ValueError:
        return 0.0


def _ms(moment: datetime) -> float:
    return round(moment.timestamp() * 1000, 3)
