"""A checkpoint: what it is of, how it stands, and which changes of status are legal."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Entry
from holdfast.domain.time import parse_timestamp

SCHEMA_VERSION = "1.0.0"
DEFAULT_MAX_RETRIES = 3
#: Type of the events that tell of a change of status.
STATUS_EVENT = "CHECKPOINT_STATUS"

_Known = TypeVar("_Known", bound=StrEnum)


class CheckpointType(StrEnum):
    """The moment in a workflow that a checkpoint was taken at."""

    WORKFLOW_START = "workflow_start"
    STAGE_START = "stage_start"
    STAGE_COMPLETE = "stage_complete"
    AGENT_START = "agent_start"
    AGENT_COMPLETE = "agent_complete"
    SYNC_BARRIER = "sync_barrier"
    ERROR_STATE = "error_state"
    WORKFLOW_COMPLETE = "workflow_complete"


class CheckpointStatus(StrEnum):
    """How the work that a checkpoint stands for is going."""

    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"
    RECOVERING = "recovering"


class Scope(StrEnum):
    """What a checkpoint is of."""

    WORKFLOW = "workflow"
    STAGE = "stage"
    AGENT = "agent"

    @classmethod
    def of(cls, stage_id: str | None, agent_id: str | None) -> Scope:
        """Name the narrowest scope that is given."""
        if agent_id is not None:
            return cls.AGENT
        return cls.STAGE if stage_id is not None else cls.WORKFLOW


def usual_type(agent_id: str | None) -> CheckpointType:
    """Name the type of a checkpoint of which nothing else is said."""
    return CheckpointType.STAGE_COMPLETE if agent_id is None else CheckpointType.AGENT_COMPLETE


LEGAL_TRANSITIONS: Mapping[CheckpointStatus, frozenset[CheckpointStatus]] = {
    CheckpointStatus.ACTIVE: frozenset(
        {CheckpointStatus.COMPLETED, CheckpointStatus.FAILED, CheckpointStatus.RECOVERING}
    ),
    CheckpointStatus.FAILED: frozenset({CheckpointStatus.RECOVERING}),
    CheckpointStatus.RECOVERING: frozenset({CheckpointStatus.COMPLETED, CheckpointStatus.FAILED}),
    CheckpointStatus.COMPLETED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint without its workflow state; a change of status is a new value, never a mutation."""

    id: CheckpointID
    type: CheckpointType
    created_at: datetime
    updated_at: datetime
    status: CheckpointStatus = CheckpointStatus.ACTIVE
    stage_state: Mapping[str, Any] = field(default_factory=dict)
    agent_state: Mapping[str, Any] = field(default_factory=dict)
    #: UUIDs of the checkpoint this one continues and of those it waits for.
    parent_checkpoint_id: str | None = None
    dependent_checkpoint_ids: tuple[str, ...] = ()
    resume_handler: str | None = None
    retry_count: int = 0
    max_retries: int = DEFAULT_MAX_RETRIES
    error_message: str | None = None
    error_stacktrace: str | None = None
    schema_version: str = SCHEMA_VERSION
    session_id: str | None = None
    agent_version: str | None = None

    @property
    def scope(self) -> Scope:
        """Whether this is a checkpoint of the workflow, of a stage or of an agent."""
        return Scope.of(self.id.stage_id, self.id.agent_id)

    def can_retry(self) -> bool:
        """Tell whether the work may be tried again: not finished, nobody recovering it, retries left."""
        open_to_retry = self.status in (CheckpointStatus.ACTIVE, CheckpointStatus.FAILED)
        return open_to_retry and self.retry_count < self.max_retries

    def mark_recovering(self, at: datetime) -> Checkpoint:
        """Start a recovery; the error that led here stays readable meanwhile."""
        self._check_move(CheckpointStatus.RECOVERING)
        return replace(self, status=CheckpointStatus.RECOVERING, updated_at=at)

    def mark_completed(self, at: datetime) -> Checkpoint:
        """Finish the work; an earlier error is settled by this and remains in the events only."""
        self._check_move(CheckpointStatus.COMPLETED)
        return replace(
            self,
            status=CheckpointStatus.COMPLETED,
            updated_at=at,
            error_message=None,
            error_stacktrace=None,
        )

    def mark_failed(self, error: BaseException | str, at: datetime) -> Checkpoint:
        """Record a failure with its message and stack trace; one during a recovery uses up a retry."""
        self._check_move(CheckpointStatus.FAILED)
        message, stacktrace = _told(error)
        return replace(
            self,
            status=CheckpointStatus.FAILED,
            updated_at=at,
            retry_count=self.retry_count + (self.status is CheckpointStatus.RECOVERING),
            error_message=message,
            error_stacktrace=stacktrace,
        )

    def _check_move(self, target: CheckpointStatus) -> None:
        check_transition(self.status, target, place=str(self.id))


@dataclass(frozen=True, slots=True)
class CheckpointMeta:
    """What a listing tells about a checkpoint. `size_bytes` is the whole state, packed."""

    id: CheckpointID
    size_bytes: int
    schema_version: str
    agent_id: str | None
    created_at: datetime
    type: CheckpointType
    status: CheckpointStatus
    scope: Scope
    stage_id: str | None = None
    session_id: str | None = None
    phase: int | None = None
    retry_count: int = 0
    pinned: bool = False
    pruned: bool = False
    label: str | None = None

    @classmethod
    def from_entry(cls, workflow_id: str, entry: Entry) -> CheckpointMeta:
        """Read a store's listing entry. Raises CheckpointCorruptError for a type or status unknown here."""
        checkpoint_id = _id_of(workflow_id, entry)
        place = str(checkpoint_id)
        return cls(
            id=checkpoint_id,
            size_bytes=entry.state_bytes,
            schema_version=entry.schema,
            agent_id=entry.agent,
            created_at=checkpoint_id.timestamp,
            type=_known(CheckpointType, entry.type, place),
            status=_known(CheckpointStatus, entry.status, place),
            scope=Scope.of(entry.stage, entry.agent),
            stage_id=entry.stage,
            session_id=entry.session,
            phase=entry.phase,
            retry_count=entry.retry_count,
            pinned=entry.pinned,
            pruned=entry.pruned,
            label=entry.label,
        )


def has_ended(last: Entry) -> bool:
    """Tell by its last checkpoint whether a workflow ended: then there is nothing to go on with."""
    return last.type == CheckpointType.WORKFLOW_COMPLETE


def check_transition(current: CheckpointStatus, target: CheckpointStatus, *, place: str = "") -> None:
    """Raise InvalidStateError unless a checkpoint may go from one status to the other."""
    legal = LEGAL_TRANSITIONS[current]
    if target in legal:
        return
    choices = " or ".join(sorted(legal)) or "nothing else"
    raise InvalidStateError(
        f"a checkpoint that is {current} cannot become {target}",
        place=place,
        hint=f"From {current} it can become {choices}.",
    )


def _told(error: BaseException | str) -> tuple[str, str | None]:
    """Answer message and stack trace; the traceback module survives exceptions whose str() raises."""
    if isinstance(error, str):
        return error, None
    told = traceback.TracebackException.from_exception(error)
    return str(told) or type(error).__name__, "".join(told.format())


def _id_of(workflow_id: str, entry: Entry) -> CheckpointID:
    return CheckpointID(
        workflow_id=workflow_id,
        sequence=entry.sequence,
        timestamp=parse_timestamp(entry.timestamp),
        checksum=entry.checksum,
        uuid=entry.uuid,
        stage_id=entry.stage,
        agent_id=entry.agent,
    )


def _known(kind: type[_Known], text: str, place: str) -> _Known:
    try:
        return kind(text)
    except ValueError:
        raise CheckpointCorruptError(
            f"{text!r} is no {kind.__name__}",
            place=place,
            hint="A newer Holdfast may have written it; upgrade, or run `holdfast doctor`.",
        ) from None
