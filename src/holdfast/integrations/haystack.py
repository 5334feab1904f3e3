"""Haystack: snapshots of a pipeline in any store of Holdfast, and runs that survive a kill."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any

from holdfast.application.commands import CheckpointOptions
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import open as open_service
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
    UnsupportedTypeError,
)
from holdfast.domain.ids import check_id
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import workflow_name

with framework("haystack-ai", "3.4", "3.5", extra="haystack"):
    from haystack import Pipeline, dataclasses
    from haystack.core.errors import BreakpointException, SerializationError
    from haystack.core.pipeline.component_checks import _NoOutputProduced
    from haystack.core.serialization import generate_qualified_class_name
    from haystack.dataclasses import Breakpoint, PipelineSnapshot
    from haystack.utils import _deserialize_value_with_schema, _serialize_value_with_schema

_LEASE_SECONDS = 60.0
_COMPLETED = "completed"
_PLAIN = frozenset(["null", "boolean", "integer", "number", "string", "object", "array"])
#: Values of Haystack's own that are made again from what is stored, by the loaders that each of them has.
_OWN_TYPES = (
    dataclasses.ByteStream,
    dataclasses.ChatMessage,
    dataclasses.ChatRole,
    dataclasses.ComponentInfo,
    dataclasses.Document,
    dataclasses.ExtractedAnswer,
    dataclasses.FileContent,
    dataclasses.GeneratedAnswer,
    dataclasses.ImageContent,
    dataclasses.ReasoningContent,
    dataclasses.SparseEmbedding,
    dataclasses.StreamingChunk,
    dataclasses.TextContent,
    dataclasses.ToolCall,
    dataclasses.ToolCallDelta,
    dataclasses.ToolCallResult,
    _NoOutputProduced,
)


class HoldfastSnapshots:
    """The snapshots of one run of a pipeline.

    As a `snapshot_callback` it keeps what Haystack makes where a component fails or a breakpoint is set.
    With `run()` it keeps the state before each component: what is done is not done again after a kill.

    Args:
        store: a URL, or an open service; what is opened here is closed by `close()`.
        run_id: any text; the same one continues the same run.
        types: classes beside Haystack's own that may be made from what is stored.
    """

    def __init__(self, store: str | CheckpointService, run_id: str, *, types: Iterable[type] = ()) -> None:
        self._is_owner = isinstance(store, str)
        self._service = open_service(store) if isinstance(store, str) else store
        self._run_id = run_id
        self._types = _PLAIN | {generate_qualified_class_name(one) for one in (*_OWN_TYPES, *types)}
        self.workflow_id = workflow_name("haystack/", run_id)
        #: The last checkpoint that was seen here; one of somebody else's after it is a conflict.
        self._seen: int | None = None

    def __call__(self, snapshot: PipelineSnapshot) -> str:
        """Record a snapshot durably; answer the name of its checkpoint.

        Raises:
            CheckpointConflictError: somebody else recorded one of the same run meanwhile.
            UnsupportedTypeError: it holds values of a class that was not allowed.
        """
        visits = snapshot.pipeline_state.component_visits
        name = snapshot.break_point.component_name
        fields = replace(snapshot, break_point=Breakpoint(name, visits[name])).to_dict()
        for place in ("inputs", "pipeline_outputs"):
            _check_types(fields["pipeline_state"][place], self._types, place)
        _check_types(fields["original_input_data"], self._types, "original_input_data")
        state = WorkflowState(
            current_step=sum(visits.values()),
            total_steps=len(visits),
            outputs=fields["pipeline_state"].pop("pipeline_outputs"),
            context=fields,
            metadata={"run_id": self._run_id},
        )
        return self._commit(state, _stage(name))

    def latest(self) -> PipelineSnapshot | None:
        """Answer the last snapshot, to resume from; None if the run has none, or ended."""
        state = self._load()
        return None if state is None or state.status == _COMPLETED else self._snapshot(state)

    def at(self, checkpoint: str | int) -> PipelineSnapshot:
        """Answer an earlier snapshot, by the name that the callback answered or by its number.

        Raises:
            CheckpointNotFoundError: there is no such snapshot.
        """
        name = f"{self.workflow_id}@{checkpoint}" if isinstance(checkpoint, int) else checkpoint
        state = self._service.restore_checkpoint(name)
        if state.status == _COMPLETED:
            raise CheckpointNotFoundError("this is the end of a run, and no snapshot", place=name)
        return self._snapshot(state)

    def run(
        self, pipeline: Pipeline, data: dict[str, Any], include_outputs_from: set[str] | None = None
    ) -> dict[str, Any]:
        """Run a pipeline, or continue it, with the state before each component made durable.

        Args:
            pipeline: the same graph each time.
            data: its inputs. A run that was begun continues with those that it began with.
            include_outputs_from: as in `Pipeline.run`.

        Returns:
            The outputs of the pipeline; also if the run had ended before.

        Raises:
            LeaseHeldError: somebody else is at it.
            UnsupportedTypeError: a component answered something that could not be made again.
            PipelineRuntimeError: a component failed; run again to try it again.
        """
        with self._taken() as renew:
            state = self._load()
            if state is not None and state.status == _COMPLETED:
                return self._outputs(state)
            snapshot = None if state is None else self._snapshot(state)
            if snapshot is None:
                _dumped(data, self._types, "the inputs")
            outputs = self._stepped(pipeline, data, include_outputs_from, snapshot, renew)
            self._complete(outputs)
            return outputs

    def close(self) -> None:
        """Close the store if it was opened here."""
        if self._is_owner:
            self._service.close()

    def __enter__(self) -> HoldfastSnapshots:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stepped(
        self,
        pipeline: Pipeline,
        data: dict[str, Any],
        include_outputs_from: set[str] | None,
        snapshot: PipelineSnapshot | None,
        renew: Callable[[], object],
    ) -> dict[str, Any]:
        """Let one component run at a time, each from the snapshot that was made durable before it."""
        with _gates(pipeline):
            while True:
                step = _Step(pipeline, self._types, may_run=snapshot is not None)
                token = _STEP.set(step)
                try:
                    outputs: dict[str, Any] = pipeline.run(
                        data if snapshot is None else {},
                        include_outputs_from,
                        pipeline_snapshot=snapshot,
                        snapshot_callback=self,
                    )
                    return outputs
                except BreakpointException as halt:
                    # An agent in the component that may run has breakpoints of its own.
                    if not step.is_halted:
                        raise
                    snapshot = halt.pipeline_snapshot
                    renew()
                finally:
                    _STEP.reset(token)

    @contextmanager
    def _taken(self) -> Iterator[Callable[[], object]]:
        """Keep others from running the same; what a process of this machine held that died is free."""
        recording = self._service.recording
        lease = recording.take(self.workflow_id, "haystack", _LEASE_SECONDS)
        try:
            yield lambda: recording.renew(lease, _LEASE_SECONDS)
        finally:
            recording.give_up(lease)

    def _load(self) -> WorkflowState | None:
        state = self._service.load_latest(self.workflow_id)
        self._seen = int(str(state.checkpoint_id).rpartition("@")[2]) if state else 0
        return state

    def _commit(self, state: WorkflowState, options: CheckpointOptions) -> str:
        options = {**options, "expected_sequence": self._seen, "force": True}
        try:
            made = self._service.create_checkpoint(self.workflow_id, state, **options)
        except CheckpointConflictError:
            # Somebody may have recorded an event, which is no change of the state.
            found = self._service.list_checkpoints(self.workflow_id, 1)
            if not found or found[0].id.sequence != self._seen:
                raise
            made = self._service.create_checkpoint(self.workflow_id, state, **options)
        self._seen = made.sequence
        return str(made)

    def _complete(self, outputs: dict[str, Any]) -> None:
        dumped = _dumped(outputs, self._types, "the outputs")
        state = WorkflowState(status=_COMPLETED, outputs=dumped, metadata={"run_id": self._run_id})
        self._commit(state, {"type": CheckpointType.WORKFLOW_COMPLETE})

    def _snapshot(self, state: WorkflowState) -> PipelineSnapshot:
        """Make a snapshot of what is stored, if it is of this run and all its types are allowed."""
        place = str(state.checkpoint_id)
        self._check_run(state)
        try:
            inner = {**state.context["pipeline_state"], "pipeline_outputs": state.outputs}
            fields = {**state.context, "pipeline_state": inner}
            for envelope in (inner["inputs"], inner["pipeline_outputs"], fields["original_input_data"]):
                _check_types(envelope, self._types, place)
            return PipelineSnapshot.from_dict(fields)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise CheckpointCorruptError(
                "what is stored is no snapshot of Haystack", place=place
            ) from problem

    def _outputs(self, state: WorkflowState) -> dict[str, Any]:
        self._check_run(state)
        _check_types(state.outputs, self._types, str(state.checkpoint_id))
        outputs: dict[str, Any] = _deserialize_value_with_schema(state.outputs)
        return outputs

    def _check_run(self, state: WorkflowState) -> None:
        if state.metadata.get("run_id") != self._run_id:
            raise CheckpointCorruptError("this is a snapshot of another run", place=str(state.checkpoint_id))


@dataclass(slots=True)
class _Step:
    """One component's turn: it may run, and the pipeline halts before the next."""

    pipeline: Pipeline
    types: frozenset[str]
    may_run: bool
    is_halted: bool = False


_STEP: ContextVar[_Step | None] = ContextVar("holdfast_haystack_step", default=None)
_GATES = threading.Lock()


class _Gate:
    """Stands in for the `run` of a component, and halts a pipeline that is run step by step.

    Haystack takes a snapshot wherever a component raises BreakpointException, as an agent may. A breakpoint
    of `Pipeline.run` names one component, and which one comes next is not known before.
    """

    def __init__(self, name: str, pipeline: Pipeline, instance: Any) -> None:
        self._name = name
        self._pipeline = pipeline
        self._run: Callable[..., Mapping[str, Any]] = instance.run
        #: What the instance itself had there; mostly the class has it.
        self.before = vars(instance).get("run")
        self.users = 0

    def __call__(self, **inputs: Any) -> Mapping[str, Any]:
        step = _STEP.get()
        if step is None or step.pipeline is not self._pipeline:
            return self._run(**inputs)
        if not step.may_run:
            step.is_halted = True
            raise BreakpointException.from_triggered_breakpoint(Breakpoint(self._name))
        step.may_run = False
        outputs = self._run(**inputs)
        # Haystack leaves out of a snapshot what it cannot store; the run would go on without it.
        _dumped(dict(outputs), step.types, f"what {self._name} answered")
        return outputs


@contextmanager
def _gates(pipeline: Pipeline) -> Iterator[None]:
    """Put gates before the components of a pipeline; runs of it that are not stepped pass through them."""
    instances: dict[str, object] = dict(pipeline.walk())
    with _GATES:
        for name, instance in instances.items():
            if not isinstance(vars(instance).get("run"), _Gate):
                vars(instance)["run"] = _Gate(name, pipeline, instance)
            vars(instance)["run"].users += 1
    try:
        yield
    finally:
        with _GATES:
            for instance in instances.values():
                _leave(vars(instance))


def _leave(attributes: dict[str, Any]) -> None:
    """Take a gate away if nobody uses it any more."""
    gate = attributes["run"]
    gate.users -= 1
    if not gate.users and gate.before is None:
        del attributes["run"]
    elif not gate.users:
        attributes["run"] = gate.before


def _stage(component: str) -> CheckpointOptions:
    """Name the component that comes next as the stage: `WORKFLOW@stage:NAME` is the state before it."""
    try:
        return {"stage_id": check_id("stage", component)}
    except InvalidIdError:
        return {}


def _dumped(value: dict[str, Any], allowed: frozenset[str], place: str) -> dict[str, Any]:
    """Answer Haystack's own stored form of a value, nothing left out."""
    try:
        dumped: dict[str, Any] = _serialize_value_with_schema(value)
    except SerializationError as problem:
        raise UnsupportedTypeError(f"Haystack cannot store this: {problem}", place=place) from problem
    _check_types(dumped, allowed, place)
    return dumped


def _check_types(dumped: Mapping[str, Any], allowed: frozenset[str], place: str) -> None:
    """Refuse a stored value that would be made by a class, or a function, that nobody allowed."""
    schemas = [dumped["serialization_schema"]]
    while schemas:
        schema = schemas.pop()
        kind = schema.get("type", "null")
        if kind not in allowed:
            raise UnsupportedTypeError(
                f"values of type {str(kind)[:200]} are not allowed",
                place=place,
                hint="Give the class to HoldfastSnapshots(types=...), its module to Haystack's allow-list.",
            )
        schemas += [*schema.get("properties", {}).values(), *schema.get("prefixItems", ())]
        schemas += [schema["items"]] if schema.get("items") else []
