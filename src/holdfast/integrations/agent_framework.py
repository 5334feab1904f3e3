"""Microsoft Agent Framework: checkpoints of its workflows, kept by Holdfast.

Each run is a workflow of Holdfast, and so is each branch that begins at an older checkpoint: two runs of one
name never meet. A superstep costs what it changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial, reduce
from operator import or_
from types import GenericAlias, NoneType, TracebackType, UnionType
from typing import Any, Union, get_args, get_origin

from holdfast.application.aio import AsyncCheckpointService
from holdfast.bootstrap import open_async
from holdfast.domain import errors, msgpack
from holdfast.domain.checkpoint import CheckpointMeta
from holdfast.domain.ids import CheckpointID
from holdfast.domain.plain import TypeRegistry, to_plain
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import names_begin, names_in, stage_name, workflow_name

with framework("agent-framework-core", "1.23", "1.24", extra="agent-framework"):
    from agent_framework import (
        AgentExecutorRequest,
        AgentExecutorResponse,
        AgentResponse,
        Content,
        Message,
        SubWorkflowRequestMessage,
        SubWorkflowResponseMessage,
        WorkflowCheckpoint,
        WorkflowCheckpointException,
        WorkflowEvent,
        WorkflowMessage,
    )

_ROOM = "agent-framework/"
_EVERYTHING = 2**62
_PLACES_MAX = 4096
#: Types of answers that a request may ask for, beside those that are registered.
_PLAIN_TYPES: tuple[type, ...] = (str, int, float, bool, bytes, list, dict, tuple, set, NoneType, object)
_VALUE_OBJECTS: tuple[type, ...] = (AgentResponse, Content, Message)
_DATACLASSES: tuple[type, ...] = (
    AgentExecutorRequest,
    AgentExecutorResponse,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    WorkflowCheckpoint,
)


class HoldfastCheckpointStorage:
    """Keep the checkpoints of workflows in a Holdfast store: a `CheckpointStorage` of the framework.

    What was saved is durable when `save` returns. Nothing is pickled: a value of a type that nobody named is
    refused, by its path. The framework only logs that and runs on; the last such error stays in `failure`.
    """

    def __init__(self, store: str | AsyncCheckpointService, *, registry: TypeRegistry | None = None) -> None:
        """Choose where checkpoints are kept.

        Args:
            store: a URL, opened when first needed and closed by `close`; or an open service, the caller's.
            registry: what may be stored, from `checkpoint_types`; by default the types of the framework.
                A service has to be opened with the same one.
        """
        self._url = store if isinstance(store, str) else ""
        self._service = None if isinstance(store, str) else store
        self._registry = registry or checkpoint_types()
        self._opening = asyncio.Lock()
        self._places: dict[str, CheckpointID] = {}
        self.failure: Exception | None = None

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint durably; the same one again is stored once.

        Returns:
            Its id.

        Raises:
            UnsupportedTypeError: a value is of a type that nobody registered.
            WorkflowCheckpointException: another checkpoint has this id, or had it and was removed.
        """
        try:
            return await self._save(checkpoint)
        except Exception as problem:
            self.failure = problem
            raise

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Load a checkpoint, every byte of it verified.

        Raises:
            WorkflowCheckpointException: there is none of this id.
            CheckpointCorruptError: what is stored is not what was saved.
        """
        place = await self._find(checkpoint_id, _ROOM)
        if place is not None:
            return await self._read(place, checkpoint_id)
        raise WorkflowCheckpointException(f"there is no checkpoint {checkpoint_id!r} in this store")

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Load every checkpoint of a workflow's name, of all its runs, in the order they were saved."""
        return [await self._read(meta.id) for meta in await self._saved(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Name every checkpoint of a workflow's name in the order they were saved; no state is read."""
        return [await self._told_id(meta) for meta in await self._saved(workflow_name)]

    async def list_runs(self, *, workflow_name: str) -> dict[str, list[str]]:
        """Name the checkpoints of each run of a workflow's name, oldest first.

        Returns:
            Ids of checkpoints by what Holdfast calls the run, or the branch of a run.
        """
        runs: dict[str, list[str]] = {}
        for meta in await self._saved(workflow_name):
            runs.setdefault(meta.id.workflow_id, []).append(await self._told_id(meta))
        return runs

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Load the checkpoint of a workflow's name that was saved last; None if there is none."""
        saved = await self._saved(workflow_name, of_each_run=1)
        return await self._read(saved[-1].id) if saved else None

    async def delete(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint; False if there is none of this id.

        Raises:
            LegalHoldError: a legal hold covers it.
        """
        place = await self._find(checkpoint_id, _ROOM)
        return place is not None and await (await self._open()).delete(place)

    async def close(self) -> None:
        """Close the store if this opened it."""
        if self._url and self._service is not None:
            service, self._service = self._service, None
            await service.close()

    async def __aenter__(self) -> HoldfastCheckpointStorage:
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open(self) -> AsyncCheckpointService:
        async with self._opening:
            if self._service is None:
                self._service = await open_async(self._url, registry=self._registry)
        return self._service

    async def _save(self, checkpoint: WorkflowCheckpoint) -> str:
        prefix, previous = names_begin(_ROOM, checkpoint.workflow_name), checkpoint.previous_checkpoint_id
        before = await self._find(previous, prefix) if previous else None
        if before is not None and await self._landed(checkpoint, before.workflow_id, before.sequence):
            return checkpoint.checkpoint_id
        # The first of a run, or what goes on from a checkpoint that another one follows already.
        branch = workflow_name(_ROOM, checkpoint.workflow_name, checkpoint.checkpoint_id)
        if await self._landed(checkpoint, branch, 0, before):
            return checkpoint.checkpoint_id
        raise _taken(checkpoint.checkpoint_id)

    async def _landed(
        self, checkpoint: WorkflowCheckpoint, run: str, after: int, parent: CheckpointID | None = None
    ) -> bool:
        """Commit a checkpoint as the next of a run; False if that has another one there already."""
        service = await self._open()
        try:
            made = await service.create_checkpoint(
                run,
                _state(checkpoint),
                stage_id=stage_name(checkpoint.checkpoint_id),
                parent_checkpoint_id=parent,
                expected_sequence=after,
                force=True,
            )
        except (errors.LeaseHeldError, errors.LeaseLostError):
            raise
        except errors.CheckpointConflictError:
            return await self._is_there(checkpoint, f"{run}@{after + 1}")
        self._remember(checkpoint.checkpoint_id, made)
        return True

    async def _is_there(self, checkpoint: WorkflowCheckpoint, place: str) -> bool:
        """Tell whether this very checkpoint was committed there, by a save whose outcome nobody learned."""
        try:
            stored = await (await self._open()).restore_checkpoint(place)
        except errors.CheckpointNotFoundError:
            return False
        if stored.metadata.get("checkpoint_id") != checkpoint.checkpoint_id:
            return False
        if self._packed(stored) != self._packed(_state(checkpoint)):
            raise _taken(checkpoint.checkpoint_id)
        return True

    def _packed(self, state: WorkflowState) -> bytes:
        return msgpack.pack(to_plain([state.messages, state.context, state.metadata], self._registry))

    async def _find(self, checkpoint_id: str, prefix: str) -> CheckpointID | None:
        """Look for a checkpoint where it was seen last, then in every run whose name begins so."""
        service, stage = await self._open(), stage_name(checkpoint_id)
        known = self._places.get(checkpoint_id)
        if known is not None and known.workflow_id.startswith(prefix):
            return known
        for workflow_id in await self._runs(prefix):
            for meta in await service.list_checkpoints(workflow_id, limit=_EVERYTHING):
                if meta.stage_id == stage:
                    self._remember(checkpoint_id, meta.id)
                    return meta.id
        return None

    def _remember(self, checkpoint_id: str, place: CheckpointID) -> None:
        self._places[checkpoint_id] = place
        if len(self._places) > _PLACES_MAX:
            del self._places[next(iter(self._places))]

    async def _runs(self, prefix: str) -> list[str]:
        service = await self._open()
        return [name for name in await service.workflows() if name.startswith(prefix)]

    async def _saved(self, workflow_name: str, of_each_run: int = _EVERYTHING) -> list[CheckpointMeta]:
        """List what was saved under a name, oldest first; of each run no more than the newest few."""
        service = await self._open()
        found: list[CheckpointMeta] = []
        for workflow_id in await self._runs(names_begin(_ROOM, workflow_name)):
            found += reversed(await service.list_checkpoints(workflow_id, limit=of_each_run))
        # Sorting is stable: a clock that stood still does not turn a run around.
        return sorted(found, key=lambda meta: meta.created_at)

    async def _told_id(self, meta: CheckpointMeta) -> str:
        if known := names_in("", meta.stage_id or ""):
            return known[0]
        return (await self._read(meta.id)).checkpoint_id

    async def _read(self, place: CheckpointID, checkpoint_id: str | None = None) -> WorkflowCheckpoint:
        try:
            state = await (await self._open()).restore_checkpoint(place)
        except errors.CheckpointNotFoundError as gone:
            raise WorkflowCheckpointException(f"the checkpoint at {place} was removed") from gone
        checkpoint = _checkpoint(state, place)
        if checkpoint_id not in (None, checkpoint.checkpoint_id):
            raise errors.CheckpointCorruptError("another checkpoint stands in this place", place=str(place))
        self._remember(checkpoint.checkpoint_id, place)
        return checkpoint


def checkpoint_types(*types: type, registry: TypeRegistry | None = None) -> TypeRegistry:
    """Answer what may be stored: the framework's own types, and those that are named here.

    Args:
        types: dataclasses, pydantic models and enums that states, messages and requests may hold.
        registry: is added to, and may hold types with functions of their own; by default a new one.

    Raises:
        ConfigError: it is unknown how to store a type, or two have the same name.
    """
    registry = registry or TypeRegistry()
    for kind in _VALUE_OBJECTS:
        registry.register(kind, _type_name(kind), encode=_members, decode=partial(_made, kind))
    for kind in _DATACLASSES:
        registry.register(kind, _type_name(kind))
    for kind in types:
        registry.register(kind)
    named = {_type_name(kind): kind for kind in (*_PLAIN_TYPES, *_VALUE_OBJECTS, *_DATACLASSES)}
    answers = {**named, **{kind.__name__: kind for kind in types}}
    take, put = partial(_request, answers), partial(_event, answers)
    registry.register(WorkflowEvent, _type_name(WorkflowEvent), encode=take, decode=put)
    name, sent, received = _type_name(WorkflowMessage), WorkflowMessage.to_dict, WorkflowMessage.from_dict
    registry.register(WorkflowMessage, name, encode=sent, decode=received)
    return registry


def _type_name(kind: type) -> str:
    """Name a type of the framework or of Python as no class of an application's is named."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def _members(value: Any) -> dict[str, Any]:
    """Take a value object of the framework apart, by what its constructor takes."""
    kept = {name: member for name, member in vars(value).items() if member is not None and name[0] != "_"}
    kept.pop("raw_representation", None)
    if isinstance(value, AgentResponse) and value.value is not None:
        kept["value"] = value.value
    if "exception" in kept:
        # The framework's own form of it says that there was one, and nothing of what may be secret in it.
        kept["exception"] = value.to_dict()["exception"]
    return kept


def _made(kind: type, members: Mapping[str, Any]) -> Any:
    return kind(**members)


def _request(answers: Mapping[str, type], event: WorkflowEvent[Any]) -> dict[str, Any]:
    if event.type != "request_info":
        raise errors.UnsupportedTypeError(
            f"an event of type {event.type!r} cannot be stored; only requests can"
        )
    return {
        "request_id": event.request_id,
        "source_executor_id": event.source_executor_id,
        "request_data": event.data,
        "response_type": _type_tree(event.response_type, answers),
    }


def _event(answers: Mapping[str, type], members: dict[str, Any]) -> WorkflowEvent[Any]:
    asked = _type_from(members["response_type"], answers)
    return WorkflowEvent.request_info(**{**members, "response_type": asked})


def _type_tree(kind: Any, answers: Mapping[str, type]) -> Any:
    """Write a type down by names that were allowed: `str`, `list[Draft]`, `Draft | None`."""
    if kind is Any:
        return "Any"
    origin = get_origin(kind)
    if origin is not None:
        name = "|" if origin in (Union, UnionType) else _type_tree(origin, answers)
        return [name, *(_type_tree(argument, answers) for argument in get_args(kind))]
    for name, allowed in answers.items():
        if allowed is kind:
            return name
    raise errors.UnsupportedTypeError(
        f"requests for answers of type {kind!r} cannot be stored", hint="Name it in `checkpoint_types`."
    )


def _type_from(tree: Any, answers: Mapping[str, type]) -> Any:
    if tree == "Any":
        return Any
    if isinstance(tree, str):
        return answers[tree]
    origin, *arguments = tree
    kinds = tuple(_type_from(argument, answers) for argument in arguments)
    return reduce(or_, kinds) if origin == "|" else GenericAlias(_type_from(origin, answers), kinds)


def _state(checkpoint: WorkflowCheckpoint) -> WorkflowState:
    """Put a checkpoint of the framework into the fields that Holdfast shows."""
    fields = checkpoint.to_dict()
    sent = fields.pop("messages")
    context = {name: fields.pop(name) for name in ("state", "pending_request_info_events")}
    return WorkflowState(
        current_step=checkpoint.iteration_count,
        # One list in the order of sending: the next superstep's messages are compared with these.
        messages=[{"sender": sender, **one.to_dict()} for sender, all_of in sent.items() for one in all_of],
        context={**context, "senders": list(sent)},
        metadata=fields,
    )


def _checkpoint(state: WorkflowState, place: CheckpointID) -> WorkflowCheckpoint:
    try:
        sent: dict[str, list[WorkflowMessage]] = {sender: [] for sender in state.context["senders"]}
        for one in state.messages:
            sent[one["sender"]].append(WorkflowMessage.from_dict(one))
        context = {name: state.context[name] for name in ("state", "pending_request_info_events")}
        checkpoint = WorkflowCheckpoint.from_dict({**state.metadata, **context, "messages": sent})
        is_own = place.workflow_id.startswith(names_begin(_ROOM, checkpoint.workflow_name))
    except (KeyError, TypeError, ValueError, WorkflowCheckpointException) as fault:
        problem = f"this is no checkpoint of a workflow ({fault!r})"
        raise errors.CheckpointCorruptError(problem, place=str(place)) from fault
    if not is_own:
        raise errors.CheckpointCorruptError("a checkpoint of another workflow stands here", place=str(place))
    return checkpoint


def _taken(checkpoint_id: str) -> WorkflowCheckpointException:
    return WorkflowCheckpointException(f"the id {checkpoint_id!r} is, or was, that of another checkpoint")
