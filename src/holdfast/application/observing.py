"""Measuring what this process does, for whoever counts and traces it. Where nobody does, it is not used."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from holdfast.application.commands import CreateCheckpoint
from holdfast.application.commit_queue import CommitGroup, Ticket
from holdfast.application.kit import Kit
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointQuarantinedError,
    LegalHoldError,
)
from holdfast.domain.record import Commit
from holdfast.domain.recovery import RecoveryResult
from holdfast.domain.telemetry import (
    Attributes,
    FoundBy,
    Recovered,
    RecoveryOutcome,
    Saved,
    SaveOutcome,
    Span,
)

SAVE = "holdfast.save"
RESTORE = "holdfast.restore"
RECOVER = "holdfast.recover"
VERIFY = "holdfast.verify"

WORKFLOW = "holdfast.workflow_id"
CHECKPOINT = "holdfast.checkpoint"
OUTCOME = "holdfast.outcome"

_REFUSALS = (CheckpointConflictError, CheckpointNotFoundError, LegalHoldError)


class NoSpan:
    """Stands in for a span where nobody traces."""

    trace_id = ""
    traceparent = ""

    def note(self, attributes: Attributes) -> None:
        """Leave it."""

    def link(self, traceparent: str) -> None:
        """Leave it."""

    def end(self, problem: BaseException | None = None) -> None:
        """Leave it."""


NO_SPAN = NoSpan()


def spanned(kit: Kit, name: str, attributes: Attributes) -> AbstractContextManager[Span]:
    """Have a span around a block, where somebody traces."""
    return nullcontext(NO_SPAN) if kit.tracing is None else kit.tracing.within(name, attributes)


class CommitWatch:
    """Times the commits of a queue, and tells each checkpoint among them what became of it.

    One thread leads at a time, and tells what it decided before the next one leads.
    """

    def __init__(self, commit_group: CommitGroup) -> None:
        self._commit_group = commit_group
        self._awaited: dict[Ticket, Saving] = {}
        self._began = self._ended = 0.0

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Commit a group."""
        self._began = self._ended = time.perf_counter()
        try:
            return self._commit_group(commits)
        finally:
            self._ended = time.perf_counter()

    def expect(self, ticket: Ticket, saving: Saving) -> None:
        """Remember whom to tell of a commit that is about to be queued."""
        self._awaited[ticket] = saving

    def forget(self, ticket: Ticket) -> None:
        """Tell nobody of a commit: it was not queued."""
        self._awaited.pop(ticket, None)

    def decided(self, group: Sequence[Ticket]) -> None:
        """Tell of a group whose outcome is known."""
        for ticket in group:
            saving = self._awaited.pop(ticket, None)
            if saving is not None:
                saving.decided(ticket, self._began, self._ended)


class Saving:
    """One checkpoint on its way, from its being asked for to its being decided."""

    def __init__(self, kit: Kit, command: CreateCheckpoint) -> None:
        self._kit = kit
        self._span: Span = NO_SPAN
        if kit.tracing is not None:
            about = {WORKFLOW: command.workflow_id, "holdfast.type": str(command.type)}
            self._span = kit.tracing.begin(SAVE, about)
        self._began = self._encoded = time.perf_counter()

    def encoded(self) -> None:
        """Note that it is ready to be written."""
        self._encoded = time.perf_counter()

    def failed(self, problem: BaseException) -> None:
        """Tell that it came to nothing before it could be queued."""
        is_conflict = isinstance(problem, CheckpointConflictError)
        outcome = SaveOutcome.CONFLICT if is_conflict else SaveOutcome.FAILED
        self._tell(Saved(outcome, time.perf_counter() - self._began, trace_id=self._span.trace_id), problem)

    def decided(self, ticket: Ticket, began: float, ended: float) -> None:
        """Tell what became of it, and how long the commit took that it was part of."""
        commit, is_made = ticket.commit, ticket.error is None and ticket.commit.record is not None
        # What was written by whoever looks after faults, or not at all, has no times of its own.
        is_timed = began >= self._encoded and ticket.error is None and not ticket.is_held
        saved = Saved(
            _outcome(ticket),
            self._encoded - self._began,
            queue_seconds=began - self._encoded if is_timed else None,
            write_seconds=ended - began if is_timed else None,
            is_whole=commit.keyframe is not None,
            raw_bytes=commit.record.entry.state_bytes if commit.record and is_made else 0,
            stored_bytes=_stored_bytes(commit) if is_made else 0,
            made_at=ticket.result.timestamp.timestamp() if is_made else None,
            trace_id=self._span.trace_id,
        )
        if is_made:
            self._span.note({CHECKPOINT: str(ticket.result)})
        self._tell(saved, ticket.error)

    def _tell(self, saved: Saved, problem: BaseException | None) -> None:
        self._span.note({OUTCOME: str(saved.outcome)})
        self._span.end(problem)
        if self._kit.observer is not None:
            self._kit.observer.saved(saved)


def _outcome(ticket: Ticket) -> SaveOutcome:
    if isinstance(ticket.error, CheckpointConflictError):
        return SaveOutcome.CONFLICT
    if ticket.error is not None:
        return SaveOutcome.FAILED
    if ticket.is_held:
        return SaveOutcome.HELD
    return SaveOutcome.OK if ticket.commit.record is not None else SaveOutcome.UNCHANGED


def _stored_bytes(commit: Commit) -> int:
    pieces = [*commit.blobs.values()]
    if commit.record is not None:
        pieces.append(commit.record.data)
    if commit.keyframe is not None:
        pieces.append(commit.keyframe.data)
    return sum(map(len, pieces))


class Recovering:
    """One recovery while it goes on."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._began = time.perf_counter()
        self.told = Recovered(RecoveryOutcome.FAILED, 0.0)

    def ended(self, result: RecoveryResult) -> RecoveryResult:
        """Take down how it ended."""
        self._span.note({CHECKPOINT: str(result.checkpoint_used), "holdfast.events": result.events_replayed})
        lost = len(result.passed_over) + result.events_lost
        self._tell(_recovery_outcome(result), lost, len(result.quarantined))
        return result

    def failed(self, problem: Exception) -> None:
        """Take down that it came to nothing."""
        is_refused = isinstance(problem, _REFUSALS)
        self._tell(RecoveryOutcome.REFUSED if is_refused else RecoveryOutcome.FAILED)

    def _tell(self, outcome: RecoveryOutcome, lost: int = 0, quarantined: int = 0) -> None:
        seconds = time.perf_counter() - self._began
        self.told = Recovered(outcome, seconds, lost, quarantined, self._span.trace_id)
        self._span.note({OUTCOME: str(outcome), "holdfast.lost_steps": lost})


def _recovery_outcome(result: RecoveryResult) -> RecoveryOutcome:
    if not result.success:
        return RecoveryOutcome.REFUSED if result.validation_errors else RecoveryOutcome.FAILED
    return RecoveryOutcome.FALLBACK if result.passed_over else RecoveryOutcome.OK


@contextmanager
def recovering(kit: Kit, workflow_id: str, mode: Any) -> Iterator[Recovering]:
    """Watch a recovery, and tell how it ended."""
    with spanned(kit, RECOVER, {WORKFLOW: workflow_id, "holdfast.mode": str(mode)}) as span:
        watched = Recovering(span)
        try:
            yield watched
        except Exception as problem:
            watched.failed(problem)
            raise
        finally:
            found_invalid(kit, FoundBy.RECOVERY, is_so=watched.told.quarantined > 0)
            if kit.observer is not None:
                kit.observer.recovered(watched.told)


@contextmanager
def restoring(kit: Kit, name: object) -> Iterator[None]:
    """Watch a state being read back, and tell where it is not what was committed."""
    with spanned(kit, RESTORE, {CHECKPOINT: str(name)}):
        try:
            yield
        except CheckpointCorruptError as problem:
            # What is in quarantine was counted when it came there.
            found_invalid(kit, FoundBy.RESTORE, is_so=not isinstance(problem, CheckpointQuarantinedError))
            raise


def found_invalid(kit: Kit, found_by: FoundBy, *, is_so: bool = True) -> None:
    """Tell that stored bytes are not what was committed, if they are not."""
    if is_so and kit.observer is not None:
        kit.observer.invalid(found_by)
