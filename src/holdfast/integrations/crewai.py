"""Under CrewAI: what `@persist` keeps of a flow, and methods that a crash does not repeat.

CrewAI gives a flow that is kicked off again with its id its state back, and then runs every method from the
first one on. What a method had answered is not told to a persistence: a method marked with `once` tells it
here, and answers the same again instead of running.
"""

from __future__ import annotations

import copy
import functools
import inspect
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import workflow_name

with framework("crewai", "1.15", "1.16", extra="crewai"):
    from crewai.flow.async_feedback.types import PendingFeedbackContext
    from crewai.flow.persistence import FlowPersistence
    from pydantic import BaseModel, Field, PrivateAttr, TypeAdapter, ValidationError
    from typing_extensions import TypedDict

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_ROOM = "crewai-flow:"
#: So many flows of one process are remembered; one that was forgotten is read again.
_REMEMBERED_MAX = 4096
#: So many of one context: flows that are kicked off inside of flows.
_NESTED_MAX = 32


@dataclass(slots=True)
class _Standing:
    """How one run of a flow believes that flow to stand."""

    sequence: int = 0
    #: The request for feedback that waits, and the state it was made in.
    pending: list[Any] = field(default_factory=list)
    #: What methods marked with `once` answered, by their names, in the order of their calls.
    answers: dict[str, list[Any]] = field(default_factory=dict)
    #: How often they were called in this run, and how often they answered what was recorded, not yet saved.
    calls: Counter[str] = field(default_factory=Counter)
    told_again: Counter[str] = field(default_factory=Counter)
    mutex: threading.Lock = field(default_factory=threading.Lock)


#: Of the runs that go on in this context, the newest last: two runs of one flow must not pass for one.
_STANDINGS: ContextVar[Mapping[tuple[object, str], _Standing] | None] = ContextVar("standings", default=None)


class HoldfastPersistence(FlowPersistence):
    """Keeps the states of flows in a Holdfast store: `@persist(HoldfastPersistence(URL))`.

    A state is durable when the method that left it is reported as completed. A run that goes on from a state
    which another run has changed since is refused.
    """

    persistence_type: str = Field(default="HoldfastPersistence")
    #: Where the store is, without secrets.
    url: str = ""
    _service: CheckpointService = PrivateAttr()
    _is_owner: bool = PrivateAttr(default=False)
    #: Stands for this persistence where it must not be mistaken for one that is gone.
    _key: object = PrivateAttr(default_factory=object)
    _remembered: dict[str, _Standing] = PrivateAttr(default_factory=dict)
    _mutex: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, store: str | CheckpointService | None = None, /, **fields: Any) -> None:
        """Use a store.

        Args:
            store: URL of a store, which is opened here and closed by `close`, or an open service.
            fields: the same as CrewAI writes it into the definition of a flow: `url`.
        """
        given = fields.pop("url", None) if store is None else store
        service = given if isinstance(given, CheckpointService) else bootstrap.open(given)
        super().__init__(**{**fields, "url": service.recording.url})
        self._service = service
        self._is_owner = service is not given

    def init_db(self) -> None:
        """Do nothing: a store is made when it is opened."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        """Record the state of a flow durably.

        Raises:
            CheckpointConflictError: another run of the same flow was faster.
            UnsupportedTypeError: the state holds what cannot be stored as plain data.
        """
        standing = self._standing(flow_uuid)
        with standing.mutex:
            if standing.told_again[method_name]:
                # It did not run: there is nothing new.
                standing.told_again[method_name] -= 1
                return
            self._record(flow_uuid, standing, _plain(state_data), method_name)

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """Answer the newest state of a flow, every byte of it verified; None if there is none."""
        state = self._read(flow_uuid)
        self._begin(flow_uuid, state)
        return _flow_state(state) if state is not None else None

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Record the state of a flow and what it asks a person, in one commit."""
        standing, plain = self._standing(flow_uuid), _plain(state_data)
        with standing.mutex:
            asked = [{"context": context.to_dict(), "state": plain}]
            self._record(flow_uuid, standing, plain, context.method_name, asked)

    def load_pending_feedback(self, flow_uuid: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """Answer what a flow asks a person, and the state it asked in; None if it asks nothing."""
        state = self._read(flow_uuid)
        if state is None or not state.pending_events:
            return None
        self._begin(flow_uuid, state)
        asked = state.pending_events[0]
        try:
            _ASKED.validate_python(asked)
            return asked["state"], PendingFeedbackContext.from_dict(asked["context"])
        except (ValidationError, ValueError) as problem:
            raise _strange(flow_uuid, f"what it asks cannot be read: {problem}") from problem

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Record that what a flow asked was answered."""
        standing = self._standing(flow_uuid)
        with standing.mutex:
            state = self._read(flow_uuid)
            if state is not None and state.pending_events:
                self._record(flow_uuid, standing, _flow_state(state), pending=[])

    def once(
        self, method: Callable[Concatenate[Any, _Given], _Answer]
    ) -> Callable[Concatenate[Any, _Given], _Answer]:
        """Let a method of a flow answer again what it had answered before a crash, instead of running again.

        Write it below `@start`, `@listen` and `@router`. What the method answers has to be plain data, or of
        the type that the method says it answers. It is recorded together with the state that it left.
        """

        @functools.wraps(method)
        def call(flow: Any, /, *given: _Given.args, **named: _Given.kwargs) -> _Answer:
            answers = _Answers(self._standing(flow.flow_id), method.__name__, _answer_type(method))
            known = answers.next_known()
            told: _Answer = (
                answers.revived(known[0]) if known else answers.noted(method(flow, *given, **named))
            )
            return told

        return call

    def close(self) -> None:
        """Close the store, if it was opened here. Idempotent."""
        if self._is_owner:
            self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, flow_uuid: str) -> WorkflowState | None:
        state = self._service.load_latest(workflow_name(_ROOM, flow_uuid))
        if state is not None and state.metadata.get("flow_uuid") != flow_uuid:
            raise _strange(flow_uuid, "the state belongs to another flow")
        return state

    def _begin(self, flow_uuid: str, state: WorkflowState | None) -> _Standing:
        """Let a run go on from a state that was read."""
        standing = _Standing()
        if state is not None:
            standing = _Standing(_sequence(state), list(state.pending_events), _answers(flow_uuid, state))
        others = list((_STANDINGS.get() or {}).items())[1 - _NESTED_MAX :]
        _STANDINGS.set({**dict(others), (self._key, flow_uuid): standing})
        with self._mutex:
            self._remembered.pop(flow_uuid, None)
            self._remembered[flow_uuid] = standing
            if len(self._remembered) > _REMEMBERED_MAX:
                del self._remembered[next(iter(self._remembered))]
        return standing

    def _standing(self, flow_uuid: str) -> _Standing:
        """Answer how the flow stands for the run that asks: one that read nothing goes on from the newest."""
        own = (_STANDINGS.get() or {}).get((self._key, flow_uuid))
        if own is not None:
            return own
        with self._mutex:
            known = self._remembered.get(flow_uuid)
        return known or self._begin(flow_uuid, self._read(flow_uuid))

    def _record(
        self,
        flow_uuid: str,
        standing: _Standing,
        plain: dict[str, Any],
        method_name: str | None = None,
        pending: list[Any] | None = None,
    ) -> None:
        asked = standing.pending if pending is None else pending
        made = self._service.create_checkpoint(
            workflow_name(_ROOM, flow_uuid),
            _workflow_state(flow_uuid, plain, asked, standing.answers),
            stage_id=method_name,
            expected_sequence=standing.sequence,
        )
        standing.sequence, standing.pending = made.sequence, asked


class _Asked(TypedDict):
    """What waits for a person."""

    context: PendingFeedbackContext
    state: dict[str, Any]


_ASKED = TypeAdapter(_Asked)


def _workflow_state(
    flow_uuid: str, plain: dict[str, Any], asked: list[Any], answers: dict[str, list[Any]]
) -> WorkflowState:
    """Put a flow's state where people look for it: its messages are the workflow's messages."""
    context = dict(plain)
    messages = context.pop("messages") if _is_history(plain.get("messages")) else []
    return WorkflowState(
        messages=messages,
        context=context,
        pending_events=asked,
        outputs=answers or [],
        metadata={"flow_uuid": flow_uuid},
    )


def _flow_state(state: WorkflowState) -> dict[str, Any]:
    return {**state.context, "messages": state.messages} if state.messages else state.context


def _answers(flow_uuid: str, state: WorkflowState) -> dict[str, list[Any]]:
    told = state.outputs or {}
    if not isinstance(told, dict) or not all(isinstance(answers, list) for answers in told.values()):
        raise _strange(flow_uuid, "what its methods answered cannot be read")
    return {name: list(answers) for name, answers in told.items()}


def _is_history(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _plain(state_data: dict[str, Any] | BaseModel) -> dict[str, Any]:
    """Write a state as plain data; models in the form of their own that CrewAI reads back."""
    if not isinstance(state_data, BaseModel | dict):
        raise InvalidStateError(
            f"a {type(state_data).__name__} is no state of a flow", hint="Give a dict or a pydantic model."
        )
    plain: dict[str, Any] = _plain_value(state_data)
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {key: _plain_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_value(item) for item in value]
    # Dates, sets and the like come back as what they are; what is unknown is refused with its place.
    return value


@dataclass(frozen=True, slots=True)
class _Answers:
    """What one method of a flow answered, and answers now."""

    standing: _Standing
    name: str
    #: What the program says the method answers; None: nothing.
    type: TypeAdapter[Any] | None

    def next_known(self) -> list[Any]:
        """Count a call, and answer what the call of that number had answered before, if it had."""
        with self.standing.mutex:
            call = self.standing.calls[self.name]
            self.standing.calls[self.name] += 1
            known = self.standing.answers.get(self.name, [])[call : call + 1]
            self.standing.told_again[self.name] += len(known)
            return known

    def revived(self, plain: Any) -> Any:
        """Read an answer by the type the program says, never by one that was stored."""
        return copy.deepcopy(plain) if self.type is None else self.type.validate_python(plain)

    def noted(self, answer: Any) -> Any:
        """Note an answer, so that it is recorded together with the state that the method left."""
        if inspect.isawaitable(answer):
            return self._noted_later(answer)
        plain = copy.deepcopy(answer) if self.type is None else self.type.dump_python(answer, mode="json")
        with self.standing.mutex:
            self.standing.answers.setdefault(self.name, []).append(plain)
        return answer

    async def _noted_later(self, answer: Awaitable[Any]) -> Any:
        return self.noted(await answer)


def _answer_type(method: Callable[..., Any]) -> TypeAdapter[Any] | None:
    told = inspect.get_annotations(method, eval_str=True)
    return TypeAdapter(told["return"]) if "return" in told else None


def _sequence(state: WorkflowState) -> int:
    """Tell the number of the checkpoint that a state was read from."""
    return int((state.checkpoint_id or "@0").rpartition("@")[2])


def _strange(flow_uuid: str, problem: str) -> CheckpointCorruptError:
    return CheckpointCorruptError(
        problem,
        place=workflow_name(_ROOM, flow_uuid),
        hint="See `holdfast validate`; restore an older checkpoint.",
    )
