"""Asking something of whoever runs a workflow, and answering what a workflow waits for."""

from __future__ import annotations

import threading
from typing import Any, Literal

import msgspec

from holdfast.application.insight.questions import has_ended, questions_of
from holdfast.application.recovery.owners import is_held
from holdfast.domain.access import Scope
from holdfast.domain.request import Request, RequestKind
from holdfast.domain.run_events import APPROVAL_REQUESTED
from holdfast.domain.time import timestamp_text
from holdfast.server.acting import CHANGING, Acting, Name, begin
from holdfast.server.api.reading import check_there
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation
from holdfast.server.problems import Refusal

#: Of two answers to one question, given at once, the second is refused.
_ONE_AFTER_ANOTHER = threading.Lock()


class Approval(Acting):
    """The answer to what a step asks."""

    step: Name
    name: Name
    granted: bool
    #: For the agent: whatever it asked for.
    value: Any = None


class Wanted(Acting):
    """What is asked of a workflow."""

    kind: Literal["checkpoint", "pause", "cancel"]


class RequestRow(msgspec.Struct):
    """What was left for whoever runs the workflow."""

    id: str
    workflow_id: str
    kind: str
    actor: str | None
    requested_at: str
    #: Whether somebody runs it; else it waits for the next who does.
    is_running: bool


def answer_question(desk: Desk, asked: Asked[None, Approval]) -> RequestRow:
    """Answer a question that is open, in the name of whoever asks."""
    run, body = check_there(desk, asked.path["run"]), asked.body
    with _ONE_AFTER_ANOTHER:
        _check_question(desk, run, body.step, body.name)
        begin(desk, asked, "answerQuestion", run)
        data: dict[str, Any] = {"granted": body.granted, "name": body.name, "step": body.step}
        if body.value is not None:
            data["value"] = body.value
        request = desk.service.requests.put(run, RequestKind.APPROVAL, reason=body.reason, data=data)
    return _row(desk, request)


def make_request(desk: Desk, asked: Asked[None, Wanted]) -> RequestRow:
    """Leave a request; only a cancellation can wait for somebody who runs the workflow."""
    run, kind = check_there(desk, asked.path["run"]), asked.body.kind
    if has_ended(desk.kit, run):
        said = "the workflow has ended, and nothing can be asked of it"
        raise Refusal(409, "workflow_ended", said, place=run)
    if kind != "cancel" and not _is_run(desk, run):
        raise Refusal(
            409,
            "not_running",
            "nobody runs the workflow at this moment",
            place=run,
            hint=f"Go on with `holdfast resume {run}`.",
        )
    begin(desk, asked, "makeRequest", run)
    return _row(desk, desk.service.requests.put(run, kind, reason=asked.body.reason))


def _check_question(desk: Desk, run: str, step: str, name: str) -> None:
    """Refuse an answer to what nobody asks, or what was answered.

    Raises:
        Refusal: it is one.
    """
    questions = questions_of(desk.kit, run, desk.service.requests.pending(run))
    place = f"{run} {step} {name}"
    meant = [one for one in questions if (one.step_id, one.name) == (step, name)]
    if meant and meant[0].answer is not None:
        said = f"it was answered by {meant[0].answer.actor}, and the answer waits to be taken in"
        raise Refusal(409, "question_answered", said, place=place)
    if not meant and _was_asked(desk, run, step, name):
        raise Refusal(409, "question_answered", "it was answered, or its workflow has ended", place=place)
    if not meant:
        open_ones = [f"{one.step_id} {one.name}" for one in questions[:20]]
        raise Refusal(404, "no_such_question", "there is no such question", place=place, candidates=open_ones)


def _was_asked(desk: Desk, run: str, step: str, name: str) -> bool:
    asked = desk.reader.events(run, 0, APPROVAL_REQUESTED, None)
    return any((event.step_id, event.data.get("name")) == (step, name) for event in asked)


def _is_run(desk: Desk, run: str) -> bool:
    return is_held(desk.kit.store.lease(run))


def _row(desk: Desk, request: Request) -> RequestRow:
    return RequestRow(
        request.id,
        request.workflow_id,
        str(request.kind),
        request.actor,
        timestamp_text(request.requested_at),
        _is_run(desk, request.workflow_id),
    )


OPERATIONS = (
    Operation(
        "answerQuestion",
        "POST",
        "/runs/{run}/approvals",
        Scope.WRITE,
        "Answer a question that a run waits for.",
        answer_question,
        body=Approval,
        result=RequestRow,
        status=201,
        acts=True,
        tag="runs",
        problems=CHANGING,
    ),
    Operation(
        "makeRequest",
        "POST",
        "/runs/{run}/requests",
        Scope.WRITE,
        "Ask whoever runs a workflow for a checkpoint, a pause or its end.",
        make_request,
        body=Wanted,
        result=RequestRow,
        status=201,
        acts=True,
        tag="runs",
        problems=CHANGING,
    ),
)
