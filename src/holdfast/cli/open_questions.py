"""The questions that workflows wait for an answer to, and the answers that are under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.opening import looking
from holdfast.cli.run_standing import has_ended, last_point
from holdfast.domain.errors import CheckpointError
from holdfast.domain.run_events import APPROVAL_REQUESTED

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.cli.group import Call
    from holdfast.domain.request import Request


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that a workflow waits for.

    Attributes:
        step_id: the step that asks.
        name: what the answer is given to.
        text: what is asked.
        data: what the agent told to help.
        since: when it was asked, as a timestamp; empty where that is not known.
        answer: the answer that nobody has taken in yet.
    """

    workflow_id: str
    step_id: str
    name: str
    text: str
    data: Mapping[str, Any]
    since: str = ""
    answer: Request | None = None


def questions_of(kit: Kit, workflow_id: str, answers: Sequence[Request] = ()) -> list[OpenQuestion]:
    """List what a workflow waits for; one that has ended waits for nothing.

    Args:
        answers: those that were given and not taken in yet.
    """
    from holdfast.execution.asked import open_questions

    point = None if has_ended(kit, workflow_id) else last_point(kit, workflow_id)
    found = open_questions(point.tree) if point is not None else []
    if not found:
        return []
    since = _since(kit, workflow_id)
    under_way = [one for one in answers if one.workflow_id == workflow_id]
    return [
        OpenQuestion(
            workflow_id,
            step_id,
            name,
            str(asked.get("question", "")),
            asked.get("data", {}),
            since.get((step_id, name), ""),
            _answer_to(under_way, step_id, name, is_only=len(found) == 1),
        )
        for step_id, name, asked in found
    ]


def all_questions(
    kit: Kit, answers: Sequence[Request] = ()
) -> Iterator[OpenQuestion | tuple[str, CheckpointError]]:
    """List what all workflows wait for, and which of them cannot be read."""
    for workflow_id in sorted(kit.store.workflows()):
        try:
            yield from questions_of(kit, workflow_id, answers)
        except CheckpointError as problem:
            yield workflow_id, problem


def _since(kit: Kit, workflow_id: str) -> dict[tuple[str, str], str]:
    """Tell when each question was asked."""
    from holdfast.application.reading import Reader
    from holdfast.domain.time import timestamp_text

    return {
        (event.step_id or "", str(event.data.get("name"))): timestamp_text(event.timestamp)
        for event in Reader(kit).events(workflow_id, 0, APPROVAL_REQUESTED, None)
    }


def answers_under_way(call: Call, workflow_id: str | None = None) -> list[Request]:
    """List the answers that were given and not taken in yet."""
    from holdfast.domain.request import RequestKind

    with looking(call) as service:
        pending = service.requests.pending(workflow_id)
    return [one for one in pending if one.kind is RequestKind.APPROVAL]


def _answer_to(answers: Sequence[Request], step_id: str, name: str, *, is_only: bool) -> Request | None:
    """Find the first answer that is for a question; one that names none is for the only one there is."""
    for one in answers:
        of = (one.data.get("step"), one.data.get("name"))
        if of == (step_id, name) or (is_only and of[0] in (None, step_id) and of[1] in (None, name)):
            return one
    return None
