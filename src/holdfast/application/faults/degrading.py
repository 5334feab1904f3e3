"""Going on when nothing can be made durable: down the ladder, and up again.

Commits that a store cannot take are kept in the order in which they came, and whatever builds on them is made
on top of them as usual. Everything here happens in the thread that leads the commits; making room, trying
again after pauses and telling is done by an attendant in a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage, Ticket, on_top_of, own_copy
from holdfast.application.faults.draining import Drain
from holdfast.application.faults.health import Health, Step, Tales
from holdfast.application.faults.refusals import Refusals
from holdfast.application.faults.spare import Spare
from holdfast.application.faults.waiting import Held, Waiting, hold
from holdfast.application.intent import Intent, make
from holdfast.application.kit import Kit
from holdfast.application.loading import load_base
from holdfast.application.storage_faults import is_away, is_fault, no_room
from holdfast.application.telling import Teller
from holdfast.domain.errors import CheckpointError, CheckpointReadError, CheckpointWriteError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.ladder import Ladder, Mode
from holdfast.domain.record import Head

#: Intent of a commit of nothing, by which the store is tried.
PROBE = object()
#: So many checkpoints that were written under another number are remembered.
_FINALS_MAX = 1024


class Degrading:
    """The shelter of a queue: takes in what its store cannot."""

    def __init__(self, kit: Kit, teller: Teller, tales: Tales) -> None:
        """Set up; costs nothing before the first fault."""
        self._kit = kit
        self._teller = teller
        self._tales = tales
        self._climb = kit.faults.climb
        self._ladder = Ladder()
        self._since: datetime | None = None
        self.fault: Exception | None = None
        self._next_try = 0.0
        self._finals: dict[str, CheckpointID] = {}
        self._is_spilled_up = True
        self._is_shut = False
        #: Workflows of which something waited since the mode was full.
        self._concerned: dict[str, None] = {}
        self.waiting = Waiting()
        self.refusals = Refusals()
        self.spare = Spare(kit.spare)
        self._drain = Drain(kit, self.waiting, self.spare, teller, self._written, self._refused)
        self.counters: Counter[str] = Counter()
        self._mutex = threading.Lock()
        self._delayed: list[Ticket] = []
        #: Set unless the first fault is being dealt with.
        self._relieved = threading.Event()
        self._relieved.set()
        #: How many first faults there were.
        self.reliefs = 0
        #: Whether the next try decides between success and going down.
        self.is_last_try = False

    # -- for everybody -----------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """Where the ladder stands."""
        return self._ladder.mode

    @property
    def is_open(self) -> bool:
        """Whether commits go through here."""
        return self._ladder.mode is not Mode.FULL or len(self.waiting) > 0

    @property
    def is_relieving(self) -> bool:
        """Whether the first fault is being dealt with."""
        return not self._relieved.is_set()

    @property
    def pause_seconds(self) -> float | None:
        """How long until the store may be tried again; None if there is no need to."""
        return max(0.0, self._next_try - time.monotonic()) if self.is_open else None

    def base_of(self, workflow_id: str) -> Base | None:
        """Answer what the next commit of a workflow builds on, if those before it wait here."""
        return self.waiting.base_of(workflow_id) if len(self.waiting) else None

    def blind_base(self, problem: CheckpointReadError) -> Base:
        """Answer what to build on where the store cannot be read: what is made on it is made again later.

        Raises:
            CheckpointReadError: what it was given, if that is not the fault of a store that is away.
        """
        if not self._kit.faults.is_degrading or not is_away(problem):
            raise problem
        lineage = Lineage()
        lineage.is_moved = True
        return Base(Head(), lineage)

    def until_relieved(self) -> None:
        """Return when nothing more is tried at once."""
        self._relieved.wait()

    def health(self) -> Health:
        """Tell how things stand."""
        return Health(
            mode=self.mode,
            since=self._since,
            reason=str(self.fault or ""),
            held_commits=len(self.waiting),
            held_bytes=self.waiting.bytes,
            memory_bytes=self._kit.faults.memory_bytes,
            oldest_held_at=self.waiting.oldest,
            emergency_place=self.spare.place,
            counters=dict(self.counters),
        )

    def relieved(self, relief: int) -> list[Ticket]:
        """End the dealing with a first fault; answer the tickets whose callers are to be told now."""
        with self._mutex:
            if relief != self.reliefs:
                # All was well in between, and this is another one: its callers wait for what comes of it.
                return []
            delayed, self._delayed = self._delayed, []
            self._relieved.set()
        self.is_last_try = False
        return delayed

    def shut(self) -> tuple[list[Held], Exception | None, str | None]:
        """Bring what still waits to the second store and take nothing in any more.

        Answers what that is, what kept some of it from being there, and where the second store is.
        """
        self._is_shut = True
        held, problem = self.waiting.all(), None
        for workflow_id in self.waiting.workflows():
            # What is wrong with one of them concerns no other.
            problem = self.spare.spill(self.waiting.of(workflow_id), self.waiting) or problem
            if self.spare.place is None:
                break
        place = self.spare.place
        for one in held:
            self.waiting.remove(one)
        self.spare.close()
        return held, problem, place

    # -- in the leader's thread --------------------------------------------------------------

    def delays(self, ticket: Ticket) -> bool:
        """Keep a ticket whose caller is not to be told before all was tried."""
        with self._mutex:
            if self._relieved.is_set():
                return False
            self._delayed.append(ticket)
            return True

    def take_in(self, tickets: Sequence[Ticket], problem: Exception) -> list[Exception | None] | None:
        """Take in what the store failed to make durable for the first time; None if that is an error."""
        faults = self._kit.faults
        # Without degrading there is one thing to do: making room, where retention may.
        is_relievable = faults.retry.is_retryable(problem)
        if not faults.is_degrading and (self._kit.retention is None or not is_relievable):
            return None
        is_ours = is_fault(problem) and not self._is_shut and not self._kit.store.read_only
        if not is_ours or not any(map(_is_keepable, tickets)):
            return None
        self._note(problem)
        if is_relievable:
            with self._mutex:
                self.reliefs += 1
                self._relieved.clear()
        outcomes = [self._take(ticket, is_tried=True) for ticket in tickets]
        if not is_relievable:
            self._go_down()
        self._tales.wake()
        return outcomes

    def commit(self, tickets: Sequence[Ticket]) -> list[Exception | None]:
        """Write what waits if the store may be tried, and then these; else take these in."""
        is_probe = any(ticket.intent is PROBE for ticket in tickets)
        is_due = not len(self.waiting) or (not self.is_relieving and not self.pause_seconds)
        if is_probe or is_due:
            fault = self._drain.all()
            if fault is None:
                return self._pass(tickets)
            self._failed(fault)
        outcomes = [self._take(ticket) for ticket in tickets]
        self._tales.wake()
        return outcomes

    def _pass(self, tickets: Sequence[Ticket]) -> list[Exception | None]:
        """Commit as usual; nothing waits."""
        outcomes: dict[Ticket, Exception | None] = {}
        try:
            outcomes = self._remade(tickets)
            sound = [ticket for ticket in tickets if ticket not in outcomes and ticket.intent is not PROBE]
            answers = self._kit.store.commit([ticket.commit for ticket in sound]) if sound else []
        except CheckpointError as problem:
            if not is_fault(problem) and not is_away(problem):
                raise
            self._failed(problem)
            return [outcomes.get(ticket) or self._take(ticket, is_tried=True) for ticket in tickets]
        outcomes |= zip(sound, answers, strict=True)
        if self.mode is not Mode.FULL:
            for ticket in sound:
                _mark(ticket, self.mode, durable=True)
        self._step(self._ladder.success(self._climb))
        return [outcomes.get(ticket) for ticket in tickets]

    def _remade(self, tickets: Sequence[Ticket]) -> dict[Ticket, Exception | None]:
        """Make those again that build on what was written elsewhere than was thought; answer what fails."""
        bases: dict[str, Base] = {}
        failed: dict[Ticket, Exception | None] = {}
        for ticket in tickets:
            workflow_id = ticket.commit.workflow_id
            if not ticket.lineage.is_moved:
                continue
            if not _is_keepable(ticket):
                # It repeats what was written meanwhile.
                failed[ticket] = None
                if isinstance(ticket.result, CheckpointID):
                    ticket.result = self._finals.get(ticket.result.uuid, ticket.result)
                continue
            try:
                base = bases.get(workflow_id) or load_base(self._kit, workflow_id).base
                made = make(self._kit, ticket.intent, base, self._teller, ticket.commit.token)
            except CheckpointError as problem:
                if is_away(problem):
                    raise
                failed[ticket] = problem
                continue
            ticket.commit, ticket.result, bases[workflow_id] = made.commit, made.result, made.base
        return failed

    def _failed(self, fault: Exception) -> None:
        """Count a try that failed; go down unless there are others to come at once."""
        self._note(fault)
        if self.is_relieving and not self.is_last_try:
            return
        if self._kit.faults.is_degrading:
            self._go_down()
        else:
            self._fail_all(fault)

    def _note(self, fault: Exception) -> None:
        self.fault = fault
        self.counters["faults"] += 1

    def _go_down(self) -> None:
        """Find the highest step on which something can be written, and stand there."""
        ladder = self._ladder.fault(Mode.EVENT_ONLY)
        has_events = any(not held.is_state for held in self.waiting.all())
        if has_events and ladder.mode is not Mode.EMERGENCY:
            fault = self._drain.events()
            if fault is not None:
                ladder = ladder.fault(Mode.MEMORY_ONLY)
            elif ladder.mode is Mode.MEMORY_ONLY:
                ladder = ladder.events_pass()
        self._step(ladder)
        self._next_try = time.monotonic() + self._ladder.pause_seconds(self._climb)
        for held in self.waiting.all():
            _mark(held.ticket, self.mode, durable=False)

    def _step(self, ladder: Ladder) -> None:
        """Stand on a step, and tell if it is another one."""
        before, self._ladder = self._ladder.mode, ladder
        if ladder.mode is before:
            return
        self._since = self._kit.clock.now()
        self.counters[f"{before}->{ladder.mode}"] += 1
        self._concerned |= dict.fromkeys(self.waiting.workflows())
        is_down = ladder.mode.depth > before.depth
        reason = str(self.fault or "") if is_down else "the store can be written again"
        concerned = tuple(self._concerned)
        self._tales.step(Step(before, ladder.mode, self._since, reason, concerned, self.spare.place))
        if ladder.mode is Mode.FULL and not len(self.waiting):
            self._concerned.clear()
            self.spare.close()

    # -- taking in ---------------------------------------------------------------------------

    def _take(self, ticket: Ticket, *, is_tried: bool = False) -> Exception | None:
        if ticket.intent is PROBE:
            return None
        workflow_id, failure = ticket.commit.workflow_id, ticket.lineage.failure
        if failure is not None:
            return on_top_of(failure, workflow_id)
        if not _is_keepable(ticket) or self._is_shut:
            if not workflow_id or self._is_shut:
                return own_copy(self.fault or CheckpointWriteError("nothing can be made durable"))
            # It repeats the last one, durable or not.
            if self.waiting.last_of(workflow_id) is not None:
                _mark(ticket, self.mode, durable=False)
            return None
        if not self._kit.faults.is_degrading and (self.is_last_try or not self.is_relieving):
            return own_copy(self.fault or CheckpointWriteError("nothing can be made durable"))
        held = hold(ticket, ticket.intent, self._kit.clock.now(), self.waiting.snapshot_of(workflow_id))
        if is_tried:
            # Whether the store has it is found out when it is next asked.
            held.tried = ticket.commit.events[-1], ticket.result
        elif self.mode is Mode.EVENT_ONLY and not held.is_state and self._overtakes(held):
            return None
        return self._keep(held)

    def _overtakes(self, held: Held) -> bool:
        """Try to write an event ahead of the states that wait."""
        fault = self._drain.overtake(held)
        if fault is None:
            _mark(held.ticket, self.mode, durable=True)
            return True
        if is_fault(fault):
            self._note(fault)
            self._step(self._ladder.fault(Mode.MEMORY_ONLY))
        return False

    def _keep(self, held: Held) -> Exception | None:
        self.waiting.add(held)
        ticket = held.ticket
        ticket.is_held = True
        faults = self._kit.faults
        is_over = self.waiting.bytes > faults.memory_bytes or self.mode is Mode.EMERGENCY
        # Without degrading it waits for a moment only, until making room has helped or not.
        if is_over and faults.is_degrading:
            problem = self.spare.spill([held] if self._is_spilled_up else self.waiting.all(), self.waiting)
            self._is_spilled_up = problem is None
            if self.mode is not Mode.EMERGENCY:
                self._step(self._ladder.fault(Mode.EMERGENCY))
            if problem is not None and self.waiting.bytes > faults.memory_bytes:
                self.waiting.remove(held)
                ticket.is_held = False
                ticket.lineage.failure = no_room(problem)
                return own_copy(ticket.lineage.failure)
        else:
            self._is_spilled_up = False
        self.counters["held"] += 1
        _mark(ticket, self.mode, durable=False)
        return None

    def _fail_all(self, fault: Exception) -> None:
        """Give up on what waits: its callers get the error."""
        for held in self.waiting.all():
            self.waiting.remove(held)
            ticket = held.ticket
            ticket.is_held = False
            ticket.error = own_copy(fault)
            ticket.lineage.failure = ticket.lineage.failure or fault

    def _written(self, held: Held, result: CheckpointID | Event) -> None:
        self.counters["written"] += 1
        told, ticket = held.ticket.result, held.ticket
        ticket.result = result
        _mark(ticket, self.mode, durable=True)
        moved = None
        if isinstance(result, CheckpointID) and result != told:
            self._finals[result.uuid] = result
            if len(self._finals) > _FINALS_MAX:
                del self._finals[next(iter(self._finals))]
            if result.sequence != told.sequence:
                self.counters["moved"] += 1
                moved = told.sequence, result.sequence
        if ticket.done and not self.is_relieving:
            self._tales.written(held.workflow_id, moved)

    def _refused(self, held: Held, problem: Exception) -> None:
        """Keep what this store will not take in the second one: its caller counts on it."""
        self.counters["refused"] += 1
        lost = self.spare.spill([held], self.waiting)
        held.ticket.error = own_copy(problem)
        if held.ticket.done and not self.is_relieving:
            self.refusals.add(held.workflow_id, problem, None if lost else self.spare.place)
            self._tales.refused(held.workflow_id, problem, self.spare.place, lost)


def _is_keepable(ticket: Ticket) -> bool:
    return isinstance(ticket.intent, Intent)


def _mark(ticket: Ticket, mode: Mode, *, durable: bool) -> None:
    """Write into a receipt what it is worth."""
    if ticket.result is not None:
        ticket.result = replace(ticket.result, durable=durable, mode=mode)
