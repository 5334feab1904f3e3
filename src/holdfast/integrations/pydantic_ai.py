"""Pydantic AI on Holdfast: a durable engine for runs of agents."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

import holdfast
from holdfast.application.commands import AppendEvent
from holdfast.application.service import CheckpointService
from holdfast.domain import errors, run_events
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.reducers import reduce
from holdfast.domain.state import WorkflowState
from holdfast.execution.leases import KEEPER
from holdfast.integrations.framework import framework

with framework("pydantic-ai-slim", "2.66", "2.67", extra="pydantic-ai"):
    from pydantic_ai import durable_exec as durable
    from pydantic_ai.agent import AgentRunResult
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_ai.tools import AgentDepsT, RunContext
    from pydantic_core import to_json, to_jsonable_python

_LEASE_SECONDS = 30.0
#: So many operations lie at most between two checkpoints: that bounds what is replayed on the way back.
_OPERATIONS_PER_CHECKPOINT = 50
_STEP_CHARS_MAX = 200
_CALL_CHARS = 12
_METRICS = ("requests", "tool_calls", "input_tokens", "output_tokens")


class HoldfastWorkflow:
    """Agents with `HoldfastDurability` are durable inside of `async with HoldfastWorkflow(store, id)`.

    After a crash run the same program with the same id: every operation whose result was committed is
    answered from the journal. One process has a workflow at a time.

    Args:
        store: a URL, or an open service, which stays open.
        workflow_id: what to begin, or to go on with.

    Raises:
        LeaseHeldError: another process runs this workflow.
        CheckpointCorruptError: what is stored of it was damaged.
    """

    def __init__(self, store: str | CheckpointService, workflow_id: str) -> None:
        self.workflow_id = check_workflow_id(workflow_id)
        self._store = store
        self._mutex = threading.Lock()
        self._begun: Counter[str] = Counter()
        self._since_checkpoint = 0

    async def __aenter__(self) -> HoldfastWorkflow:
        await asyncio.to_thread(self._begin)
        self._token = _WORKFLOW.set(self)
        return self

    async def __aexit__(self, *raised: object) -> None:
        _WORKFLOW.reset(self._token)
        await asyncio.to_thread(self._end, is_over=raised[0] is None)

    def _begin(self) -> None:
        self._service = opened(self._store)
        self._recording = self._service.recording
        try:
            self._lease = self._recording.take(self.workflow_id, "pydantic-ai", _LEASE_SECONDS)
            # Nobody has to be told of a lease that is lost: the next commit is refused.
            KEEPER.keep(self._recording, self._lease, _LEASE_SECONDS, lambda: None)
            try:
                self._read()
            except BaseException:
                self._give_up()
                raise
        except BaseException:
            close(self._store, self._service)
            raise

    def _read(self) -> None:
        state = WorkflowState(workflow_id=self.workflow_id)
        if self._recording.exists(self.workflow_id):
            state = self._service.restore_checkpoint(self._recording.newest(self.workflow_id))
        self._fields = state.to_fields()
        #: Results by step, as they were when this process began.
        self.results = {task["id"]: task["result"] for task in state.tasks}

    def _give_up(self) -> None:
        KEEPER.drop(self._recording, self._lease)
        self._recording.give_up(self._lease)

    def _end(self, *, is_over: bool) -> None:
        try:
            if is_over and self._fields["status"] != "completed":
                data = {"fields": {"status": "completed", "resumable": False}}
                self._record(run_events.RUN_UPDATED, "end", None, data, CheckpointType.WORKFLOW_COMPLETE)
        finally:
            self._give_up()
            close(self._store, self._service)

    def counted(self, name: str) -> str:
        """Name one more occurrence of something that may happen several times."""
        with self._mutex:
            self._begun[name] += 1
            return f"{name}#{self._begun[name]}"

    def begin_run(self, step_id: str, agent: str, prompt: str) -> None:
        """Record that a run begins, or goes on; one that began with another prompt is refused."""
        known = self._known(step_id)
        if self.results.get(step_id, known).get("prompt", prompt) != prompt:
            raise errors.GraphChangedError(
                f"run {step_id!r} of agent {agent!r} began with another prompt",
                place=self.workflow_id,
                hint="Use a new workflow id for a new question; the same id goes on with the old one.",
            )
        if step_id not in self.results:
            data = {"attempt": known.get("attempt", 0) + 1, "prompt": prompt}
            self._record(run_events.AGENT_STARTED, step_id, agent, data)

    def complete(
        self, step_id: str, agent: str, data: Mapping[str, Any], type: CheckpointType | None = None
    ) -> None:
        """Record what came of an operation, or of a run: that with a checkpoint."""
        if step_id not in self.results:
            told = {"attempt": self._known(step_id).get("attempt", 1), **data}
            self._record(run_events.AGENT_COMPLETED, step_id, agent, told, type)

    def _known(self, step_id: str) -> Mapping[str, Any]:
        known: Mapping[str, Any] = self._fields.get("agent_states", {}).get(step_id, {})
        return known

    def _record(
        self, kind: str, step_id: str, agent: str | None, data: Any, type: CheckpointType | None = None
    ) -> None:
        command, recording = AppendEvent(self.workflow_id, kind, data, agent, step_id), self._recording
        with self._mutex:
            # The state follows the journal in its order: a checkpoint has everything that came before it.
            ticket = recording.event(command)
            self._fields = reduce(self._fields, [ticket.result], recording.reducers)
            self._since_checkpoint += 1
            if type is not None or self._since_checkpoint >= _OPERATIONS_PER_CHECKPOINT:
                self._since_checkpoint = 0
                state = WorkflowState.from_fields(self._fields)
                ticket = recording.checkpoint(self.workflow_id, state, {"type": type, "force": True})
        recording.wait(ticket)


#: What is running here: the workflow, and the operation in it.
_WORKFLOW: ContextVar[HoldfastWorkflow | None] = ContextVar("holdfast_pydantic_ai_workflow", default=None)
_OPERATION: ContextVar[str] = ContextVar("holdfast_pydantic_ai_operation", default="")


class _Operations(durable.JournalCallableOperationBackend[None]):
    """Answers operations from the journal, and puts those into it that are not there."""

    def __init__(self, agent: str, default_model_id: str | None) -> None:
        config = durable.RoleBasedOperationConfig(model=None, event=None, capability=None, tool=None)
        super().__init__(agent_name=agent, default_model_id=default_model_id, config=config)
        self._agent = agent

    async def execute(
        self,
        *,
        operation_id: durable.DurableOperationId,
        name: str,
        body: Callable[[], Awaitable[object]],
        cache_key: tuple[object, ...],
        config: None,
    ) -> object:
        workflow, call = _WORKFLOW.get(), _call(cache_key)
        assert workflow is not None, "operations are durable in a workflow only"
        step_id = workflow.counted(_step(cache_key, name, call))
        if step_id in workflow.results:
            # What is made of it may be changed by whoever gets it.
            return deepcopy(workflow.results[step_id])
        token = _OPERATION.set(step_id)
        try:
            result = await body()
        finally:
            _OPERATION.reset(token)
        data = {"result": result, "operation": name, "tool_call": call}
        await asyncio.to_thread(workflow.complete, step_id, self._agent, data)
        return result


def _call(cache_key: tuple[object, ...]) -> str | None:
    """Answer the id that the model gave a call: the same again, in whichever order calls are made."""
    ids = (getattr(one, "tool_call_id", None) for one in cache_key)
    return next((one for one in ids if isinstance(one, str)), None)


def _step(cache_key: tuple[object, ...], name: str, call: str | None = None) -> str:
    """Name what is done in a run: by a hash where names that others chose are long or not printable."""
    run_ids = (one.run_id for one in cache_key if isinstance(one, RunContext))
    step = f"{next(run_ids, '')}/{name}" + (f"[{digest(call)[:_CALL_CHARS]}]" if call else "")
    return step if len(step) <= _STEP_CHARS_MAX and step.isprintable() else digest(step)


def digest(text: str) -> str:
    """Answer the hash of a text, whatever is in it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class HoldfastDurability(durable.BaseDurabilityCapability[AgentDepsT]):
    """Makes each model call, tool call and MCP call of an agent an operation of a `HoldfastWorkflow`.

    Outside of a workflow the agent is what it was. Arguments are those of every durable engine of Pydantic
    AI: `models`, `event_stream_handler` and `name`.
    """

    engine_spec = durable.DurabilityEngineSpec(
        engine_name="Holdfast",
        durable_unit_noun="operation",
        durable_container_noun="workflow",
        codec=durable.JSON_CODEC,
        # A server is connected to by the first call that is not in the journal, and not before.
        toolset_lifecycles=dict(function="enter-always", mcp="enter-in-durable-unit", dynamic="enter-never"),
        unsupported_runtime_toolset_kinds=frozenset({"function", "mcp", "dynamic"}),
    )

    @property
    def in_durable_context(self) -> bool:
        """Tell whether a workflow is running here."""
        return _WORKFLOW.get() is not None

    def get_durable_operation_backend(self) -> _Operations:
        """Answer what runs operations."""
        return _Operations(self.name, self.default_model_id)

    def get_default_run_id(self) -> str | None:
        """Name a run by its place: the same when the program runs again."""
        workflow, operation = _WORKFLOW.get(), _OPERATION.get()
        if workflow is None:
            return None
        # Inside of a tool runs are counted by its call: whether another tool runs again must not matter.
        inside = f">{digest(operation)[:_CALL_CHARS]}" if operation else ""
        return workflow.counted(f"{workflow.workflow_id}{inside}")

    def get_default_conversation_id(self, run_id: str) -> str | None:
        """Name the conversation of a run that has none."""
        return durable.conversation_id_from_run_id(run_id) if self.in_durable_context else None

    async def wrap_run(self, ctx: RunContext[AgentDepsT], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Record the beginning and the end of a run."""
        workflow = _WORKFLOW.get()
        if workflow is None:
            return await super().wrap_run(ctx, handler=handler)
        asked = to_json(ctx.prompt, bytes_mode="base64", serialize_unknown=True)
        step_id, prompt = _step((ctx,), "run"), hashlib.sha256(asked).hexdigest()
        await asyncio.to_thread(workflow.begin_run, step_id, self.name, prompt)
        result = await super().wrap_run(ctx, handler=handler)
        told = _told(result, prompt)
        await asyncio.to_thread(workflow.complete, step_id, self.name, told, CheckpointType.AGENT_COMPLETE)
        return result


def _told(result: AgentRunResult[Any], prompt: str) -> dict[str, Any]:
    """Tell of a run that is over what people want to see; no run reads its output from here."""
    output = to_jsonable_python(result.output, bytes_mode="base64", serialize_unknown=True)
    return {
        "result": {"prompt": prompt, "output": output},
        "messages": ModelMessagesTypeAdapter.dump_python(result.new_messages(), mode="json"),
        "outputs": [output],
        "metrics": {name: getattr(result.usage, name) for name in _METRICS},
    }


def opened(store: str | CheckpointService) -> CheckpointService:
    """Open a store that is given by its URL."""
    return holdfast.open(store) if isinstance(store, str) else store


def close(store: str | CheckpointService, service: CheckpointService) -> None:
    """Close a service that was opened here."""
    if service is not store:
        service.close()
