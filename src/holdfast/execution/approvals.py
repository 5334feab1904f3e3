"""Approvals: an agent asks, the workflow waits for as long as it takes, somebody with a name answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.run_events import APPROVAL_DENIED, APPROVAL_GRANTED, APPROVAL_REQUESTED
from holdfast.execution.driving import Asking, OnLoop
from holdfast.execution.journal import Fact
from holdfast.execution.stopping import Unwinding


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: a name that is unique within its step, and words for whoever answers."""

    name: str
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Approval:
    """The answer: by whom, with what words, and with what value, if one was asked for."""

    granted: bool
    by: str
    note: str | None = None
    value: Any = None

    def __bool__(self) -> bool:
        return self.granted

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Approval | None:
        """Read an answer from the state of a step; None while there is none."""
        if known.get("status") not in ("granted", "denied"):
            return None
        return cls(known["status"] == "granted", known.get("by", ""), known.get("note"), known.get("value"))


class Suspended(Unwinding):
    """Unwinds an agent that waits for an answer where the run does not.

    No Exception, so that an agent that catches everything does not catch this.
    """


class Desk:
    """Where the agents of one run wait for answers."""

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        self._waiting: dict[tuple[str, str], asyncio.Future[Approval]] = {}

    @property
    def waiting(self) -> tuple[tuple[str, str], ...]:
        """Step and name of each question that is open here."""
        return tuple(self._waiting)

    async def answer(self, step_id: str, name: str) -> Approval:
        """Wait for the answer to a question that was recorded.

        Raises:
            Suspended: this run does not wait.
        """
        if not self._waits:
            raise Suspended
        loop = asyncio.get_running_loop()
        future = self._waiting.setdefault((step_id, name), loop.create_future())
        try:
            return await future
        finally:
            self._waiting.pop((step_id, name), None)

    def deliver(self, step_id: str, name: str, approval: Approval) -> None:
        """Give an answer, once recorded, to whoever waits for it; called on the loop."""
        future = self._waiting.get((step_id, name))
        if future is not None and not future.done():
            future.set_result(approval)

    def dismiss(self) -> None:
        """Send everybody away who waits: the run is about to stop, and the questions stay recorded."""
        self._waits = False
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Suspended())


def ask(
    question: Question,
    step_id: str,
    agent: str,
    known: Callable[[], Mapping[str, Any]],
    answer: Callable[[str, str], Awaitable[Approval]],
) -> Asking:
    """Ask once, however often the agent is restarted, and go on with the answer."""
    told = known().get(question.name)
    if told is None:
        data = {"name": question.name, "question": question.text, "data": dict(question.data)}
        yield Fact(APPROVAL_REQUESTED, data, step_id, agent)
        told = {}
    found = Approval.of(told)
    if found is None:
        found = yield OnLoop(lambda: answer(step_id, question.name))
    return found


def answer_fact(step_id: str, name: str, approval: Approval, request_id: str) -> Fact:
    """Put an answer into words for the journal."""
    kind = APPROVAL_GRANTED if approval.granted else APPROVAL_DENIED
    data = {"name": name, "by": approval.by, "note": approval.note, "value": approval.value}
    return Fact(kind, {**data, "request": request_id}, step_id)
