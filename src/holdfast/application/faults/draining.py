"""Writing what waited, in order, once the store can be written again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage
from holdfast.application.faults.spare import Spare
from holdfast.application.faults.waiting import Held, Spilled, Waiting
from holdfast.application.intent import Intent, Made, StateIntent, make
from holdfast.application.kit import Kit
from holdfast.application.loading import load_base
from holdfast.application.resolve import newest_kept
from holdfast.application.telling import Teller
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointRecoveryError,
    KeyDestroyedError,
    LeaseHeldError,
    LeaseLostError,
)
from holdfast.domain.event import Event, decode_event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import EventRecord, Head

_CHUNK_COMMITS = 64
_CHUNK_BYTES = 1024 * 1024
#: So often a workflow is begun anew in one round when others keep writing to it.
_RACES_MAX = 5
#: What is wrong with one workflow, however well the store can be written.
_HOPELESS = (CheckpointCorruptError, CheckpointRecoveryError, KeyDestroyedError)

OnWritten = Callable[[Held, CheckpointID | Event], None]
OnRefused = Callable[[Held, Exception], None]


class Drain:
    """Brings what waits to the store. Called in the leader's thread only."""

    def __init__(
        self,
        kit: Kit,
        waiting: Waiting,
        spare: Spare,
        teller: Teller,
        on_written: OnWritten,
        on_refused: OnRefused,
    ) -> None:
        """Set up; `on_written` is told what became durable and as what, `on_refused` what never will here."""
        self._kit = kit
        self._waiting = waiting
        self._spare = spare
        self._teller = teller
        self._on_written = on_written
        self._on_refused = on_refused
        self._heads: dict[str, Head] = {}
        self._races: dict[str, int] = {}

    def all(self) -> Exception | None:
        """Write everything, in order; answer the fault that stopped it, or None if nothing waits any more."""
        self._heads.clear()
        self._races.clear()
        try:
            for workflow_id in self._waiting.workflows():
                self._find_written(workflow_id)
            while chunk := self._waiting.first(_CHUNK_COMMITS, _CHUNK_BYTES):
                ready = self._prepared(chunk)
                self._judge(ready, self._committed(ready) if ready else [])
        except CheckpointError as problem:
            return problem
        return None

    def events(self) -> Exception | None:
        """Write the events ahead of the states; answer the fault that stopped it, if one did."""
        for workflow_id in self._waiting.workflows():
            for held in self._waiting.of(workflow_id):
                if not held.is_state and held.ticket.is_held:
                    fault = self.overtake(held)
                    if isinstance(fault, CheckpointConflictError):
                        break
                    if fault is not None:
                        return fault
        return None

    def overtake(self, held: Held) -> Exception | None:
        """Write one event ahead of the states that wait before it; answer why not, if it cannot be.

        CheckpointConflictError: not this one, or not now; others may.
        """
        try:
            return self._overtake(held, is_again=False)
        except CheckpointError as problem:
            self._heads.pop(held.workflow_id, None)
            return problem

    def _overtake(self, held: Held, *, is_again: bool) -> Exception | None:
        workflow_id = held.workflow_id
        head = self._heads.get(workflow_id)
        if head is None:
            if held in self._find_written(workflow_id):
                return None
            head = self._kit.store.head(workflow_id)
        before = self._before(held)
        if any(not earlier.is_state for earlier in before) or _concerns_later(held, head):
            return CheckpointConflictError("what it is about, or an event before it, waits too")
        made = make(
            self._kit, self._intent(held), Base(head, Lineage()), self._teller, held.ticket.commit.token
        )
        [outcome] = self._committed([(held, made)])
        if outcome is None:
            self._heads[workflow_id] = made.base.head
            self._done_ahead(held, before, head.event_seq, made.result)
            return None
        self._heads.pop(workflow_id, None)
        if isinstance(outcome, CheckpointConflictError) and not is_again:
            held.tried = made.commit.events[-1], made.result
            return self._overtake(held, is_again=True)
        return outcome

    def _committed(self, ready: Sequence[tuple[Held, Made]]) -> list[Exception | None]:
        """Commit; where nobody learns how that ended, remember what was tried."""
        try:
            return self._kit.store.commit([made.commit for _, made in ready])
        except CheckpointError:
            for held, made in ready:
                held.tried = made.commit.events[-1], made.result
            raise

    def _done_ahead(
        self, held: Held, before: Sequence[Held], event_seq: int, result: CheckpointID | Event
    ) -> None:
        """Strike out one that was written ahead of others, which now know of events up to a number only."""
        for earlier in before:
            earlier.as_of = event_seq if earlier.as_of is None else earlier.as_of
        self._waiting.unmake(held.workflow_id)
        self._done(held, result, is_exact=not before)

    def _before(self, held: Held) -> list[Held]:
        """Answer what waits of the same workflow before one that may not be in the line itself."""
        before = []
        for earlier in self._waiting.of(held.workflow_id):
            if earlier is held:
                break
            before.append(earlier)
        return before

    def _prepared(self, chunk: Sequence[Held]) -> list[tuple[Held, Made]]:
        """Make what has to be made again, each on top of the one before."""
        bases: dict[str, Base] = {}
        ready: list[tuple[Held, Made]] = []
        for held in chunk:
            if held.made is None:
                try:
                    self._make(held, bases.get(held.workflow_id))
                except _HOPELESS as problem:
                    # One workflow that is damaged must not keep the others waiting.
                    self._refuse(held, problem)
            if held.made is not None:
                bases[held.workflow_id] = held.made.base
                ready.append((held, held.made))
        return ready

    def _make(self, held: Held, base: Base | None) -> None:
        """Make one again, or refuse it where its caller made it depend on what is no longer so."""
        base = base or load_base(self._kit, held.workflow_id).base
        intent = self._intent(held)
        if self._is_unexpected(intent, base):
            came_first = CheckpointConflictError("another checkpoint came first", place=held.workflow_id)
            self._refuse(held, came_first)
            return
        intent = _placed(intent, held, base)
        held.made = make(self._kit, intent, base, self._teller, held.ticket.commit.token)

    def _is_unexpected(self, intent: Intent, base: Base) -> bool:
        """Tell whether a caller made its checkpoint depend on being the next one, and it no longer is."""
        if not isinstance(intent, StateIntent):
            return False
        asked = intent.subject.command
        if asked.expected_sequence in (None, base.head.sequence):
            return False
        return asked.expected_sequence != newest_kept(self._kit.store, asked.workflow_id, base.head)

    def _intent(self, held: Held) -> Intent:
        if isinstance(held.intent, Spilled):
            return self._spare.load(held.workflow_id, held.intent)
        return held.intent

    def _judge(self, ready: list[tuple[Held, Made]], outcomes: list[Exception | None]) -> None:
        for (held, made), outcome in zip(ready, outcomes, strict=True):
            if held.made is not made:
                # Decided with one before it, of the same workflow.
                continue
            if outcome is None:
                self._done(held, made.result, is_exact=held.is_exact)
            elif isinstance(outcome, LeaseHeldError | LeaseLostError):
                for later in self._waiting.of(held.workflow_id):
                    self._refuse(later, outcome)
            elif isinstance(outcome, CheckpointConflictError):
                # Perhaps with itself: an earlier try may have arrived after it was looked for.
                held.tried = made.commit.events[-1], made.result
                self._conflict(held.workflow_id, outcome)
            else:
                self._refuse(held, outcome)

    def _conflict(self, workflow_id: str, conflict: Exception) -> None:
        """Find out whether it is there already, from a try whose outcome was unknown; else begin anew."""
        if self._find_written(workflow_id):
            return
        self._races[workflow_id] = self._races.get(workflow_id, 0) + 1
        if self._races[workflow_id] > _RACES_MAX:
            raise conflict
        self._waiting.unmake(workflow_id)

    def _find_written(self, workflow_id: str) -> list[Held]:
        """Strike out what the store holds already although nobody was told so; answer that."""
        found: list[Held] = []
        before: list[Held] = []
        for held in self._waiting.of(workflow_id):
            if held.tried is not None and self._is_there(workflow_id, held.tried[0]):
                event, result = held.tried
                found.append(held)
                if before or not held.is_exact:
                    self._done_ahead(held, before, event.seq - 1, result)
                    held.ticket.lineage.is_moved = True
                else:
                    self._done(held, result, is_exact=True)
            else:
                held.tried = None
                before.append(held)
        return found

    def _is_there(self, workflow_id: str, event: EventRecord) -> bool:
        line = next(iter(self._kit.store.events(workflow_id, after=event.seq - 1)), None)
        return line is not None and decode_event(line, None).hash == event.hash

    def _done(self, held: Held, result: CheckpointID | Event, *, is_exact: bool) -> None:
        if not is_exact:
            held.ticket.lineage.is_moved = True
        self._waiting.remove(held)
        held.made = None
        held.ticket.is_held = False
        self._on_written(held, result)

    def _refuse(self, held: Held, problem: Exception) -> None:
        self._on_refused(held, problem)
        self._waiting.remove(held)
        held.made = None
        self._waiting.unmake(held.workflow_id)
        held.ticket.lineage.is_moved = True
        held.ticket.is_held = False


def _placed(intent: Intent, held: Held, base: Base) -> Intent:
    """Say which events a state knows of, where others have overtaken it."""
    if not isinstance(intent, StateIntent) or held.as_of is None or held.as_of == base.head.event_seq:
        return intent
    return replace(intent, subject=replace(intent.subject, as_of=held.as_of))


def _concerns_later(held: Held, head: Head) -> bool:
    """Tell whether an event is about a checkpoint that is not stored yet."""
    commit, result = held.ticket.commit, held.ticket.result
    about = [transition.sequence for transition in commit.transitions]
    about += [result.cp_seq] if result.cp_seq is not None else []
    return any(sequence > head.sequence for sequence in about)
