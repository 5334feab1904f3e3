"""What the leader of the commits must not do itself after a fault: make room, wait, try again, and tell."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence

from holdfast.application.commit_queue import CommitQueue, Lineage, Ticket
from holdfast.application.faults.degrading import PROBE, Degrading
from holdfast.application.faults.health import Tales
from holdfast.application.faults.waiting import Held, Spilled
from holdfast.application.storage_faults import reason_of
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, DiskFullError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.retry import RetryPolicy
from holdfast.domain.unwritten import Unwritten, together

_LOG = logging.getLogger("holdfast")
_LEAST_PAUSE_SECONDS = 0.01


class Attendant:
    """A thread that begins with the first fault."""

    def __init__(
        self,
        shelter: Degrading,
        queue: CommitQueue,
        tales: Tales,
        policy: RetryPolicy,
        make_room: Callable[[], int],
    ) -> None:
        """Set up; `make_room` removes what retention lets go and answers the bytes."""
        self._shelter = shelter
        self._queue = queue
        self._tales = tales
        self._policy = policy
        self._make_room = make_room
        self._news = threading.Event()
        self._ending = threading.Event()
        self._mutex = threading.Lock()
        self._thread: threading.Thread | None = None
        #: What was left of each workflow at the end; None before that.
        self._left: dict[str, Unwritten] | None = None
        tales.on_news = self.wake

    def wake(self) -> None:
        """There is something to do."""
        with self._mutex:
            if self._thread is None and not self._ending.is_set():
                self._thread = _started(self._run, "holdfast-ladder")
        self._news.set()

    def probe(self) -> None:
        """Let the leader try the store, and return when it has."""
        ticket = Ticket(Commit(NO_WORKFLOW, Head()), Lineage())
        ticket.intent = PROBE
        self._queue.settle(self._queue.submit(ticket))

    def until_relieved(self) -> None:
        """Return when nothing more is tried at once."""
        is_attended = self._thread is not None and self._thread.is_alive()
        if self._shelter.is_relieving and not is_attended:
            # No thread could be started, or a listener is told of the last step at the end.
            self._relieve()
        self._shelter.until_relieved()

    def flush(self) -> None:
        """Write what waits.

        Raises:
            CheckpointWriteError: it still waits.
        """
        self.until_relieved()
        if not self._shelter.is_open:
            # Another thread may be in the midst of telling that all is well again.
            self._tales.tell()
            return
        self.probe()
        self._tales.tell()
        if waiting := len(self._shelter.waiting):
            raise CheckpointWriteError(
                f"{waiting} commits wait in memory or in the second store: {self._shelter.fault}",
                hint="They are written when the store can be; `health()` tells more.",
            )

    def unwritten(self, workflow_id: str) -> Unwritten:
        """Tell what of a workflow the store does not have; after the end, what became of that."""
        left, refused = self._left, self._shelter.refusals.of(workflow_id)
        waiting = self._waiting(workflow_id) if left is None else left.get(workflow_id, Unwritten())
        return together(waiting, refused)

    def _waiting(self, workflow_id: str) -> Unwritten:
        """Tell of what still waits."""
        shelter = self._shelter
        return _told_of(shelter.waiting.of(workflow_id), shelter.fault, shelter.spare.place)

    def forget_refused(self, workflow_id: str) -> None:
        """Tell no more of what the store refused of a workflow."""
        self._shelter.refusals.forget(workflow_id)

    def close(self) -> None:
        """Write what waits, or save it in the second store, and stop. Idempotent."""
        if self._ending.is_set():
            return
        self._queue.flush()
        self._ending.set()
        self._news.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        shelter = self._shelter
        shelter.is_last_try = True
        if shelter.is_open:
            self._try()
        self._tales.tell()
        held, problem, place = shelter.shut()
        lines: dict[str, list[Held]] = {}
        for one in held:
            lines.setdefault(one.workflow_id, []).append(one)
        self._left = {
            workflow_id: _told_of(line, shelter.fault, place, is_over=True)
            for workflow_id, line in lines.items()
        }
        self._tales.end(sum(map(_is_kept, held)), place, len(held) - sum(map(_is_kept, held)), problem)
        self._release(shelter.reliefs)

    def _run(self) -> None:
        while not self._ending.is_set():
            pause = self._shelter.pause_seconds
            self._news.wait(None if pause is None else max(pause, _LEAST_PAUSE_SECONDS))
            self._news.clear()
            try:
                self._attend()
            except Exception:
                # Without this thread callers would wait for ever.
                _LOG.exception("the storage ladder stumbled, and goes on")

    def _attend(self) -> None:
        if self._ending.is_set():
            return
        if self._shelter.is_relieving:
            self._relieve()
        elif self._shelter.pause_seconds == 0:
            self._try()
        if self._tales.is_due:
            # Not here: a listener may record something, and wait for what this thread is to do.
            _started(self._tales.tell_if_nobody_does, "holdfast-ladder-news")

    def _relieve(self) -> None:
        """Make room and try again, as often as the policy says; the last try decides."""
        relief = self._shelter.reliefs
        try:
            is_full = isinstance(self._shelter.fault, DiskFullError)
            has_room = is_full and self._make_room() > 0
            last = max(self._policy.max_attempts - 1, 1) if has_room or not is_full else 1
            for attempt in range(1, last + 1):
                if attempt > 1:
                    self._ending.wait(self._policy.delay_seconds(attempt - 1, random.random()))
                self._shelter.is_last_try = attempt == last or self._ending.is_set()
                self._try()
                if not len(self._shelter.waiting):
                    break
        finally:
            self._release(relief)

    def _try(self) -> None:
        try:
            self.probe()
        except CheckpointError as problem:
            self._shelter.fault = problem

    def _release(self, relief: int) -> None:
        """Let those go on who waited for all of this."""
        for ticket in self._shelter.relieved(relief):
            if ticket.on_done is not None:
                ticket.on_done(ticket)


def _told_of(
    held: Sequence[Held], fault: Exception | None, place: str | None, *, is_over: bool = False
) -> Unwritten:
    """Tell of what waits, or waited to the end: what is in the second store, and what is in memory alone."""
    reason, kept = reason_of(fault), sum(map(_is_kept, held))
    alone = Unwritten(len(held) - kept, reason, is_lost=is_over)
    return together(Unwritten(kept, reason, place), alone)


def _is_kept(held: Held) -> bool:
    return isinstance(held.intent, Spilled)


def _started(target: Callable[[], None], name: str) -> threading.Thread | None:
    """Start a thread; None where there can be no more, as at the end of the process."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError as problem:
        _LOG.warning("the storage ladder has no thread: %s", problem)
        return None
    return thread
