"""Pydantic AI on Holdfast: a durable engine for runs of agents, and a store of conversations."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from copy import deepcopy
from itertools import chain
from typing import Any

import holdfast
from holdfast.application.commands import AppendEvent
from holdfast.application.service import CheckpointService
from holdfast.domain import errors, run_events
from holdfast.domain.checkpoint import Checkpoint, CheckpointType
from holdfast.domain.ids import MAX_ID_CHARS, check_workflow_id
from holdfast.domain.reducers import reduce
from holdfast.domain.state import WorkflowState
from holdfast.execution.leases import KEEPER
from holdfast.integrations.framework import framework

with framework("pydantic-ai-slim", "2.66", "3", extra="pydantic-ai"):
    from pydantic import TypeAdapter, ValidationError
    from pydantic_ai import durable_exec as durable
    from pydantic_ai.agent import AgentRunResult
    from pydantic_ai.capabilities.abstract import WrapRunHandler
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter
    from pydantic_ai.tools import AgentDepsT, RunContext
    from pydantic_core import to_json, to_jsonable_python

_LEASE_SECONDS = 30.0
#: So many operations lie at most between two checkpoints: that bounds what is replayed on the way back.
_OPERATIONS_PER_CHECKPOINT = 50
_STEP_CHARS_MAX = 200
_CALL_CHARS = 12
_METRICS = ("requests", "tool_calls", "input_tokens", "output_tokens")
_CONVERSATION = "conversation:"
#: Before the hash of an id that is too long for a name.
_HASHED = "conversation~"
_RECORD = TypeAdapter(ConversationRecord)
#: Each entry, and the one before it.
_LINKS = TypeAdapter(list[tuple[str, str | None]])


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
        self._service = _opened(self._store)
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
            _close(self._store, self._service)
            raise

    def _read(self) -> None:
        state = WorkflowState(workflow_id=self.workflow_id)
        if self._recording.exists(self.workflow_id):
            state = self._service.restore_checkpoint(self._recording.newest(self.workflow_id))
        self._fields = state.to_fields()
        #: Results by step, as they were when this process began.
        self.results = {task["id"]: task["result"] for task in state.tasks}

    def _give_up(self) -> None:
        KEEPER.drop(self._lease)
        self._recording.give_up(self._lease)

    def _end(self, *, is_over: bool) -> None:
        try:
            if is_over and self._fields["status"] != "completed":
                data = {"fields": {"status": "completed", "resumable": False}}
                self._record(run_events.RUN_UPDATED, "end", None, data, CheckpointType.WORKFLOW_COMPLETE)
        finally:
            self._give_up()
            _close(self._store, self._service)

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
    step = f"{next(run_ids, '')}/{name}" + (f"[{_digest(call)[:_CALL_CHARS]}]" if call else "")
    return step if len(step) <= _STEP_CHARS_MAX and step.isprintable() else _digest(step)


def _digest(text: str) -> str:
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
        inside = f">{_digest(operation)[:_CALL_CHARS]}" if operation else ""
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


def _opened(store: str | CheckpointService) -> CheckpointService:
    return holdfast.open(store) if isinstance(store, str) else store


def _close(store: str | CheckpointService, service: CheckpointService) -> None:
    """Close a service that was opened here."""
    if service is not store:
        service.close()


class HoldfastConversationStore(ConversationStore):
    """Conversations of Pydantic AI in a Holdfast store: each is a workflow, each save a checkpoint.

    Use it with `async with` if it is given a URL. A fork has a copy of the history that it goes on from, so
    that no conversation depends on another. What was deleted neither loads nor lists; its checkpoints stay
    until they are pruned or erased.

    Args:
        store: a URL, or an open service, which stays open.
    """

    def __init__(self, store: str | CheckpointService) -> None:
        self._store = store
        if not isinstance(store, str):
            self._service = store
        #: Where the histories of conversations end, by their workflows.
        self._ends: dict[str, set[str | None]] = {}

    async def __aenter__(self) -> HoldfastConversationStore:
        self._service = await asyncio.to_thread(_opened, self._store)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(_close, self._store, self._service)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Answer the record of a conversation, without reading its history."""
        return (await asyncio.to_thread(self._newest, conversation_id))[1]

    async def read_records(
        self, *, scope: str | None = None, limit: int | None = None
    ) -> Sequence[ConversationRecord]:
        """Answer the records, newest first; no history is read."""
        return (await asyncio.to_thread(self._records, scope))[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries in one commit; the same one again changes nothing."""
        await asyncio.to_thread(self._write, record, new_entries, expected_revision)

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Have a conversation no more."""
        await asyncio.to_thread(self._delete, conversation_id, expected_revision)

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Answer an entry, wherever it is."""
        return (await self.read_history(entry_id, limit=1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Answer the entries up to one of them, with one read of its conversation."""
        return await asyncio.to_thread(self._history, head_id, limit)

    def _newest(self, conversation_id: str) -> tuple[int, ConversationRecord | None]:
        """Answer the sequence of the last checkpoint, 0 for none, and the record unless it is deleted."""
        workflow_id = conversation_workflow(conversation_id)
        checkpoint = self._service.get_by_id(f"{workflow_id}@latest")
        if checkpoint is None:
            return 0, None
        record = _record_of(checkpoint)
        if record is not None:
            if record.conversation_id != conversation_id:
                raise _unreadable(checkpoint.id, "this is the record of another one")
            self._ends[workflow_id] = {record.head_id, *record.branches}
        return checkpoint.id.sequence, record

    def _records(self, scope: str | None) -> list[ConversationRecord]:
        found = (self._service.get_by_id(f"{workflow_id}@latest") for workflow_id in self._workflows())
        records = (_record_of(checkpoint) for checkpoint in found if checkpoint is not None)
        wanted = (one for one in records if one is not None and scope in (None, one.scope))
        return sorted(wanted, key=lambda record: record.updated_at, reverse=True)

    def _workflows(self) -> Iterator[str]:
        return (one for one in self._service.workflows() if one.startswith((_CONVERSATION, _HASHED)))

    def _write(
        self, record: ConversationRecord, new_entries: Sequence[ConversationEntry], expected: str | None
    ) -> None:
        sequence, known = self._newest(record.conversation_id)
        if known is not None and known.revision == record.revision != expected:
            return
        _check_revision(record.conversation_id, known, expected)
        workflow_id = conversation_workflow(record.conversation_id)
        state = self._service.load_latest(workflow_id) if known is not None else None
        state = state or WorkflowState(metadata={"conversation_id": record.conversation_id})
        entries = [*self._borrowed(state, record, new_entries), *new_entries]
        state.messages += ModelMessagesTypeAdapter.dump_python([one.message for one in entries], mode="json")
        links = [[entry.id, entry.parent_id] for entry in entries]
        state.context["entries"] = [*state.context.get("entries", ()), *links]
        self._commit(record.conversation_id, sequence, state, _RECORD.dump_python(record, mode="json"))
        self._ends[workflow_id] = {record.head_id, *record.branches}

    def _delete(self, conversation_id: str, expected: str) -> None:
        sequence, known = self._newest(conversation_id)
        _check_revision(conversation_id, known, expected)
        self._commit(conversation_id, sequence, WorkflowState(status="deleted", resumable=False), None)

    def _commit(self, conversation_id: str, sequence: int, state: WorkflowState, record: Any) -> None:
        try:
            self._service.create_checkpoint(
                conversation_workflow(conversation_id),
                state,
                agent_id="conversation",
                agent_state={"record": record},
                expected_sequence=sequence,
                force=True,
            )
        except (errors.LeaseHeldError, errors.LeaseLostError):
            raise
        except errors.CheckpointConflictError as lost:
            raise ConversationConflict(conversation_id) from lost

    def _borrowed(
        self, state: WorkflowState, record: ConversationRecord, new_entries: Sequence[ConversationEntry]
    ) -> list[ConversationEntry]:
        """Answer the history of another conversation that this one goes on from, if it does."""
        known = {None, *_links(state), *(entry.id for entry in new_entries)}
        wanted = (record.head_id, *(entry.parent_id for entry in new_entries))
        try:
            return self._history(next((one for one in wanted if one not in known), None), None)
        except KeyError as gone:
            raise ConversationConflict(record.conversation_id) from gone

    def _history(self, head_id: str | None, limit: int | None) -> list[ConversationEntry]:
        if head_id is None or limit == 0:
            return []
        state = self._state_with(head_id)
        links, history = _links(state), list[ConversationEntry]()
        while head_id is not None and len(history) != limit:
            try:
                # Taken out: a history that leads back to itself has no beginning.
                place, parent_id = links.pop(head_id)
                [message] = ModelMessagesTypeAdapter.validate_python([state.messages[place]])
            except (LookupError, ValidationError) as problem:
                raise _unreadable(state.checkpoint_id, f"entry {head_id!r} is none") from problem
            history.append(ConversationEntry(id=head_id, parent_id=parent_id, message=message))
            head_id = parent_id
        return history[::-1]

    def _state_with(self, entry_id: str) -> WorkflowState:
        """Answer the conversation that has an entry: one that ends with it, or whichever of all it is."""
        ending = (workflow_id for workflow_id, ends in [*self._ends.items()] if entry_id in ends)
        for workflow_id in chain(ending, self._workflows()):
            state = self._service.load_latest(workflow_id)
            if state is not None and entry_id in _links(state):
                return state
        raise KeyError(entry_id)


def conversation_workflow(conversation_id: str) -> str:
    """Name the workflow of a conversation: escaped, and by a hash where that is too long for a name."""
    escaped = "".join(map(_escaped, conversation_id))
    fits = len(_CONVERSATION) + len(escaped) <= MAX_ID_CHARS
    return _CONVERSATION + escaped if fits else _HASHED + _digest(conversation_id)


def _escaped(character: str) -> str:
    if character.isprintable() and character not in "% ":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _check_revision(conversation_id: str, known: ConversationRecord | None, expected: str | None) -> None:
    if (known.revision if known is not None else None) != expected:
        raise ConversationConflict(conversation_id)


def _record_of(checkpoint: Checkpoint) -> ConversationRecord | None:
    record = checkpoint.agent_state.get("record")
    try:
        return None if record is None else _RECORD.validate_python(record)
    except ValidationError as problem:
        raise _unreadable(checkpoint.id, "there is no record") from problem


def _links(state: WorkflowState) -> dict[str, tuple[int, str | None]]:
    """Answer where the message of each entry is, and which entry is before it."""
    try:
        links = _LINKS.validate_python(state.context.get("entries", []))
    except ValidationError as problem:
        raise _unreadable(state.checkpoint_id, "there are no entries") from problem
    return {entry_id: (place, parent_id) for place, (entry_id, parent_id) in enumerate(links)}


def _unreadable(place: object, why: str) -> errors.CheckpointCorruptError:
    return errors.CheckpointCorruptError(f"a conversation cannot be read, {why}", place=str(place))
