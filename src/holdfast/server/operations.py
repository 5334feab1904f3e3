"""Long work: begun by a request, carried on in a thread, looked at and cancelled by others.

It lives in memory: a server that ends cancels what is at work, and what a server did is not known to the
next one. That it was asked for, and how it ended, is in the trail.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.kit import Kit
from holdfast.application.trailing import acting_as, correlate
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointError
from holdfast.domain.time import timestamp_text
from holdfast.server.operation import Answer, Asked
from holdfast.server.problems import Problem, Refusal, problem_of, refusal_of

AT_WORK_MAX = 2
WAITING_MAX = 20
KEPT_MAX = 200
#: Type of the entries that tell how an operation ended.
ENDED = AuditType.OPERATION_ENDED
_LOG = logging.getLogger("holdfast")


class Status(StrEnum):
    """How an operation stands."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Steps(msgspec.Struct):
    """How far an operation is; 0 of 0 where nobody can tell."""

    done: int = 0
    total: int = 0
    unit: str = ""


class OperationRow(msgspec.Struct):
    """An operation as it is shown."""

    id: str
    kind: str
    status: Status
    progress: Steps
    workflow_id: str | None
    actor: str
    begun_at: str
    ended_at: str | None
    #: What came of it; its shape is that of the kind.
    result: Any
    problem: Problem | None


class CancelledWork(Exception):
    """End work that somebody cancelled."""


class Progress:
    """What work tells of itself, and hears."""

    def __init__(self, unit: str) -> None:
        self.steps = Steps(unit=unit)
        self._is_cancelled = threading.Event()

    def step(self, done: int, total: int) -> None:
        """Tell how far it is, and end here if that is wanted.

        Raises:
            CancelledWork: it is.
        """
        self.steps = Steps(done, total, self.steps.unit)
        self.check()

    def check(self) -> None:
        """End here if that is wanted.

        Raises:
            CancelledWork: it is.
        """
        if self._is_cancelled.is_set():
            raise CancelledWork

    def cancel(self) -> None:
        """Ask the work to end at the next step."""
        self._is_cancelled.set()


Work = Callable[[Progress], Any]


@dataclass(slots=True)
class Running:
    """One operation."""

    id: str
    kind: str
    #: Whoever may begin it may cancel it.
    scope: Scope
    workflow_id: str | None
    actor: str
    request_id: str
    begun_at: str
    work: Work
    progress: Progress
    status: Status = Status.WAITING
    ended_at: str | None = None
    result: Any = None
    problem: Problem | None = None
    future: Future[None] | None = field(default=None, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.status not in (Status.WAITING, Status.RUNNING)

    def row(self) -> OperationRow:
        """Show it."""
        return OperationRow(
            self.id,
            self.kind,
            self.status,
            self.progress.steps,
            self.workflow_id,
            self.actor,
            self.begun_at,
            self.ended_at,
            self.result,
            self.problem,
        )


class Operations:
    """Carries long work on, a few pieces at once, and remembers the last of them."""

    def __init__(self, kit: Kit, audit: AuditLog) -> None:
        self._kit = kit
        self._audit = audit
        self._mutex = threading.Lock()
        self._known: OrderedDict[str, Running] = OrderedDict()
        self._pool = ThreadPoolExecutor(AT_WORK_MAX, thread_name_prefix="holdfast-operation")
        self._is_closed = False

    def start(
        self,
        kind: str,
        work: Work,
        asked: Asked[Any, Any],
        *,
        scope: Scope,
        workflow_id: str | None = None,
        unit: str = "",
    ) -> Answer:
        """Begin work on behalf of whoever asks; answer where to look for what comes of it.

        Args:
            kind: what it is called.
            work: does it in a thread, is told when to end by what it is given, and answers the result.
            scope: what one must be allowed to cancel it.
            unit: of what its progress counts.

        Raises:
            Refusal: too much waits already, or the server ends.
        """
        running = Running(
            secrets.token_hex(8),
            kind,
            scope,
            workflow_id,
            asked.identity.name,
            asked.request_id,
            timestamp_text(self._kit.clock.now()),
            work,
            Progress(unit),
        )
        row = running.row()
        self._admit(running)
        return Answer(row, 202, {"Location": f"/v1/operations/{running.id}"})

    def _admit(self, running: Running) -> None:
        with self._mutex:
            waiting = sum(not one.is_over for one in self._known.values())
            if self._is_closed or waiting >= AT_WORK_MAX + WAITING_MAX:
                raise Refusal(
                    503,
                    "too_much_work",
                    "the server ends" if self._is_closed else f"{waiting} operations wait already",
                    hint="Ask again later, with a new key.",
                    headers={"Retry-After": "10"},
                )
            self._known[running.id] = running
            self._forget()
            # Whoever asked, and the request's id, go along.
            running.future = self._pool.submit(copy_context().run, self._carry_out, running)

    def _forget(self) -> None:
        over = [one.id for one in self._known.values() if one.is_over]
        for operation_id in over[: max(0, len(self._known) - KEPT_MAX)]:
            del self._known[operation_id]

    def rows(self) -> list[OperationRow]:
        """Show all that are remembered, the newest first."""
        with self._mutex:
            return [one.row() for one in reversed(self._known.values())]

    def find(self, operation_id: str) -> Running:
        """Answer one operation.

        Raises:
            Refusal: there is none.
        """
        with self._mutex:
            found = self._known.get(operation_id)
        if found is None:
            raise Refusal(
                404,
                "operation_not_found",
                "there is no such operation",
                place=operation_id[:100],
                hint="A server remembers its own last ones; the trail tells how others ended.",
            )
        return found

    def cancel(self, operation_id: str) -> OperationRow:
        """Ask an operation to end at its next step.

        Raises:
            Refusal: there is none, or it is over.
        """
        running = self.find(operation_id)
        running.progress.cancel()
        if running.future is not None and running.future.cancel():
            # It had not begun.
            self._end(running, Status.CANCELLED)
        elif running.is_over and running.status is not Status.CANCELLED:
            raise Refusal(409, "operation_over", f"it is over: {running.status}", place=operation_id)
        return running.row()

    def _carry_out(self, running: Running) -> None:
        running.status = Status.RUNNING
        try:
            running.progress.check()
            running.result = running.work(running.progress)
        except CancelledWork:
            self._end(running, Status.CANCELLED)
        except CheckpointError as error:
            self._fail(running, refusal_of(error))
        except Refusal as refusal:
            self._fail(running, refusal)
        except Exception:
            _LOG.exception("operation %s failed (%s)", running.kind, running.request_id)
            said = "an unexpected failure; the server's log has it under the request's id"
            self._fail(running, Refusal(500, "unexpected", said))
        else:
            self._end(running, Status.DONE)

    def _fail(self, running: Running, refusal: Refusal) -> None:
        running.problem = problem_of(refusal, running.request_id)
        self._end(running, Status.FAILED)

    def _end(self, running: Running, status: Status) -> None:
        with self._mutex:
            if running.is_over:
                # The server ended meanwhile, and has told so.
                return
            running.ended_at = timestamp_text(self._kit.clock.now())
            running.status = status
        with acting_as(running.actor), correlate(running.request_id):
            self._tell(running)

    def _tell(self, running: Running) -> None:
        """Tell the trail how it ended, and who had asked for it."""
        facts = {"via": "http", "operation": running.kind, "id": running.id, "status": str(running.status)}
        outcome = Outcome.SUCCESS if running.status is Status.DONE else Outcome.FAILURE
        if running.problem is not None:
            facts["code"] = running.problem.code
        if not self._kit.audit or self._kit.store.read_only:
            return
        try:
            self._audit.log_event(ENDED, workflow_id=running.workflow_id, outcome=outcome, facts=facts)
        except CheckpointError as problem:
            _LOG.warning("how operation %s ended is not in the trail: %s", running.id, problem)

    def close(self, patience_seconds: float) -> None:
        """Cancel what is at work, and tell of what does not end in time as failed."""
        with self._mutex:
            self._is_closed = True
            open_ones = [one for one in self._known.values() if not one.is_over]
        for running in open_ones:
            running.progress.cancel()
            if running.future is not None and running.future.cancel():
                self._end(running, Status.CANCELLED)
        wait([one.future for one in open_ones if one.future is not None], patience_seconds)
        self._pool.shutdown(wait=False)
        for running in open_ones:
            if not running.is_over:
                self._fail(running, Refusal(503, "server_ended", "the server ended before it was done"))
