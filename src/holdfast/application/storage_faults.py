"""Which errors are the fault of a store, and which of what it was asked."""

from __future__ import annotations

from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointReadError,
    CheckpointWriteError,
    StateTooLargeError,
    StoreClosedError,
    StoreLockedError,
    UnstorableValueError,
    UnsupportedTypeError,
)

#: What a store refuses however often it is asked.
_REFUSALS = (StateTooLargeError, UnstorableValueError, UnsupportedTypeError)
#: What a store refuses whatever its disk is like.
_NO_FAULTS = (*_REFUSALS, CheckpointConflictError, StoreClosedError)


def is_refusal(problem: object) -> bool:
    """Tell whether an error means that this will never be stored, here and as it is."""
    return isinstance(problem, _REFUSALS)


def is_fault(problem: BaseException | None) -> bool:
    """Tell whether an error means that nothing can be made durable: what is wrong is the store."""
    return isinstance(problem, CheckpointWriteError) and not isinstance(problem, _NO_FAULTS)


def is_away(problem: BaseException) -> bool:
    """Tell whether a store could not be asked at all; what it lacks or what is damaged is another matter."""
    return type(problem) in (CheckpointReadError, StoreLockedError)


def reason_of(problem: BaseException | None) -> str:
    """Say what went wrong, without where and what to do about it; empty if nothing did."""
    return problem.message if isinstance(problem, CheckpointError) else str(problem or "")


def no_room(problem: Exception) -> CheckpointWriteError:
    """Say that nothing at all has room, and what came of the last thing that was tried."""
    error = CheckpointWriteError(
        "neither the store, nor memory, nor the second store has room",
        hint="Free space, raise memory_budget_mb, or set emergency_path to a folder on another disk.",
    )
    error.__cause__ = problem
    return error
