"""The state of a workflow: one shape for everything its callers carry."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import compress
from operator import attrgetter, ne
from typing import Any

from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError
from holdfast.domain.time import parse_timestamp, timestamp_text


@dataclass(slots=True)
class WorkflowState:
    """What a workflow needs to go on. Change it freely: a checkpoint is a snapshot.

    Attributes:
        checkpoint_id: the checkpoint this was restored from; never stored.
        phase: the stage of the plan the workflow is in; `layer_index` is another word for it.
        confidence: one number, or one per subject.
        extra: fields this version does not know; they survive a round trip.
    """

    workflow_id: str = ""
    session_id: str = ""
    checkpoint_id: str | None = None
    status: str = "in_progress"
    resumable: bool = True
    started_at: datetime | None = None
    last_activity: datetime | None = None
    current_step: int = 0
    total_steps: int = 0
    phase: int | None = None
    dag_structure: dict[str, Any] = field(default_factory=dict)
    execution_config: dict[str, Any] = field(default_factory=dict)
    agent_states: dict[str, Any] = field(default_factory=dict)
    stage_states: dict[str, Any] = field(default_factory=dict)
    tasks: list[Any] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    decisions: list[Any] = field(default_factory=list)
    outputs: Any = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    confidence: dict[str, Any] | float | None = None
    pending_events: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    context_summary: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def listed_phase(self) -> int | None:
        """The phase as listings and names of checkpoints have it.

        Raises:
            InvalidStateError: it is no whole number, or one that no store can list.
        """
        phase = self.phase
        if phase is None:
            return None
        is_number = isinstance(phase, int) and not isinstance(phase, bool)
        if is_number and abs(phase) < 1 << 63:
            return int(phase)
        raise InvalidStateError(
            "the phase is too large" if is_number else f"the phase is {reprlib.repr(phase)}",
            place="phase",
            hint="Use a whole number below 2**63; a name belongs into stage_id.",
        )

    @property
    def layer_index(self) -> int | None:
        """The phase, by its other name."""
        return self.phase

    def to_fields(self) -> dict[str, Any]:
        """Answer the fields to store, in a fixed order, nested values uncopied.

        Fields that hold their default are left out; the unknown ones come last.

        Raises:
            InvalidStateError: if a time is no datetime with a time zone, or an unknown field has the
                name of a known one.
        """
        stored: dict[str, Any] = dict(zip(_ALWAYS, _always_values(self), strict=True))
        for name, moment in zip(_TIMES, _time_values(self), strict=True):
            if moment is not None:
                stored[name] = _time_text(name, moment)
        # The sparse fields that do not hold their default, found in C, for every checkpoint asks.
        values = _sparse_values(self)
        # By exact type: an empty OrderedDict or a 1 for True is a value of its own.
        is_unusual = map(ne, zip(map(type, values), values, strict=True), _DEFAULTS)
        stored.update(compress(zip(_SPARSE, values, strict=True), is_unusual))
        if self.extra:
            _check_extra(self.extra)
            stored.update(self.extra)
        return stored

    @classmethod
    def from_fields(cls, stored: Mapping[str, Any]) -> WorkflowState:
        """Read stored fields; keys that are no fields go to `extra`, nested values are not copied.

        Raises:
            InvalidStateError: if a time cannot be read, or a key is not text or is `extra`.
        """
        known = {name: stored[name] for name in _FIELDS if name in stored and name != "extra"}
        for name in _TIMES:
            if known.get(name) is not None:
                known[name] = _parsed_time(name, known[name])
        unknown = {key: value for key, value in stored.items() if key not in known}
        _check_extra(unknown)
        return cls(**known, extra=unknown)


def as_state(workflow_id: str, value: WorkflowState | Mapping[str, Any]) -> WorkflowState:
    """Take a state as it is, or a plain mapping as the context of a new one.

    Raises:
        InvalidStateError: if the state belongs to another workflow or is of a subclass, or the value
            is neither.
    """
    if isinstance(value, WorkflowState):
        return _owned(workflow_id, value)
    if isinstance(value, Mapping):
        context = value if isinstance(value, dict) else dict(value)
        return WorkflowState(workflow_id=workflow_id, context=context)
    raise InvalidStateError(
        f"a {type(value).__name__} is not a state", hint="Give a WorkflowState or a mapping."
    )


def _owned(workflow_id: str, state: WorkflowState) -> WorkflowState:
    if type(state) is not WorkflowState:
        raise InvalidStateError(
            f"{type(state).__name__} is a subclass of WorkflowState, its own fields would be lost",
            hint="Use WorkflowState and put them into `extra` or `context`.",
        )
    if state.workflow_id == workflow_id:
        return state
    if not state.workflow_id:
        # A shallow copy: the caller's object is the caller's.
        return replace(state, workflow_id=workflow_id)
    raise InvalidStateError(
        f"the state belongs to workflow {state.workflow_id!r}, not to {workflow_id!r}",
        hint="Leave state.workflow_id empty, or fork the workflow.",
    )


def _time_text(name: str, moment: datetime) -> str:
    try:
        return timestamp_text(moment)
    except InvalidStateError as problem:
        raise InvalidStateError(problem.message, place=name, hint=problem.hint) from None


def _parsed_time(name: str, text: object) -> datetime:
    if isinstance(text, datetime):
        return text
    try:
        return parse_timestamp(str(text))
    except CheckpointCorruptError as problem:
        raise InvalidStateError(problem.message, place=name, hint=problem.hint) from None


def _check_extra(extra: Mapping[str, Any]) -> None:
    for key in extra:
        if not isinstance(key, str):
            raise InvalidStateError(
                f"a field's name is a {type(key).__name__}", place=f"extra[{key!r}]", hint="Use a string."
            )
        if key in _FIELDS:
            raise InvalidStateError(
                "an unknown field has the name of a known one", place=f"extra[{key!r}]", hint="Rename it."
            )


_FIELDS = tuple(field.name for field in fields(WorkflowState))
_ALWAYS = ("workflow_id", "session_id", "status", "current_step", "total_steps")
_TIMES = ("started_at", "last_activity")
_always_values, _time_values = attrgetter(*_ALWAYS), attrgetter(*_TIMES)
_BLANK = WorkflowState()
#: Every other stored field; the type of its default and that stand in the same place. The last is told only
#: at the end of a workflow: among the first it would move all others, and each of them would change.
_SPARSE = tuple(
    name
    for name in (*(name for name in _FIELDS if name != "resumable"), "resumable")
    if name not in (*_ALWAYS, *_TIMES, "checkpoint_id", "extra")
)
_sparse_values = attrgetter(*_SPARSE)
_DEFAULTS = tuple((type(default), default) for default in _sparse_values(_BLANK))
