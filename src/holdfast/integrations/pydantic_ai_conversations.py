"""Pydantic AI on Holdfast: a store of conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from holdfast.application.service import CheckpointService
from holdfast.domain import errors
from holdfast.domain.checkpoint import Checkpoint
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import workflow_name
from holdfast.integrations.pydantic_ai import close, opened

with framework("pydantic-ai-slim", "2.66", "2.67", extra="pydantic-ai"):
    from pydantic import TypeAdapter, ValidationError
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import ModelMessagesTypeAdapter

_ROOM = "conversation:"
_RECORD = TypeAdapter(ConversationRecord)
#: Each entry, and the one before it.
_LINKS = TypeAdapter(list[tuple[str, str | None]])


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
        self._service = await asyncio.to_thread(opened, self._store)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(close, self._store, self._service)

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
        workflow_id = workflow_name(_ROOM, conversation_id)
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
        return (one for one in self._service.workflows() if one.startswith(_ROOM))

    def _write(
        self, record: ConversationRecord, new_entries: Sequence[ConversationEntry], expected: str | None
    ) -> None:
        sequence, known = self._newest(record.conversation_id)
        if known is not None and known.revision == record.revision != expected:
            return
        _check_revision(record.conversation_id, known, expected)
        workflow_id = workflow_name(_ROOM, record.conversation_id)
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
                workflow_name(_ROOM, conversation_id),
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
