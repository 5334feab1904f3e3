"""Group commit: who finds no leader leads, and everything that waits together shares one sync.

A synchronous caller that leads pays no hand-over to another thread. A background thread, started when
first needed, leads for callers that do not wait in a thread of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Protocol

from holdfast.application.storage_faults import is_fault, is_refusal
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointWriteError,
    LeaseHeldError,
    LeaseLostError,
    StoreClosedError,
)
from holdfast.domain.record import Commit

OnDone = Callable[["Ticket"], None]
#: Told of each commit that the store refused; called in the leader's thread.
OnRefused = Callable[[str, Exception], None]
CommitGroup = Callable[[Sequence[Commit]], list[Exception | None]]


class Lineage:
    """What commits prepared one on top of the other share: when one fails, so do those after it."""

    __slots__ = ("failure", "is_moved")

    def __init__(self) -> None:
        self.failure: Exception | None = None
        #: What waited was written elsewhere than was thought: those after it have to be made again.
        self.is_moved = False


class Ticket:
    """One commit on its way: done, and failed if there is an error."""

    __slots__ = (
        "commit",
        "done",
        "error",
        "following",
        "intent",
        "is_held",
        "lineage",
        "on_done",
        "result",
        "waiters",
    )

    def __init__(
        self, commit: Commit, lineage: Lineage, result: Any = None, on_done: OnDone | None = None
    ) -> None:
        self.commit = commit
        self.lineage = lineage
        #: What the caller gets once the commit is durable.
        self.result = result
        self.on_done = on_done
        self.done = False
        self.error: Exception | None = None
        #: What it was made from, and what the next one builds on: for whoever has to make it again.
        self.intent: Any = None
        self.following: Any = None
        #: Whether it waits in memory for a store that can be written again.
        self.is_held = False
        #: One held lock per thread that waits; releasing it means: look again.
        self.waiters: Sequence[threading.Lock] = ()

    def wake(self) -> None:
        """Make all who wait look again; they enlist anew if it was too early."""
        waiters, self.waiters = self.waiters, ()
        for waiter in waiters:
            waiter.release()


class Shelter(Protocol):
    """Takes commits in that cannot be made durable; called in the leader's thread."""

    @property
    def is_open(self) -> bool:
        """Whether commits go through the shelter, because something waits there already."""

    def commit(self, tickets: Sequence[Ticket]) -> list[Exception | None]:
        """Make durable or take in; answer one outcome each."""

    def take_in(self, tickets: Sequence[Ticket], problem: Exception) -> list[Exception | None] | None:
        """Take in what a store failed to make durable; None if that is none of its business."""

    def delays(self, ticket: Ticket) -> bool:
        """Tell whether the shelter calls the ticket's `on_done` itself, later."""


class CommitQueue:
    """Commits in the order they were prepared in, made durable group by group."""

    #: None: what cannot be made durable fails.
    shelter: Shelter | None = None
    #: Told of each group once its outcome is known, before its callers are; in the leader's thread.
    on_decided: Callable[[Sequence[Ticket]], None] | None = None

    def __init__(self, commit_group: CommitGroup, on_refused: OnRefused | None = None) -> None:
        self._commit_group = commit_group
        self._on_refused = on_refused
        self._mutex = threading.Lock()
        self._queue: list[Ticket] = []
        self._leading = False
        self._closed = False
        self._last: Ticket | None = None
        self._background: threading.Thread | None = None
        self._calls: SimpleQueue[bool] = SimpleQueue()

    def submit(self, ticket: Ticket, *, is_urgent: bool = True) -> Ticket:
        """Queue a commit; whoever gives no `on_done` must `wait`, the others are told by it.

        `on_done` is called in the leader's thread and must neither raise nor take long. What is not urgent
        goes with the next that is.
        """
        with self._mutex:
            if self._closed:
                raise StoreClosedError("the store was closed", hint="Open it again.")
            self._queue.append(ticket)
            self._last = ticket
            if is_urgent and ticket.on_done is not None and not self._leading:
                self._call_background()
        return ticket

    def wait(self, ticket: Ticket) -> Any:
        """Answer the ticket's result when the commit is durable; raise why it is not."""
        self.settle(ticket)
        if ticket.error is not None:
            raise ticket.error
        return ticket.result

    def settle(self, ticket: Ticket) -> None:
        """Return when the outcome of a commit is known, leading if nobody does."""
        while not ticket.done:
            waiter, group = self._enlist(ticket)
            if waiter is None:
                self._lead(group)
                continue
            try:
                waiter.acquire()
            except BaseException:
                self._abandon(ticket, waiter)
                raise

    def flush(self) -> None:
        """Return when the outcome of everything queued so far is known."""
        last = self._last
        if last is not None:
            # Groups are committed in order, so the last one's outcome comes last.
            self.settle(last)

    def close(self) -> None:
        """Finish what is queued and refuse anything new. Idempotent."""
        with self._mutex:
            self._closed = True
            background = self._background
            self._background = None
        self.flush()
        if background is not None:
            self._calls.put(False)
            if background is not threading.current_thread():
                background.join()

    def _enlist(self, ticket: Ticket) -> tuple[threading.Lock | None, list[Ticket]]:
        """Get something to wait on, or take the lead (None) of everything that is queued."""
        with self._mutex:
            if not self._leading and not ticket.done:
                return None, self._led()
            waiter = threading.Lock()
            if not ticket.done:
                waiter.acquire()
                ticket.waiters = [*ticket.waiters, waiter]
            return waiter, []

    def _led(self) -> list[Ticket]:
        """Take the lead of everything that is queued; the mutex is held, and nobody leads."""
        self._leading = True
        group, self._queue = self._queue, []
        return group

    def _abandon(self, ticket: Ticket, waiter: threading.Lock) -> None:
        """Let the background care for a commit whose caller was interrupted while waiting."""
        with self._mutex:
            ticket.waiters = [other for other in ticket.waiters if other is not waiter]
            ticket.on_done = ticket.on_done or _nobody_listens
            if not self._leading and self._queue:
                self._call_background()

    def _lead(self, group: list[Ticket]) -> None:
        """Commit what was taken the lead of as one group."""
        try:
            self._decide(group)
        except BaseException:
            self._fail_all(group, CheckpointWriteError("the commit was interrupted", hint=_UNKNOWN))
            raise
        finally:
            self._finish(group)

    def _decide(self, group: list[Ticket]) -> None:
        """Find out the outcome of each; those on top of a failed one are not even tried."""
        sound, is_moved = [], False
        for ticket in group:
            lineage = ticket.lineage
            if lineage.failure is None:
                sound.append(ticket)
                is_moved = is_moved or lineage.is_moved
            else:
                ticket.error = on_top_of(lineage.failure, ticket.commit.workflow_id)
        if not sound:
            return
        shelter = self.shelter
        try:
            # What was made on top of what ended up elsewhere has to be made again, and that is done there.
            if shelter is not None and (is_moved or shelter.is_open):
                outcomes = shelter.commit(sound)
            else:
                outcomes = self._committed(sound)
        except Exception as problem:
            taken_in = shelter.take_in(sound, problem) if shelter is not None else None
            if taken_in is None:
                self._fail_all(sound, problem)
                return
            outcomes = taken_in
        for ticket, outcome in zip(sound, outcomes, strict=True):
            if outcome is not None:
                ticket.error = outcome
                # That nothing can be written is no refusal, and to note it would never end.
                if self._on_refused is not None and not is_fault(outcome):
                    self._on_refused(ticket.commit.workflow_id, outcome)
                ticket.lineage.failure = ticket.lineage.failure or outcome

    def _committed(self, tickets: list[Ticket]) -> list[Exception | None]:
        """Commit them together; where that is refused, each alone: one of them takes no other along."""
        try:
            return self._commit_group([ticket.commit for ticket in tickets])
        except CheckpointError as problem:
            if not is_refusal(problem):
                raise
            if len(tickets) == 1:
                return [own_copy(problem)]
        outcomes, failures = list[Exception | None](), dict[Lineage, Exception]()
        for ticket in tickets:
            failure = failures.get(ticket.lineage)
            if failure is None:
                [outcome] = self._committed([ticket])
            else:
                outcome = on_top_of(failure, ticket.commit.workflow_id)
            outcomes.append(outcome)
            if outcome is not None:
                failures.setdefault(ticket.lineage, outcome)
        return outcomes

    def _fail_all(self, group: list[Ticket], problem: Exception) -> None:
        """Give each caller an error of its own: one object raised in many threads mixes tracebacks."""
        for ticket in group:
            if ticket.error is None:
                ticket.error = own_copy(problem)
                ticket.lineage.failure = ticket.lineage.failure or problem

    def _finish(self, group: list[Ticket]) -> None:
        if self.on_decided is not None:
            self.on_decided(group)
        with self._mutex:
            for ticket in group:
                ticket.done = True
            self._leading = False
            if self._queue:
                self._hand_over()
        for ticket in group:
            if ticket.error is None and not ticket.is_held:
                # The caller's own objects are behind it.
                ticket.intent = ticket.following = None
            if ticket.waiters:
                ticket.wake()
            if ticket.on_done is not None and not self._is_delayed(ticket):
                ticket.on_done(ticket)

    def _is_delayed(self, ticket: Ticket) -> bool:
        return ticket.is_held and self.shelter is not None and self.shelter.delays(ticket)

    def _hand_over(self) -> None:
        """Wake somebody to lead what was queued meanwhile; the mutex is held."""
        heir = next((ticket for ticket in self._queue if ticket.waiters), None)
        if heir is not None:
            heir.wake()
        elif any(ticket.on_done is not None for ticket in self._queue):
            self._call_background()

    def _call_background(self) -> None:
        """Ask the background thread to lead; the mutex is held."""
        if self._background is None and not self._closed:
            self._background = threading.Thread(target=self._serve, name="holdfast-commits", daemon=True)
            self._background.start()
        self._calls.put(True)

    def _serve(self) -> None:
        while self._calls.get():
            with self._mutex:
                if self._leading or not self._queue:
                    continue
                group = self._led()
            self._lead(group)


_ABOVE = "an earlier commit of the workflow failed, and this one was made on top of it"
_UNKNOWN = "Whether it is durable is unknown; the next call reads the store again."


def _nobody_listens(_: Ticket) -> None:
    """Stand in for a caller that went away."""


def on_top_of(failure: Exception, workflow_id: str) -> Exception:
    """Say that a commit was made on top of one that failed."""
    if isinstance(failure, LeaseHeldError | LeaseLostError):
        # True of the workflow, and so of every commit to it.
        return own_copy(failure)
    kind = CheckpointConflictError if isinstance(failure, CheckpointConflictError) else CheckpointWriteError
    error = kind(
        _ABOVE,
        place=workflow_id,
        hint="Call again: the next call starts from what the store holds.",
    )
    error.__cause__ = failure
    return error


def is_above_refused(problem: object) -> bool:
    """Tell whether a commit failed only because it was made on top of one that the store refused."""
    is_above = isinstance(problem, CheckpointWriteError) and problem.message == _ABOVE
    return is_above and isinstance(problem, Exception) and not is_fault(problem.__cause__)


def own_copy(problem: Exception) -> Exception:
    """Give a caller an error of its own."""
    if isinstance(problem, CheckpointError):
        twin: Exception = type(problem)(problem.message, place=problem.place, hint=problem.hint)
    else:
        twin = CheckpointWriteError(f"the store failed: {problem}", hint=_UNKNOWN)
    twin.__cause__ = problem
    return twin
