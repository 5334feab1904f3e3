"""Whether the work of a checkpoint can be resumed: its status, its retries, its parents and its handler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf

from holdfast.application.handlers import ResumeHandler
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.reading import Reader
from holdfast.application.recovery.ancestry import Ancestry, described
from holdfast.application.recovery.stopwatch import Stopwatch
from holdfast.application.resolve import Found, living
from holdfast.domain.checkpoint import Checkpoint, CheckpointMeta, CheckpointStatus, has_ended
from holdfast.domain.errors import CheckpointCorruptError, CheckpointRecoveryError, HandlerNotFoundError
from holdfast.domain.state import WorkflowState

#: The name of a handler that was registered, or the handler itself.
Handler = str | ResumeHandler


@dataclass(slots=True)
class Attempt:
    """One try to resume work, and what there is to say about it.

    Attributes:
        checkpoint: the checkpoint as it stands; None until it was examined.
        attempts_max: how often the work may be resumed.
        handler: name of what resumes it.
        function: the handler itself; None where there is none.
        problems: why it should not be resumed.
    """

    found: Found
    state: WorkflowState
    watch: Stopwatch
    warnings: list[str] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    attempts_max: int = 0
    handler: str | None = None
    function: ResumeHandler | None = None
    problems: list[str] = field(default_factory=list)


def examine(kit: Kit, reader: Reader, attempt: Attempt, handler: Handler | None) -> None:
    """Look at everything that has to be right before work is resumed; what is not becomes a problem."""
    attempt.checkpoint, limit = _described(kit, reader, attempt)
    attempt.attempts_max = kit.recovery.attempts_max if limit is None else limit
    attempt.problems += _status_problems(kit, attempt)
    attempt.problems += _chain_problems(kit, reader, attempt.found)
    _choose(kit, attempt, handler)


def problems_of(
    kit: Kit, reader: Reader, found: Found, state: WorkflowState, handler: str | None
) -> list[str]:
    """Tell why the work of a checkpoint would not be resumed; nothing is changed."""
    entry = found.entry
    if entry.status == CheckpointStatus.RECOVERING:
        # A recovery that nobody finished counts as failed once somebody resumes the work.
        entry = replace(entry, retry_count=entry.retry_count + 1)
    attempt = Attempt(Found(found.workflow_id, entry), state, Stopwatch(inf))
    examine(kit, reader, attempt, handler)
    return attempt.problems


def _described(kit: Kit, reader: Reader, attempt: Attempt) -> tuple[Checkpoint, int | None]:
    """Describe the checkpoint, and tell its own limit of retries if it has one."""
    found = attempt.found
    try:
        fields = record_fields(kit.store, found.workflow_id, found.entry, kit.vault)
        return described(kit, reader, found), fields.get("max_retries")
    except CheckpointCorruptError as problem:
        attempt.warnings.append(
            f"the record of {found} is damaged ({problem.message}): its handler, its limit of retries and "
            "the states of its stage and agent are not known"
        )
    meta = CheckpointMeta.from_entry(found.workflow_id, found.entry)
    return Checkpoint(
        meta.id, meta.type, meta.created_at, meta.created_at, meta.status, retry_count=meta.retry_count
    ), None


def _status_problems(kit: Kit, attempt: Attempt) -> Iterator[str]:
    found = attempt.found
    newest = next(living(kit.store, found.workflow_id), found.entry)
    is_newest = newest.sequence == found.entry.sequence
    if has_ended(newest):
        yield (
            f"the workflow ended with checkpoint {newest.sequence}: fork it, or restore a point in time, "
            "to go on from an earlier one"
        )
    elif is_newest and not attempt.state.resumable:
        yield f"the state of {found} says that it cannot be resumed"
    if found.entry.retry_count >= attempt.attempts_max:
        yield (
            f"{found} was tried {found.entry.retry_count} times, {attempt.attempts_max} are allowed: find "
            "out why it fails, then skip the validation or recover from another checkpoint"
        )
    if not is_newest:
        attempt.warnings.append(
            f"{found} is not the last checkpoint ({newest.sequence}): work since then is done again"
        )


def _chain_problems(kit: Kit, reader: Reader, found: Found) -> Iterator[str]:
    try:
        Ancestry(kit, reader, found).links()
    except CheckpointRecoveryError as problem:
        yield str(problem)


def _choose(kit: Kit, attempt: Attempt, handler: Handler | None) -> None:
    """Find the handler that was asked for, else the one that the checkpoint names."""
    if callable(handler):
        attempt.handler, attempt.function = getattr(handler, "__qualname__", type(handler).__name__), handler
        return
    attempt.handler = handler or (attempt.checkpoint.resume_handler if attempt.checkpoint else None)
    if attempt.handler is None:
        attempt.problems.append(f"{attempt.found} names no handler that could resume the work")
        return
    try:
        attempt.function = kit.app.handlers.get(attempt.handler)
    except HandlerNotFoundError as problem:
        attempt.problems.append(str(problem))
