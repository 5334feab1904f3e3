"""Recovery told as values: how it is asked for, what it did, and what it could not do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.value import value

if TYPE_CHECKING:
    from holdfast.domain.checkpoint import Checkpoint
    from holdfast.domain.ids import CheckpointID
    from holdfast.domain.replay import SkippedEvent
    from holdfast.domain.state import WorkflowState


class RecoveryMode(StrEnum):
    """Where a recovery starts from."""

    #: The oldest checkpoint that is kept, and every change and event since.
    FULL = "full"
    #: The newest checkpoint that verifies, and the events since.
    LATEST = "latest"
    #: One checkpoint, as it was: nothing later is replayed.
    POINT_IN_TIME = "point_in_time"

    @classmethod
    def checked(cls, mode: RecoveryMode | str, target_sequence: int | None) -> RecoveryMode:
        """Answer the mode that is meant, if it goes together with the target.

        Raises:
            InvalidStateError: it is none, or a target is missing or one too many.
        """
        try:
            chosen = cls(mode)
        except ValueError:
            raise InvalidStateError(
                f"{mode!r} is no mode of recovery", hint=f"Use one of {', '.join(cls)}."
            ) from None
        if (chosen is cls.POINT_IN_TIME) != (target_sequence is not None):
            raise InvalidStateError(
                f"{chosen} and the target {target_sequence} do not go together",
                hint="Name a target_sequence with point_in_time, and only with that.",
            )
        return chosen


class OnNoValid(StrEnum):
    """What to do where not one checkpoint verifies."""

    ERROR = "error"
    #: Start over, from whatever the events alone give, and say so.
    FRESH = "fresh"


@value
class RecoverySettings:
    """How recovery behaves unless it is told otherwise.

    Attributes:
        auto: whether workflows that crashed are recovered when the store is opened.
        attempts_max: how often the work of one checkpoint may be resumed; a checkpoint's own limit wins.
        timeout_seconds: how long a recovery may take, and how long its lease lives.
        is_fallback_allowed: whether an older checkpoint may stand in for one that does not verify.
        on_no_valid: what to do where none verifies.
        stale_seconds: a workflow that was quiet for so long and has no living owner has crashed.
    """

    auto: bool = False
    attempts_max: int = 3
    timeout_seconds: float = 300.0
    is_fallback_allowed: bool = True
    on_no_valid: OnNoValid = OnNoValid.ERROR
    stale_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Timing:
    """How long one step took."""

    step: str
    milliseconds: float


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What a recovery did, and what it could not do.

    Attributes:
        success: whether there is a state to go on from, and its handler, if one was asked for, ended well.
        state: where to go on from.
        checkpoint_used: what it was restored from; None after a fresh start.
        events_replayed: how many events after that were folded onto it.
        warnings: what is different from an undisturbed run, each with what to do about it.
        skipped: events that could not be replayed.
        quarantined: names of what was set aside as evidence.
        passed_over: sequences of newer checkpoints that could not be used.
        steps: how long each step took.
        handler: name of the handler that resumed the work; None where none was called.
        resumed_workflow_id: what the handler answered.
        recovered_checkpoint: the checkpoint as it stands after its handler ran.
        validation_errors: why the handler was not called.
        checkpoint_made: what the recovered state was recorded as, where the newest checkpoint was no use.
        events_lost: how many events after the checkpoint could not be read.
    """

    success: bool
    state: WorkflowState | None = None
    checkpoint_used: CheckpointID | None = None
    events_replayed: int = 0
    recovery_time_ms: float = 0.0
    warnings: tuple[str, ...] = ()
    workflow_id: str = ""
    mode: RecoveryMode = RecoveryMode.LATEST
    skipped: tuple[SkippedEvent, ...] = ()
    quarantined: tuple[str, ...] = ()
    passed_over: tuple[int, ...] = ()
    steps: tuple[Timing, ...] = ()
    handler: str | None = None
    resumed_workflow_id: str = ""
    recovered_checkpoint: Checkpoint | None = None
    validation_errors: tuple[str, ...] = ()
    checkpoint_made: CheckpointID | None = None
    events_lost: int = 0

    def __bool__(self) -> bool:
        return self.success
