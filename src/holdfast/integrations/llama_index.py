"""Under LlamaIndex workflows: a runtime that keeps the context of every run.

Before anything is done with what a step answered, the run's queues, waiters and state are durable: a run that
was killed goes on with the events that waited. What is read becomes events and models of the classes that the
workflow declares and the program names, and of no others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from holdfast import bootstrap
from holdfast.application.aio import AsyncCheckpointService
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ConfigError,
    InvalidStateError,
    UnsupportedTypeError,
)
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import workflow_name

with framework("llama-index-workflows", "2.26.1", "2.27", extra="llama-index"):
    from pydantic import BaseModel
    from workflows import Context, Workflow
    from workflows.context.serializers import BaseSerializer, JsonSerializer
    from workflows.context.state_store import InMemoryStateStore, StateCheckpoint, decode_seed_state
    from workflows.context.utils import get_qualified_name
    from workflows.errors import ContextSerdeError
    from workflows.events import StartEvent, StopEvent
    from workflows.plugins.basic import BasicRuntime
    from workflows.runtime.control_loop import replay_ticks_stream
    from workflows.runtime.runtime_decorators import BaseInternalRunAdapterDecorator, BaseRuntimeDecorator
    from workflows.runtime.types.commands import CommandCompleteRun
    from workflows.runtime.types.internal_state import BrokerState
    from workflows.runtime.types.plugin import ExternalRunAdapter, InternalRunAdapter, Runtime
    from workflows.runtime.types.ticks import TickAddEvent, TickStepResult, TickWaiterTimeout, WorkflowTick

_ROOM = "llama-run:"
#: Keys by which the framework knows what it wrote for a model or a component, and ours for a dict with such.
_TAGS = frozenset({"__is_pydantic", "__is_component", "__is_plain"})
_PLAIN = "__is_plain"


@dataclass(slots=True)
class _Kept:
    """Which run a context is of, and the number of the checkpoint it stands at."""

    name: str
    sequence: int = 0


class SafeSerializer(JsonSerializer):
    """The framework's JSON, with classes that were named to it and nothing else: no import, no pickle.

    What the program holds can never pass for a model: a dict with a key that says so is written as pairs.
    """

    def __init__(self, types: Iterable[type[Any]] = (), kept: _Kept | None = None) -> None:
        """Name the classes that may be stored and read."""
        self.types = tuple(dict.fromkeys(types))
        self.kept = kept
        for entry in self.types:
            if not isinstance(entry, type):
                # The framework would import what is named by text.
                raise ConfigError(f"{entry!r} is not a class", place="types", hint="Give the class itself.")
        super().__init__(allowed_types=self.types)

    def with_types(self, *classes: type[Any]) -> SafeSerializer:
        """Answer one that knows these classes too."""
        return SafeSerializer((*self.types, *classes), self.kept)

    def of(self, kept: _Kept) -> SafeSerializer:
        """Answer one that goes with the context of a run."""
        return SafeSerializer(self.types, kept)

    def serialize_value(self, value: Any) -> Any:
        """Write a value as plain data.

        Raises:
            UnsupportedTypeError: it could not be read again, because its class was not named.
        """
        if isinstance(value, BaseModel) or hasattr(value, "class_name"):
            self._check_known(value)
        elif isinstance(value, dict) and not _TAGS.isdisjoint(value):
            return {_PLAIN: [[key, self.serialize_value(item)] for key, item in value.items()]}
        return super().serialize_value(value)

    def serialize(self, value: Any) -> str:
        """Write a value as JSON; the framework's own hides why that failed and tells the value."""
        return json.dumps(self.serialize_value(value))

    def deserialize_value(self, data: Any) -> Any:
        """Read a value that was written here."""
        if isinstance(data, dict) and _PLAIN in data:
            return {key: self.deserialize_value(item) for key, item in data[_PLAIN]}
        return super().deserialize_value(data)

    def _check_known(self, value: Any) -> None:
        name = get_qualified_name(value)
        try:
            is_known = self.resolve_class(name) is type(value)
        except ValueError:
            is_known = False
        if not is_known:
            raise UnsupportedTypeError(
                f"a {name} would not be read again", hint="Name its class: HoldfastRuntime(..., types=[...])."
            )


class HoldfastRuntime(BaseRuntimeDecorator):
    """Runs workflows and keeps them: `Report(runtime=HoldfastRuntime(URL))`.

    A run is known by a name of yours. Whoever goes on from what another has changed since is refused.
    """

    def __init__(self, store: str | AsyncCheckpointService, *, types: Iterable[type[Any]] = ()) -> None:
        """Use a store.

        Args:
            store: URL of a store, which is opened when first needed and closed by `close`, or a service.
            types: classes of models that runs keep in their state, beside the events and the type of state
                that a workflow declares.
        """
        super().__init__(BasicRuntime(), default_serializer=SafeSerializer(types))
        self._url = store if isinstance(store, str) else None
        self._opened = None if isinstance(store, str) else store
        self._opening = asyncio.Lock()
        self._runs: dict[str, _Run] = {}

    async def run(
        self, workflow: Workflow, name: str, start_event: StartEvent | None = None, **start: Any
    ) -> Any:
        """Run a workflow to its end: begin it, go on with it, or tell how it ended.

        Args:
            workflow: made with this runtime.
            name: of the run.
            start_event: what it begins with, if it has not begun; else `start` says that.
        """
        state = await self._read(name)
        if state is not None and state.outputs:
            stop = self._stop_event(workflow, name, state)
            return stop.result if type(stop) is StopEvent else stop
        return await workflow.run(self._context(workflow, name, state), start_event, **start)

    async def context(self, workflow: Workflow, name: str) -> Context[Any]:
        """Answer the context of a run, to give to `workflow.run(ctx=...)`; a new one if there is no such run.

        The context of a run that has ended keeps its state: the workflow begins anew with it.

        Raises:
            ContextSerdeError: what is stored is no context of this workflow.
        """
        return self._context(workflow, name, await self._read(name))

    async def outcome(self, workflow: Workflow, name: str) -> StopEvent | None:
        """Answer what a run ended with; None if it has not."""
        state = await self._read(name)
        return self._stop_event(workflow, name, state) if state is not None and state.outputs else None

    async def close(self) -> None:
        """Close the store, if it was opened here. Idempotent."""
        if self._url is not None and self._opened is not None:
            await self._opened.close()

    async def destroy(self) -> None:
        """Clean up, as the framework asks it of a runtime."""
        await super().destroy()
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def get_serializer(self, workflow: Workflow) -> SafeSerializer:
        """Answer what writes and reads the events and the state of a workflow.

        Raises:
            ConfigError: the workflow has a serializer of its own.
        """
        if workflow.serializer is not None:
            raise ConfigError(
                "a workflow that is kept cannot bring a serializer of its own",
                place=workflow.workflow_name,
                hint="Leave it out, and name the classes: HoldfastRuntime(..., types=[...]).",
            )
        return _safe(Runtime.get_serializer(self, workflow))

    def run_workflow(
        self,
        run_id: str,
        workflow: Workflow,
        init_state: BrokerState,
        start_event: StartEvent | None = None,
        serialized_state: dict[str, Any] | None = None,
        serializer: BaseSerializer | None = None,
    ) -> ExternalRunAdapter:
        """Begin a run, or go on with one, as the framework asks it of a runtime."""
        chosen = _safe(serializer or self.get_serializer(workflow))
        kept = chosen.kept or _Kept(run_id)
        self._runs[run_id] = _Run(self, kept, workflow.workflow_name, chosen, init_state)
        return super().run_workflow(run_id, workflow, init_state, start_event, serialized_state, chosen)

    def get_internal_adapter(self, workflow: Workflow) -> InternalRunAdapter:
        """Answer what the framework's loop talks to."""
        inner = super().get_internal_adapter(workflow)
        run = self._runs.get(inner.run_id)
        return _KeptRun(inner, run) if run is not None else inner

    async def service(self) -> AsyncCheckpointService:
        """Answer the open service, to look at what is kept."""
        async with self._opening:
            if self._opened is None:
                self._opened = await bootstrap.open_async(self._url)
            return self._opened

    def forget(self, run_id: str) -> None:
        """Let go of a run that is over."""
        self._runs.pop(run_id, None)

    async def _read(self, name: str) -> WorkflowState | None:
        state = await (await self.service()).load_latest(workflow_name(_ROOM, name))
        if state is not None and state.metadata.get("run") != name:
            raise CheckpointCorruptError(
                "the context belongs to another run",
                place=workflow_name(_ROOM, name),
                hint="See `holdfast validate`; restore an older checkpoint.",
            )
        return state

    def _context(self, workflow: Workflow, name: str, state: WorkflowState | None) -> Context[Any]:
        self._check_mine(workflow)
        serializer = self.get_serializer(workflow)
        if state is None:
            return Context(workflow, serializer=serializer.of(_Kept(name)))
        kept = _Kept(name, int((state.checkpoint_id or "@0").rpartition("@")[2]))
        told = {**state.context.get("run", {}), "state": state.context.get("state", {})}
        _check_steps(workflow, name, told)
        try:
            decode_seed_state(told["state"], serializer)
            return Context.from_dict(workflow, told, serializer=serializer.of(kept))
        except (ValueError, TypeError, AttributeError, LookupError) as problem:
            raise ContextSerdeError(f"the context of run {name!r} cannot be read: {problem}") from problem

    def _stop_event(self, workflow: Workflow, name: str, state: WorkflowState) -> StopEvent:
        try:
            stop = _stop_event(state.outputs[0], self.get_serializer(workflow))
        except (ValueError, TypeError, AttributeError, LookupError) as problem:
            raise ContextSerdeError(f"the end of run {name!r} cannot be read: {problem}") from problem
        if not isinstance(stop, StopEvent):
            raise ContextSerdeError(f"run {name!r} ended with a {type(stop).__name__}, not with a StopEvent")
        return stop

    def _check_mine(self, workflow: Workflow) -> None:
        runtime = workflow.runtime
        while runtime is not self:
            if not isinstance(runtime, BaseRuntimeDecorator):
                raise ConfigError(
                    "the workflow has another runtime: nothing of it would be kept",
                    place=workflow.workflow_name,
                    hint="Make it with runtime=, or inside `with runtime.registering()`.",
                )
            runtime = runtime._decorated


@dataclass(slots=True)
class _Run:
    """A run that goes on, and how far it has come."""

    runtime: HoldfastRuntime
    kept: _Kept
    workflow_name: str
    serializer: SafeSerializer
    state: BrokerState

    async def follow(self, tick: WorkflowTick, adapter: InternalRunAdapter) -> None:
        """Move on by one tick, and make durable what could not be worked out again.

        A run that fails, is cancelled or has no time left is left as it stood before that: it may go on.
        """
        moved = await replay_ticks_stream(self.state, _only(tick), run_id=adapter.run_id)
        self.state = moved.state
        end = moved.exit_command
        if isinstance(end, CommandCompleteRun):
            await self._commit(tick, adapter, end.result)
        elif end is None and _is_news(tick):
            await self._commit(tick, adapter, None)

    async def _commit(self, tick: WorkflowTick, adapter: InternalRunAdapter, stop: StopEvent | None) -> None:
        service = await self.runtime.service()
        made = await service.create_checkpoint(
            workflow_name(_ROOM, self.kept.name),
            self._workflow_state(adapter, stop),
            type=CheckpointType.WORKFLOW_COMPLETE if stop is not None else None,
            stage_id=str(tick.step_id) if isinstance(tick, TickStepResult) else None,
            expected_sequence=self.kept.sequence,
        )
        self.kept.sequence = made.sequence

    def _workflow_state(self, adapter: InternalRunAdapter, stop: StopEvent | None) -> WorkflowState:
        run = self.state.to_serialized(self.serializer).model_dump(mode="json", exclude={"state"})
        store = adapter.get_state_store()
        assert isinstance(store, InMemoryStateStore)
        kept = StateCheckpoint(store.checkpoint().state, self.serializer).to_dict()
        return WorkflowState(
            status="in_progress" if stop is None else "completed",
            outputs=[] if stop is None else [_told(stop, self.serializer)],
            context={"run": run, "state": kept},
            metadata={"run": self.kept.name, "workflow": self.workflow_name},
        )


class _KeptRun(BaseInternalRunAdapterDecorator):
    """What the framework's loop talks to: it acts upon a tick only after what that led to is durable."""

    def __init__(self, decorated: InternalRunAdapter, run: _Run) -> None:
        super().__init__(decorated)
        self._run = run

    async def on_tick(self, tick: WorkflowTick) -> None:
        """Keep what a tick led to."""
        await super().on_tick(tick)
        await self._run.follow(tick, self)

    async def close(self) -> None:
        """Let go of the run: its loop ends."""
        await super().close()
        self._run.runtime.forget(self.run_id)


def _told(stop: StopEvent, serializer: SafeSerializer) -> dict[str, Any]:
    """Write what a run ended with; the framework's form would turn a model in a plain result into a dict."""
    if type(stop) is StopEvent:
        return {"result": serializer.serialize_value(stop.result)}
    told: dict[str, Any] = serializer.serialize_value(stop)
    return told


def _stop_event(told: dict[str, Any], serializer: SafeSerializer) -> Any:
    if told.keys() == {"result"}:
        return StopEvent(result=serializer.deserialize_value(told["result"]))
    return serializer.deserialize_value(told)


async def _only(tick: WorkflowTick) -> AsyncIterator[WorkflowTick]:
    yield tick


def _is_news(tick: WorkflowTick) -> bool:
    """Tell whether a tick says what nothing else says: an event from outside, or what a step came to.

    What a step sent is in what the step came to, or is sent again when the step runs again.
    """
    if isinstance(tick, TickAddEvent):
        return tick.emission is None
    return isinstance(tick, TickStepResult | TickWaiterTimeout)


def _safe(serializer: BaseSerializer) -> SafeSerializer:
    if not isinstance(serializer, SafeSerializer):
        raise ConfigError(
            f"{type(serializer).__name__} cannot be used with a store",
            hint="Take the context from HoldfastRuntime.context, or leave its serializer out.",
        )
    return serializer


def _check_steps(workflow: Workflow, name: str, told: dict[str, Any]) -> None:
    """Make sure that no step with work to do is gone: the framework would drop that work silently."""
    steps = workflow._get_steps()
    for step, worker in told.get("workers", {}).items():
        if step not in steps and any(worker.values()):
            raise InvalidStateError(
                f"step {step!r} has work to do and is not in the workflow any more",
                place=workflow_name(_ROOM, name),
                hint="Keep the step until such runs have ended, or begin the run under another name.",
            )
