"""What others ask of a run: a checkpoint, a pause, an end, an answer to a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from holdfast.domain.request import Request, RequestKind
from holdfast.domain.run_events import REQUEST_SETTLED, open_questions
from holdfast.domain.time import parse_timestamp
from holdfast.execution.approvals import Approval, answer_fact
from holdfast.execution.journal import Fact, Save
from holdfast.execution.outcome import RunStatus
from holdfast.execution.running import RUN, Runner
from holdfast.execution.triggers import Moment, Trigger


class Asked:
    """Carries out requests for one run, each once."""

    def __init__(self, runner: Runner, cancel: Callable[[], Any]) -> None:
        self._runner = runner
        self._journal = runner.journal
        self._cancel = cancel

    async def carry_out(self, request: Request) -> bool:
        """Do what is asked; answers whether that is settled."""
        if request.id in self._journal.fields.get("metadata", {}).get("settled_requests", ()):
            return True
        if request.kind is RequestKind.APPROVAL:
            return await self._answer(request)
        if request.kind is RequestKind.CHECKPOINT:
            if self._runner.watch.due(Moment(Trigger.USER_REQUESTED)):
                await self._journal.commit_async(_settled(request), Save(str(Trigger.USER_REQUESTED)))
            return True
        is_pause = request.kind is RequestKind.PAUSE
        status = RunStatus.PAUSED if is_pause else RunStatus.CANCELLED
        # To run it again is how a pause ends; a cancelled run stays so, even if this process dies now.
        ends = {} if is_pause else {"ends_as": str(status)}
        await self._journal.commit_async(_settled(request, **ends))
        self._runner.stop.set(status)
        self._journal.tell("stopping", status=str(self._runner.stop.status), by=request.actor)
        self._runner.desk.dismiss()
        if not is_pause:
            self._cancel()
        return True

    async def _answer(self, request: Request) -> bool:
        """Record an answer and bring it to whoever waits; one that is for no open question is discarded."""
        data = request.data
        found = meant(self._journal.fields, data.get("name"), data.get("step"), request.requested_at)
        if len(found) != 1:
            await self._discard(request, found)
            return True
        [(step_id, name)] = found
        approval = Approval(bool(data.get("granted")), request.actor or "", request.reason, data.get("value"))
        await self._journal.commit_async(answer_fact(step_id, name, approval, request.id), _settled(request))
        self._journal.tell("approval_answered", step_id=step_id, name=name, granted=approval.granted)
        self._runner.desk.deliver(step_id, name, approval)
        return True

    async def _discard(self, request: Request, found: list[tuple[str, str]]) -> None:
        """Take an answer for none, and say so: it would be given to a question that nobody looked at."""
        several = ", ".join(f"{name} of {step_id}" for step_id, name in found)
        why = f"it may be for any of {several}" if found else "no question was open that it could be for"
        await self._journal.commit_async(_settled(request, discarded=why))
        by = f" of {request.actor}" if request.actor else ""
        self._journal.warn(
            f"an answer{by} to {request.data.get('name') or 'a question'} was discarded: {why}"
        )


def meant(fields: Mapping[str, Any], name: Any, step: Any, given_at: datetime) -> list[tuple[str, str]]:
    """List the open questions that an answer may be for: those that were asked when it was given."""
    return [
        (step_id, asked)
        for step_id, asked, question in open_questions(fields)
        if name in (None, asked) and step in (None, step_id) and _was_asked(question, given_at)
    ]


def _was_asked(question: Mapping[str, Any], at: datetime) -> bool:
    # Journals of before do not say when.
    return "asked_at" not in question or parse_timestamp(question["asked_at"]) <= at


def _settled(request: Request, **more: Any) -> Fact:
    data = {"id": request.id, "kind": str(request.kind), "by": request.actor, **more}
    return Fact(REQUEST_SETTLED, data, RUN)
