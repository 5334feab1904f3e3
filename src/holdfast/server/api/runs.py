"""Workflows: listed, shown with their agents, events and questions, and told as a report."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta

from holdfast.application.insight.agents import AgentStats, agents_of
from holdfast.application.insight.event_rows import event_page, of_type
from holdfast.application.insight.lineage import Fork
from holdfast.application.insight.questions import OpenQuestion, all_questions, questions_of
from holdfast.application.insight.runs import RunFilter, RunRow, RunState
from holdfast.application.insight.sample import Sample, look_at
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.domain.event import Event
from holdfast.domain.request import Request, RequestKind
from holdfast.domain.time import timestamp_text
from holdfast.server.acting import READING
from holdfast.server.api.reading import Cursor, Limit, Text, aware, known_run, raw_json, shown_row
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation
from holdfast.server.totals import Total, total_of

_STATES = "|".join(RunState)
#: One status, or several with commas.
States = Annotated[str, Meta(pattern=f"^({_STATES})(,({_STATES}))*$")]


class RunsQuery(msgspec.Struct):
    """Which workflows."""

    status: States | None = None
    agent: Text | None = None
    label: Text | None = None
    since: datetime | None = None
    q: Text | None = None
    cursor: Cursor | None = None
    limit: Limit = 100
    count: bool = False


class RunPage(msgspec.Struct):
    """Some workflows, the one that was active last first.

    `is_complete` says whether every workflow was looked at by now; of very many that takes several requests.
    """

    items: list[RunRow]
    next_cursor: str | None
    is_complete: bool = True
    total: Total = UNSET


class LeaseRow(msgspec.Struct):
    """Who has a workflow, or had it last and never gave it back."""

    owner: str
    token: int
    expires_at: str
    is_live: bool


class Answered(msgspec.Struct):
    """An answer that was given, and that nobody has taken in yet."""

    id: str
    granted: bool
    by: str | None
    reason: str | None
    at: str


class Question(msgspec.Struct):
    """A question that a workflow waits for; `since` is empty where that is not known."""

    workflow_id: str
    step_id: str
    name: str
    question: str
    data: msgspec.Raw
    since: str
    answer: Answered | None


class QuestionList(msgspec.Struct):
    """Open questions; `unreadable` names workflows that may have more."""

    items: list[Question]
    next_cursor: None = None
    unreadable: list[str] = []


class RunDetail(msgspec.Struct):
    """One workflow.

    `metrics` and `agents` are counted over its newest events. `questions` are there for whoever may read
    states.
    """

    run: RunRow
    agents: list[AgentStats]
    forked_from: str | None
    forks: list[Fork]
    lease: LeaseRow | None
    questions: list[Question]
    metrics: dict[str, float]
    first_activity: str | None
    events: int
    session_id: str | None


class EventsQuery(msgspec.Struct):
    """Which events."""

    type: Text | None = None
    order: Literal["oldest", "newest"] = "oldest"
    cursor: Cursor | None = None
    limit: Limit = 100
    count: bool = False


class EventRow(msgspec.Struct):
    """One event of a workflow's journal; `data` and `cost` are tagged as they are stored."""

    seq: int
    time: str
    type: str
    agent: str | None
    step: str | None
    cp_seq: int | None
    cost: msgspec.Raw
    data: msgspec.Raw
    is_erased: bool


class EventPageRows(msgspec.Struct):
    """Some events. A page may be empty and go on: so many were looked at, and none was asked for."""

    items: list[EventRow]
    next_cursor: str | None
    total: Total = UNSET


def list_runs(desk: Desk, asked: Asked[RunsQuery, None]) -> RunPage:
    """List workflows."""
    query = asked.query
    wanted = RunFilter(
        frozenset(query.status.split(",")) if query.status else frozenset(),
        query.agent or "",
        query.label or "",
        aware(query.since),
        query.q or "",
    )
    rows, following = desk.runs.page(wanted, query.cursor, query.limit)
    total = total_of((wanted.matches(*pair) for pair in desk.runs.all()), is_asked=query.count)
    if query.count and not desk.runs.is_complete:
        # Of those that were not looked at nobody knows.
        total = None
    return RunPage([shown_row(asked, row) for row in rows], following, desk.runs.is_complete, total)


def show_run(desk: Desk, asked: Asked[None, None]) -> RunDetail:
    """Tell what is known about one workflow without opening a state."""
    row = known_run(desk, asked.path["run"])
    kit, name = desk.kit, row.workflow_id
    looked = look_at(kit, name)
    agents = agents_of(Sample((looked,), 1, kit.clock.now()))
    origin = desk.lineage.origin(name)
    lease = kit.store.lease(name)
    first = next(iter(kit.store.entries(name)), None)
    return RunDetail(
        shown_row(asked, row),
        agents,
        origin.point if origin else None,
        desk.lineage.forks(name),
        LeaseRow(lease.owner, lease.token, lease.expires_at, lease.is_live) if lease else None,
        _questions(desk, name) if row.questions and asked.identity.may(Scope.STATE_READ) else [],
        _used(agents),
        first.timestamp if first else None,
        kit.store.head(name).event_seq,
        row.newest.session_id if row.newest else None,
    )


def list_events(desk: Desk, asked: Asked[EventsQuery, None]) -> EventPageRows:
    """List the events of one workflow, each verified."""
    name, query = known_run(desk, asked.path["run"]).workflow_id, asked.query
    page = event_page(
        desk.kit,
        name,
        type=query.type,
        cursor=query.cursor,
        limit=query.limit,
        is_newest=query.order == "newest",
    )
    if page.events:
        numbers = [event.seq for event in page.events]
        desk.note(AuditType.EVENTS_READ, name, {"first": min(numbers), "last": max(numbers)})
    total = total_of(of_type(desk.kit, name, query.type), is_asked=query.count)
    return EventPageRows([_event_row(event) for event in page.events], page.next_cursor, total)


def list_run_questions(desk: Desk, asked: Asked[None, None]) -> QuestionList:
    """List what one workflow waits for."""
    name = known_run(desk, asked.path["run"]).workflow_id
    found = _questions(desk, name)
    desk.note(AuditType.STATE_READ, name)
    return QuestionList(found)


def list_questions(desk: Desk, asked: Asked[None, None]) -> QuestionList:
    """List what all workflows wait for."""
    asking = [facts.workflow_id for _, facts in desk.runs.all() if facts.open]
    answers = [one for one in desk.service.requests.pending() if one.kind is RequestKind.APPROVAL]
    items, unreadable = list[Question](), list[str]()
    for one in all_questions(desk.kit, answers, asking):
        if isinstance(one, OpenQuestion):
            items.append(_question(one))
        else:
            unreadable.append(one[0])
    for name in dict.fromkeys(item.workflow_id for item in items):
        desk.note(AuditType.STATE_READ, name)
    return QuestionList(items, unreadable=unreadable)


def _questions(desk: Desk, workflow_id: str) -> list[Question]:
    pending = desk.service.requests.pending(workflow_id)
    answers = [one for one in pending if one.kind is RequestKind.APPROVAL]
    return [_question(one) for one in questions_of(desk.kit, workflow_id, answers)]


def _question(one: OpenQuestion) -> Question:
    answer = None if one.answer is None else _answered(one.answer)
    return Question(one.workflow_id, one.step_id, one.name, one.text, raw_json(one.data), one.since, answer)


def _answered(answer: Request) -> Answered:
    granted, at = bool(answer.data.get("granted")), timestamp_text(answer.requested_at)
    return Answered(answer.id, granted, answer.actor, answer.reason, at)


def _event_row(event: Event) -> EventRow:
    return EventRow(
        event.seq,
        timestamp_text(event.timestamp),
        event.type,
        event.agent,
        event.step_id,
        event.cp_seq,
        raw_json(event.cost),
        raw_json(event.data),
        event.erased,
    )


def _used(agents: list[AgentStats]) -> dict[str, float]:
    """Add up what the agents of a workflow used."""
    used: dict[str, float] = {}
    for one in agents:
        for name, amount in one.used.items():
            used[name] = used.get(name, 0.0) + amount
    return used


OPERATIONS = (
    Operation(
        "listRuns",
        "GET",
        "/runs",
        Scope.READ,
        "List workflows, the one that was active last first.",
        list_runs,
        query=RunsQuery,
        result=RunPage,
        tag="runs",
    ),
    Operation(
        "getRun",
        "GET",
        "/runs/{run}",
        Scope.READ,
        "Tell what is known about one workflow.",
        show_run,
        result=RunDetail,
        tag="runs",
        problems=READING,
    ),
    Operation(
        "listEvents",
        "GET",
        "/runs/{run}/events",
        Scope.STATE_READ,
        "List the events of one workflow, each verified.",
        list_events,
        query=EventsQuery,
        result=EventPageRows,
        tag="runs",
        problems=READING,
    ),
    Operation(
        "listRunQuestions",
        "GET",
        "/runs/{run}/questions",
        Scope.STATE_READ,
        "List what one workflow waits for.",
        list_run_questions,
        result=QuestionList,
        tag="runs",
        problems=READING,
    ),
    Operation(
        "listQuestions",
        "GET",
        "/questions",
        Scope.STATE_READ,
        "List what all workflows wait for.",
        list_questions,
        result=QuestionList,
        tag="runs",
        problems={409: "What is stored is damaged, or cannot be read here."},
    ),
)
