"""What callers ask to have recorded, as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, CheckpointType
from holdfast.domain.errors import InvalidStateError
from holdfast.domain.ids import CheckpointID
from holdfast.domain.plain import Plain
from holdfast.domain.state import WorkflowState
from holdfast.domain.value import value

State = WorkflowState | Mapping[str, Any]
CheckpointName = CheckpointID | str


class CheckpointOptions(TypedDict, total=False):
    """What may be said about a checkpoint beside the state; both faces of the service take these."""

    #: The moment it is taken at; by default the completion of the agent or stage.
    type: CheckpointType | str | None
    #: Stage and agent that it is of.
    stage_id: str | None
    agent_id: str | None
    #: What the stage or the agent keeps beside the workflow's state.
    stage_state: Mapping[str, Any] | None
    agent_state: Mapping[str, Any] | None
    #: Who made it; the state's session by default.
    session_id: str | None
    agent_version: str | None
    #: Name of the handler that resumes from here, and how often that may be tried.
    resume_handler: str | None
    max_retries: int
    #: The checkpoint this continues, if not the one before, and those it waits for.
    parent_checkpoint_id: CheckpointName | None
    dependent_checkpoint_ids: Iterable[CheckpointName]
    #: Also record a state that is the same as the last one.
    force: bool
    #: Refuse unless this is the sequence of the last checkpoint that is left; 0: there is none.
    expected_sequence: int | None
    #: Fields of the state given, or dotted paths, of lists that only ever grow: saves comparing them.
    append_only: Iterable[str]
    #: What the event that tells of the checkpoint says beside: found without reading any state.
    note: Mapping[str, Any] | None


_OPTIONS = CheckpointOptions.__optional_keys__
_COUNTS = {"max_retries", "expected_sequence"}
_SEVERAL = {"dependent_checkpoint_ids", "append_only"}


def check_options(options: CheckpointOptions) -> None:
    """Refuse an option that there is not, as Python refuses an argument, and numbers that are none.

    Raises:
        TypeError: it is none.
        InvalidStateError: it is one, and what was given for it is not.
    """
    unknown = options.keys() - _OPTIONS
    if unknown:
        from difflib import get_close_matches

        name = min(unknown)
        near = get_close_matches(name, _OPTIONS, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"create_checkpoint() got an unexpected keyword argument {name!r}{meant}")
    for name in _COUNTS & options.keys():
        count = options.get(name)
        if (count is not None or name == "max_retries") and not (type(count) is int and count >= 0):
            raise InvalidStateError(f"{name} is {count!r}", hint="Use a whole number from 0 on.")
    for name in _SEVERAL & options.keys():
        several = options.get(name)
        if isinstance(several, str) or not isinstance(several, Iterable):
            raise InvalidStateError(f"{name} is {several!r}", hint="Give a list, also of one.")


def check_mapping(name: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer what a caller gave if it is a mapping.

    Raises:
        InvalidStateError: it is none.
    """
    if not isinstance(given, Mapping):
        raise InvalidStateError(f"{name} is a {type(given).__name__}", hint="Give a mapping.")
    return given


@value
class Migrated:
    """Where the state of a migrated checkpoint comes from: version, status, and what led to that."""

    schema_version: str
    #: Last event that the state knows of: what came after it is still to be replayed.
    event_seq: int
    status: str = "active"
    retry_count: int = 0
    #: Particulars of the event that gave it its status, as a plain tree.
    data: Mapping[str, Any] = field(default_factory=dict)


@value
class CreateCheckpoint:
    """Record the state of a workflow."""

    workflow_id: str
    #: Fields of the state; what they hold is the caller's, and read once.
    fields: Mapping[str, Any]
    type: CheckpointType
    phase: int | None = None
    stage_id: str | None = None
    agent_id: str | None = None
    stage_state: Mapping[str, Any] | Plain | None = None
    agent_state: Mapping[str, Any] | Plain | None = None
    session_id: str | None = None
    agent_version: str | None = None
    resume_handler: str | None = None
    max_retries: int = DEFAULT_MAX_RETRIES
    #: UUIDs.
    parent_uuid: str | None = None
    dependent_uuids: tuple[str, ...] = ()
    force: bool = False
    expected_sequence: int | None = None
    append_only: frozenset[str] = frozenset()
    #: Data of the event that tells of it.
    note: Mapping[str, Any] | None = None
    #: Checkpoint that a fork starts from: `wf`, `seq` and `checksum`.
    forked_from: Mapping[str, Any] | None = None
    #: Version of the state's shape; None: that of the program.
    schema_version: str | None = None
    #: What the checkpoint that it replaces was migrated from, and how that one stood.
    migrated: Migrated | None = None


@dataclass(frozen=True, slots=True)
class AppendEvent:
    """Record one fact."""

    workflow_id: str
    type: str
    data: Mapping[str, Any] = field(default_factory=dict)
    agent_id: str | None = None
    step_id: str | None = None
    parent_id: str | None = None
    cp_seq: int | None = None
    cost: Mapping[str, Any] | None = None
