"""The questions that workflows wait for an answer to, and the answers that are under way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import living
from holdfast.application.travel.travelling import Point, TimeTravel
from holdfast.domain.checkpoint import has_ended as is_last
from holdfast.domain.errors import CheckpointError, KeyDestroyedError
from holdfast.domain.request import Request
from holdfast.domain.run_events import APPROVAL_REQUESTED, open_questions
from holdfast.domain.time import timestamp_text


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


def last_point(kit: Kit, workflow_id: str) -> Point | None:
    """Answer the state of a workflow after its last event; None where nothing is recorded."""
    last = kit.store.head(workflow_id).event_seq
    return TimeTravel(kit, None, Reader(kit)).at(f"{workflow_id}@event:{last}") if last else None


def has_ended(kit: Kit, workflow_id: str) -> bool:
    """Tell whether nothing is left to do in a workflow."""
    newest = next(living(kit.store, workflow_id), None)
    return newest is not None and is_last(newest)


def questions_of(kit: Kit, workflow_id: str, answers: Sequence[Request] = ()) -> list[OpenQuestion]:
    """List what a workflow waits for; one that has ended waits for nothing.

    Args:
        answers: those that were given and not taken in yet.
    """
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
    kit: Kit, answers: Sequence[Request] = (), workflow_ids: Iterable[str] | None = None
) -> Iterator[OpenQuestion | tuple[str, CheckpointError]]:
    """List what workflows wait for, all by default, and which of them cannot be read."""
    for workflow_id in sorted(kit.store.workflows() if workflow_ids is None else workflow_ids):
        try:
            yield from () if _is_gone(kit, workflow_id) else questions_of(kit, workflow_id, answers)
        except KeyDestroyedError:
            # Erased by its key; there is nothing to mend, and nobody to warn.
            continue
        except CheckpointError as problem:
            yield workflow_id, problem


def _is_gone(kit: Kit, workflow_id: str) -> bool:
    """Tell whether a workflow has nothing left but tombstones, as one that was erased."""
    return bool(kit.store.head(workflow_id).sequence) and next(living(kit.store, workflow_id), None) is None


def _since(kit: Kit, workflow_id: str) -> dict[tuple[str, str], str]:
    """Tell when each question was asked."""
    return {
        (event.step_id or "", str(event.data.get("name"))): timestamp_text(event.timestamp)
        for event in Reader(kit).events(workflow_id, 0, APPROVAL_REQUESTED, None)
    }


def _answer_to(answers: Sequence[Request], step_id: str, name: str, *, is_only: bool) -> Request | None:
    """Find the first answer that is for a question; one that names none is for the only one there is."""
    for one in answers:
        of = (one.data.get("step"), one.data.get("name"))
        if of == (step_id, name) or (is_only and of[0] in (None, step_id) and of[1] in (None, name)):
            return one
    return None
