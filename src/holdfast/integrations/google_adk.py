"""Google ADK: a session service that keeps sessions, and what they share, in any store of Holdfast."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import OrderedDict
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from holdfast.application.aio import AsyncCheckpointService
from holdfast.bootstrap import open_async
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointReadError,
    CheckpointWriteError,
)
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import names_begin, workflow_name

with framework("google-adk", "2.13", "2.14", extra="google-adk"):
    from google.adk.errors import StaleSessionError
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.errors.session_not_found_error import SessionNotFoundError
    from google.adk.events.event import Event
    from google.adk.events.event_actions import EventActions
    from google.adk.platform import time as platform_time
    from google.adk.sessions import BaseSessionService, Session, State
    from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse
    from pydantic import ValidationError

_DELETED = "deleted"
_KNOWN_MAX = 64
#: Each conflict means that somebody else got further, so this many in a row need a crowd.
_TRIES = 200
_PAUSE_SECONDS = 0.02
_NAMES = ("app_name", "user_id", "session_id")
_STALE = "The session was changed in the store since it was got. Get it again and repeat the change."

_Plain = dict[str, Any]
_Stored = WorkflowState | None


def _number(state: _Stored) -> int:
    return 0 if state is None else int(str(state.checkpoint_id).rpartition("@")[2])


class _Cells:
    """States by the names of workflows; one is replaced only by whoever has seen it."""

    def __init__(self, store: str | AsyncCheckpointService) -> None:
        self._store, self._is_owner = store, isinstance(store, str)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def lock(self, name: str) -> asyncio.Lock:
        """Answer what keeps the tasks of this process from running into each other's conflicts."""
        return self._locks.setdefault(name, asyncio.Lock())

    async def service(self) -> AsyncCheckpointService:
        """Answer the open service."""
        async with self.lock(""):
            if isinstance(self._store, str):
                self._store = await open_async(self._store)
            return self._store

    async def close(self) -> None:
        """Close the service if it was opened here."""
        if self._is_owner and not isinstance(self._store, str):
            await self._store.close()

    async def load(self, name: str) -> _Stored:
        """Answer the last state of a workflow, if it was not deleted."""
        state = await (await self.service()).load_latest(name)
        return None if state is None or state.status == _DELETED else state

    async def newest(self, name: str) -> int:
        """Answer the number of the last checkpoint of a workflow, 0 if there is none."""
        found = await (await self.service()).list_checkpoints(name, 1)
        return found[0].id.sequence if found else 0

    async def commit(self, name: str, state: WorkflowState, before: _Stored) -> WorkflowState:
        """Put a state after the one it was made from, or raise CheckpointConflictError."""
        service, after = await self.service(), _number(before)
        try:
            made = await service.create_checkpoint(name, state, expected_sequence=after, force=True)
        except CheckpointConflictError:
            # Somebody may have recorded an event, which is no change of the state.
            if await self.newest(name) != after:
                raise
            made = await service.create_checkpoint(name, state, expected_sequence=after, force=True)
        return replace(state, checkpoint_id=str(made))

    async def clear(self, name: str, before: WorkflowState) -> None:
        """Leave nothing of a workflow but its numbers, so that whoever saw it cannot write it any more."""
        service = await self.service()
        # First, because it is refused where something has to stay.
        await service.prune_checkpoints(name, 0, 0)
        marker = WorkflowState(status=_DELETED, metadata=before.metadata)
        last = _number(await self.commit(name, marker, before))
        for meta in await service.list_checkpoints(name, last):
            await service.delete(meta.id)

    async def mark(self, name: str, metadata: _Plain) -> None:
        """Put a marker where everything was deleted, to write after; nobody else writes meanwhile."""
        service = await self.service()
        lease = await service.acquire_lease(name, uuid.uuid4().hex)
        try:
            if await service.load_latest(name) is None:
                await service.create_checkpoint(name, WorkflowState(status=_DELETED, metadata=metadata))
        finally:
            await service.release_lease(lease)


class _Shelf(_Cells):
    """Sessions, and the state that they share, each scope of it in a workflow of its own.

    A commit is of one workflow, and an event may change three. So a change is announced in its scope first,
    with the number of the checkpoint that the session is at. It counts once the session holds what caused
    it, and never if another checkpoint took that place. Whoever comes next finishes what was cut short.
    """

    async def shared(self, scope: tuple[str, ...], prefix: str = "") -> _Plain:
        """Answer what counts at the moment, with a prefix to its keys."""
        stored = await self.load(workflow_name(*scope))
        state = (await self._settled(stored.context))["state"] if stored else {}
        return {prefix + key: value for key, value in state.items()}

    async def settle(self, scope: tuple[str, ...], *announced: _Plain) -> None:
        """Carry out what was decided, and announce changes, however many others do."""
        name = workflow_name(*scope)
        fresh = WorkflowState(context={"state": {}, "pending": []}, metadata={"scope": list(scope)})
        async with self.lock(name):
            for _ in range(_TRIES):
                stored = await self.load(name)
                before = stored or fresh
                context = await self._settled(before.context)
                context["pending"] += announced
                if context == before.context:
                    return
                with suppress(CheckpointConflictError):
                    await self.commit(name, replace(before, context=context), stored)
                    return
                await asyncio.sleep(random.random() * _PAUSE_SECONDS)
        raise CheckpointWriteError("others change this, or keep it", place=name, hint="Try again.")

    async def _settled(self, context: _Plain) -> _Plain:
        """Apply what counts in the order it was announced in, drop what never will, leave what is open."""
        state, pending = dict(context["state"]), []
        for intent in context["pending"]:
            counts = await self._counts(intent)
            if counts is None:
                pending.append(intent)
            elif counts:
                state |= intent["delta"]
        return {"state": state, "pending": pending}

    async def _counts(self, intent: _Plain) -> bool | None:
        """Tell whether a session holds the cause of a change; None while it still may come to hold it."""
        try:
            if await self.newest(intent["session"]) <= intent["after"]:
                return None
            state = await self.load(intent["session"]) or WorkflowState()
        except CheckpointReadError:
            # One damaged session must not keep all the others from what they share.
            return None
        return intent["cause"] in [state.metadata.get("created"), *(one.get("id") for one in state.messages)]


def _shared_by(app_name: str, user_id: str) -> dict[str, tuple[str, ...]]:
    """Answer the scopes of a session, by the prefixes of their keys."""
    return {State.APP_PREFIX: ("adk-app/", app_name), State.USER_PREFIX: ("adk-user/", app_name, user_id)}


class HoldfastSessionService(BaseSessionService, AbstractAsyncContextManager["HoldfastSessionService"]):
    """Sessions of ADK in a store of Holdfast: durable, verified, and never overwritten unseen.

    Args:
        store: a URL, opened when it is first needed and closed by `close()`; or an open service, left open.
    """

    def __init__(self, store: str | AsyncCheckpointService) -> None:
        self._shelf = _Shelf(store)
        #: What was written last, so that the next event of a session need not read it.
        self._known: OrderedDict[str, WorkflowState] = OrderedDict()

    async def create_session(
        self, *, app_name: str, user_id: str, state: _Plain | None = None, session_id: str | None = None
    ) -> Session:
        """Begin a session.

        Raises:
            AlreadyExistsError: there is one of that name.
        """
        session_id = (session_id or "").strip() or str(uuid.uuid4())
        deltas = _by_scope(EventActions(state_delta=state or {}).model_dump(mode="json")["state_delta"])
        names = dict(zip(_NAMES, (app_name, user_id, session_id), strict=True))
        context, cause = {"state": deltas[""], "last_update_time": platform_time.get_time()}, uuid.uuid4().hex
        begun = WorkflowState(context=context, metadata={**names, "created": cause})
        name = workflow_name("adk/", *names.values())
        async with self._shelf.lock(name):
            for _ in range(_TRIES):
                before = await (await self._shelf.service()).load_latest(name)
                if before is not None and before.status != _DELETED:
                    break
                try:
                    return await self._session(await self._write(name, before, begun, cause, deltas), [])
                except CheckpointConflictError:
                    if await self._shelf.newest(name) == 0:
                        await self._shelf.mark(name, names)
        raise AlreadyExistsError(f"Session with id {session_id} already exists.")

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """Answer a session with what it shares with others; None if there is none.

        Raises:
            CheckpointCorruptError: what is stored there is no session of that name.
        """
        session_id = session_id.strip()
        state = await self._shelf.load(workflow_name("adk/", app_name, user_id, session_id))
        if state is None:
            return None
        if [state.metadata.get(name) for name in _NAMES] != [app_name, user_id, session_id]:
            raise CheckpointCorruptError("this is another session", place=str(state.checkpoint_id))
        return await self._session(state, _chosen(state.messages, config))

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """List the sessions of a user, or of all users, without their events, oldest activity first."""
        prefix = names_begin("adk/", app_name, *([] if user_id is None else [user_id]))
        names = filter(lambda name: name.startswith(prefix), await (await self._shelf.service()).workflows())
        states = [await self._shelf.load(name) for name in names]
        sessions = [await self._session(state, []) for state in states if state is not None]
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove a session; what it shared stays.

        Raises:
            CheckpointConflictError: another process is changing it; try again.
            LegalHoldError: it has to stay.
        """
        name = workflow_name("adk/", app_name, user_id, session_id.strip())
        async with self._shelf.lock(name):
            self._known.pop(name, None)
            if (state := await self._shelf.load(name)) is None:
                return
            # Whether a change counts can be told only while the session is there.
            for scope in _shared_by(app_name, user_id).values():
                await self._shelf.settle(scope)
            await self._shelf.clear(name, state)

    async def get_user_state(self, *, app_name: str, user_id: str) -> _Plain:
        """Answer what the sessions of a user share, by keys without prefix."""
        return await self._shelf.shared(_shared_by(app_name, user_id)[State.USER_PREFIX])

    async def append_event(self, session: Session, event: Event) -> Event:
        """Record an event durably, unless it was already, then apply it to the session given.

        Raises:
            SessionNotFoundError: the session was deleted, or never created.
            StaleSessionError: somebody else has changed it since it was got; nothing was recorded.
        """
        if event.partial:
            return event
        name = workflow_name("adk/", session.app_name, session.user_id, session.id)
        async with self._shelf.lock(name):
            state = await self._record(name, session, _dumped(event))
            session.last_update_time = state.context["last_update_time"]
            session._storage_update_marker = state.checkpoint_id
            is_applied = any(one.id == event.id for one in session.events)
            return event if is_applied else await super().append_event(session=session, event=event)

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._shelf.close()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _record(self, name: str, session: Session, event: _Plain) -> WorkflowState:
        """Put an event at the end of a session that holds what was seen of it, and nothing else."""
        state = self._known.pop(name, None)
        if state is None or state.checkpoint_id != session._storage_update_marker:
            state = await self._shelf.load(name)
        if state is None:
            raise SessionNotFoundError(f"Session {session.id} not found.")
        is_seen = _is_seen(session, state)
        stored = [_identity(one) for one in state.messages]
        if _identity(event) not in (stored if is_seen else stored[-1:]):
            if not is_seen:
                raise StaleSessionError(_STALE)
            deltas = _by_scope(event["actions"]["state_delta"])
            context = {"state": state.context["state"] | deltas[""], "last_update_time": event["timestamp"]}
            messages = [*state.messages, event]
            following = replace(state, messages=messages, current_step=len(messages), context=context)
            try:
                state = await self._write(name, state, following, event["id"], deltas)
            except CheckpointConflictError as conflict:
                raise StaleSessionError(_STALE) from conflict
        self._known[name] = state
        if len(self._known) > _KNOWN_MAX:
            self._known.popitem(last=False)
        return state

    async def _write(
        self, name: str, before: _Stored, state: WorkflowState, cause: str, deltas: dict[str, _Plain]
    ) -> WorkflowState:
        """Commit a session, and what it shares if and only if that is committed."""
        scopes = _shared_by(state.metadata["app_name"], state.metadata["user_id"])
        shared = {scope: deltas[prefix] for prefix, scope in scopes.items() if deltas[prefix]}
        for scope, delta in shared.items():
            intent = {"session": name, "after": _number(before), "cause": cause, "delta": delta}
            await self._shelf.settle(scope, intent)
        try:
            return await self._shelf.commit(name, state, before)
        finally:
            # It counts, or never will, from here on: what fails now is carried out by whoever comes next.
            for scope in shared:
                with suppress(CheckpointWriteError):
                    await self._shelf.settle(scope)

    async def _session(self, state: WorkflowState, messages: list[Any]) -> Session:
        """Make a session of what is stored, each event checked by ADK's own model."""
        try:
            names = {name: state.metadata[name] for name in _NAMES[:2]}
            merged = dict(state.context["state"])
            for prefix, scope in _shared_by(**names).items():
                merged |= await self._shelf.shared(scope, prefix)
            session = Session(
                **names,
                id=state.metadata["session_id"],
                state=merged,
                events=[Event.model_validate(message) for message in messages],
                last_update_time=state.context["last_update_time"],
            )
        except (ValidationError, KeyError) as problem:
            raise CheckpointCorruptError("this is no session", place=str(state.checkpoint_id)) from problem
        session._storage_update_marker = state.checkpoint_id
        return session


def _dumped(event: Event) -> _Plain:
    """Answer ADK's own JSON form of an event, without state that lives no longer than the invocation."""
    plain: _Plain = event.model_dump(mode="json", exclude_none=True)
    delta = plain["actions"]["state_delta"]
    kept = {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}
    plain["actions"]["state_delta"] = kept
    return plain


def _by_scope(delta: _Plain) -> dict[str, _Plain]:
    """Divide a change by the prefixes of its keys, which are taken off."""
    scopes: dict[str, _Plain] = {State.APP_PREFIX: {}, State.USER_PREFIX: {}, State.TEMP_PREFIX: {}, "": {}}
    for key, value in delta.items():
        prefix = next(one for one in scopes if key.startswith(one))
        scopes[prefix][key.removeprefix(prefix)] = value
    return scopes


def _identity(message: _Plain) -> tuple[Any, ...]:
    return tuple(message.get(name) for name in ("id", "invocation_id", "author", "timestamp"))


def _is_seen(session: Session, state: WorkflowState) -> bool:
    """Tell whether a session that was handed out, or made by hand, is the one that is stored."""
    if session._storage_update_marker is not None:
        return session._storage_update_marker == state.checkpoint_id
    return [event.id for event in session.events[-1:]] == [one.get("id") for one in state.messages[-1:]]


def _chosen(messages: list[Any], config: GetSessionConfig | None) -> list[Any]:
    config = config or GetSessionConfig()
    after, count = config.after_timestamp, config.num_recent_events
    chosen = [message for message in messages if after is None or message["timestamp"] >= after]
    return chosen if count is None else chosen[max(len(chosen) - count, 0) :]
