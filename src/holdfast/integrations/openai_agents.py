"""Under the OpenAI Agents SDK: conversations that last, and paused runs under a seal."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn, Self, TypeVar

from holdfast import bootstrap
from holdfast.application.commands import AppendEvent, CheckpointOptions
from holdfast.application.service import CheckpointService
from holdfast.domain import errors
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.ids import check_id
from holdfast.domain.json_reading import read_json
from holdfast.domain.run_events import APPROVAL_DENIED, APPROVAL_GRANTED, APPROVAL_REQUESTED
from holdfast.domain.state import WorkflowState
from holdfast.integrations.framework import framework
from holdfast.integrations.names import workflow_name

with framework("openai-agents", "0.24", "0.25", extra="openai-agents"):
    from agents import Agent, RunState
    from agents.items import TResponseInputItem
    from agents.memory import SessionSettings
    from agents.memory.session_settings import resolve_session_limit
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_Answer = TypeVar("_Answer")
_Store = str | CheckpointService
_Items = list[TResponseInputItem]
_SESSIONS, _RUNS = "agents-session:", "agents-run:"
#: So often a writer tries again when another was first.
_TRIES_MAX = 200
_NONCE_BYTES = 12


class _StoreUser:
    """Uses an open service, or opens one when it is first needed and closes it."""

    def __init__(self, store: _Store) -> None:
        self._url = store if isinstance(store, str) else None
        self._opened = None if isinstance(store, str) else store
        self._mutex = threading.Lock()

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._url is not None and self._opened is not None:
            await asyncio.to_thread(self._opened.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def _service(self) -> CheckpointService:
        with self._mutex:
            if self._opened is None:
                self._opened = bootstrap.open(self._url)
            return self._opened

    def _commit(self, state: WorkflowState, before: int) -> None:
        """Make a checkpoint durable, if the one before it is still the newest."""
        # A conversation, or a run that waits, is nothing to recover: only what was taken can be cut short.
        kind = CheckpointType.SYNC_BARRIER if state.status == "taken" else CheckpointType.WORKFLOW_COMPLETE
        told: CheckpointOptions = {"type": kind, "expected_sequence": before}
        recording = self._service().recording
        recording.wait(recording.checkpoint(state.workflow_id, state, told))


class HoldfastSession(_StoreUser):
    """A conversation, as `agents.memory.Session` has it; each change is durable when the call returns."""

    def __init__(
        self, session_id: str, store: _Store, *, session_settings: SessionSettings | None = None
    ) -> None:
        """Use a conversation, by any text that names it, in a store that is open or named by its URL."""
        super().__init__(store)
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self.workflow_id = workflow_name(_SESSIONS, session_id)

    async def get_items(self, limit: int | None = None) -> _Items:
        """Read the newest items, the oldest of them first; all where no limit is set."""
        wanted = resolve_session_limit(limit, self.session_settings)
        items = (await asyncio.to_thread(self._read))[1]
        return items if wanted is None or wanted < 0 else items[max(len(items) - wanted, 0) :]

    async def add_items(self, items: _Items) -> None:
        """Add items, which are JSON, at the end, after those that other writers added meanwhile."""
        added = read_json(json.dumps(items))
        await _decided(lambda: self._change(lambda known: [*known, *added]))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the newest item away and answer it; None if there is none."""
        before = await _decided(lambda: self._change(lambda known: known[:-1]))
        return before[-1] if before else None

    async def clear_session(self) -> None:
        """Begin anew with no items; earlier checkpoints stay in the store."""
        await self.rewind(0)

    async def rewind(self, count: int) -> None:
        """Go back to the first so many items, after a turn that was cut short."""
        await _decided(lambda: self._change(lambda known: known[:count]))

    def _read(self) -> tuple[int, _Items]:
        """Answer the number of the newest checkpoint, and the items in it."""
        state = self._service().load_latest(self.workflow_id)
        if state is None:
            return 0, []
        try:
            items = read_json(json.dumps(state.messages))
        except (TypeError, ValueError) as fault:
            problem = f"the conversation holds what is no item ({fault})"
            raise errors.CheckpointCorruptError(problem, place=state.checkpoint_id or "") from fault
        return _sequence(state), items

    def _change(self, change: Callable[[_Items], _Items], tries: int = _TRIES_MAX) -> _Items:
        """Change the newest items, however many others change them too; answers those before."""
        sequence, before = self._read()
        state = WorkflowState(workflow_id=self.workflow_id, messages=change(before))
        state.metadata["session"] = ascii(self.session_id)
        while len(state.messages) != len(before):
            try:
                self._commit(state, sequence)
                break
            except errors.CheckpointConflictError as conflict:
                if isinstance(conflict, errors.LeaseHeldError | errors.LeaseLostError) or not tries:
                    raise
            tries -= 1
            sequence, before = self._read()
            state.messages = change(before)
        return before


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call that a paused run asks about, and the answer: None while nobody gave one."""

    call_id: str
    tool: str
    arguments: str
    agent: str
    granted: bool | None = None
    by: str | None = None
    #: The model is told that of a refusal.
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class KeptRun:
    """How a run in the vault stands: it waits for answers, somebody went on with it, or it is over."""

    status: Literal["waiting", "taken", "completed"]
    calls: tuple[AskedCall, ...] = ()
    sequence: int = 0
    #: The run in the SDK's own form; None once it is completed.
    state: dict[str, Any] | None = field(default=None, repr=False)
    #: How long its conversation was when it was paused.
    session_items: int | None = None


class HoldfastRunVault(_StoreUser):
    """Keeps paused runs under a seal, and gives back exactly what was put in, once.

    The SDK's own form of a run authenticates nothing: who can write it can write an approval into it.
    """

    def __init__(self, store: _Store, *, key: str, marks: str | Path | None = None) -> None:
        """Use the vault of a store.

        Args:
            store: an open service, or the URL of a store that is opened when first needed.
            key: where 32 bytes are: `file:PATH` (mode 0600), `env:NAME` or `command:PROGRAM ARGUMENTS`.
            marks: a folder that those who write the store cannot write. How far each run is stands there too:
                a store that was put back to an earlier state is refused.
        """
        super().__init__(store)
        self._key = cache(bootstrap.key_source(key).fetch)
        self._marks = None if marks is None else Path(marks)
        self._held: dict[str, int] = {}

    async def keep(
        self, run_id: str, state: RunState[Any, Any], *, session: HoldfastSession | None = None, **form: Any
    ) -> KeptRun:
        """Keep a run that is paused, or note that it is completed.

        Args:
            run_id: any text.
            state: the run, by `to_state()` of what the runner answered.
            session: the run's conversation, so that `take` can put that back where it has to.
            form: how the SDK writes it: `context_serializer`, for a context that is no mapping.

        Raises:
            CheckpointConflictError: the run is in the vault, and was not taken from there by this object.
        """
        told = state.to_json(**{"strict_context": True, **form})
        if told["current_step"] is None:
            return await _decided(lambda: self._keep(run_id, KeptRun("completed")))
        items = None if session is None else len(await session.get_items(-1))
        kept = KeptRun("waiting", _asked(state), state=told, session_items=items)
        return await _decided(lambda: self._keep(run_id, kept))

    async def look(self, run_id: str) -> KeptRun | None:
        """Tell how a run stands; None if there is none. What the seal does not open is SealBrokenError."""
        return await asyncio.to_thread(self._read, run_id)

    async def answer(self, run_id: str, call_id: str, *, granted: bool, by: str, reason: str) -> KeptRun:
        """Grant or refuse a call, under the seal; the trail tells who did, and why.

        A call that waits for no answer is an InvalidStateError.
        """
        answer = {"granted": granted, "by": check_id("actor", by), "reason": reason}
        return await _decided(lambda: self._answer(run_id, call_id, **answer))

    async def take(
        self,
        run_id: str,
        agent: Agent[Any],
        *,
        again: bool = False,
        session: HoldfastSession | None = None,
        **form: Any,
    ) -> RunState[Any, Agent[Any]]:
        """Give out a paused run with its answers, to go on with; it is given out once.

        Args:
            run_id: as it was kept.
            agent: the one that the run began with.
            again: give it out once more, though whether its approved calls were made before is unknown.
            session: the run's conversation; what somebody before left in it goes, where it is `again`.
            form: how the SDK reads it: `context_deserializer`, `context_override`.

        Raises:
            CheckpointConflictError, InvalidStateError: somebody took it before, or it is completed.
            SealBrokenError: it is not what was kept.
        """
        kept = await asyncio.to_thread(self._found, run_id, again=again)
        state = await RunState.from_json(agent, kept.state or {}, **{"strict_context": True, **form})
        _apply(kept.calls, state)
        taken = await _decided(lambda: self._write(run_id, replace(kept, status="taken"), kept.sequence))
        self._held[run_id] = taken.sequence
        if session is not None and kept.status == "taken" and kept.session_items is not None:
            await session.rewind(kept.session_items)
        return state

    def _keep(self, run_id: str, kept: KeptRun) -> KeptRun:
        known, before = self._read(run_id), self._held.get(run_id, 0)
        if (known.sequence if known else 0) != before:
            problem = "the run is in the vault, and was not taken from there by this object"
            raise errors.CheckpointConflictError(problem, place=ascii(run_id), hint="Take it, then go on.")
        made = self._write(run_id, kept, before, *((APPROVAL_REQUESTED, call) for call in kept.calls))
        self._held.pop(run_id, None)
        return made

    def _answer(self, run_id: str, call_id: str, **answer: Any) -> KeptRun:
        kept = self._found(run_id)
        call = next((one for one in kept.calls if one.call_id == call_id), None)
        if kept.status != "waiting" or call is None or call.granted is not None:
            problem = f"the run is {kept.status}, and waits for no answer to this call"
            raise errors.InvalidStateError(problem, place=ascii(f"{run_id}: {call_id}"))
        answered = replace(call, **answer)
        calls = tuple(answered if one is call else one for one in kept.calls)
        kind = APPROVAL_GRANTED if answered.granted else APPROVAL_DENIED
        return self._write(run_id, replace(kept, calls=calls), kept.sequence, (kind, answered))

    def _write(self, run_id: str, kept: KeptRun, before: int, *told: tuple[str, AskedCall]) -> KeptRun:
        """Seal how a run stands for the place that it gets, and commit it there."""
        workflow_id, made = workflow_name(_RUNS, run_id), replace(kept, sequence=before + 1)
        shown = [{"call": one.call_id, "tool": one.tool, "granted": one.granted} for one in kept.calls]
        state = WorkflowState(
            workflow_id=workflow_id,
            status=kept.status,
            context={"calls": shown, "sealed": self._sealed(workflow_id, made)},
            metadata={"run": ascii(run_id)},
        )
        # The trail first: no answer counts that it does not tell.
        for event, call in told:
            command = AppendEvent(workflow_id, event, asdict(call), call.agent)
            self._service().recording.event(command, is_urgent=False)
        self._commit(state, before)
        self._mark(workflow_id, made.sequence)
        return made

    def _found(self, run_id: str, *, again: bool = True) -> KeptRun:
        kept, place = self._read(run_id), ascii(run_id)
        if kept is None or kept.status == "completed":
            raise errors.InvalidStateError("the run is completed, or was never kept", place=place)
        if kept.status == "taken" and not again:
            hint = "Its calls may have been made: find out, then take it with again=True."
            raise errors.CheckpointConflictError("the run was taken before", place=place, hint=hint)
        return kept

    def _read(self, run_id: str) -> KeptRun | None:
        """Answer how a run stands, if that was sealed for this run and place, and is the newest of it."""
        workflow_id = workflow_name(_RUNS, run_id)
        state = self._service().load_latest(workflow_id)
        sequence = 0 if state is None else _sequence(state)
        if sequence < self._marked(workflow_id):
            self._refuse(workflow_id, sequence, "the run was put back to an earlier state")
        if state is None:
            return None
        sealed, (cipher, place) = state.context.get("sealed", b""), self._cipher(workflow_id, sequence)
        try:
            plain = cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place)
        except (InvalidTag, LookupError, TypeError, ValueError):
            self._refuse(workflow_id, sequence, "this is not what was kept of the run")
        told = read_json(zlib.decompress(plain))
        return KeptRun(**{**told, "calls": tuple(AskedCall(**call) for call in told["calls"])})

    def _refuse(self, workflow_id: str, sequence: int, problem: str) -> NoReturn:
        # Where the trail is switched off, nobody can be told.
        told: dict[str, Any] = {"outcome": Outcome.REFUSED, "facts": {"cp_seq": sequence, "problem": problem}}
        with suppress(errors.ConfigError):
            self._service().audit.log_event(AuditType.INTEGRITY_FAILED, workflow_id=workflow_id, **told)
        hint = "Somebody changed the store, or the key is another one. Do not go on with this run."
        raise errors.SealBrokenError(problem, place=f"{workflow_id}@{sequence}", hint=hint)

    def _sealed(self, workflow_id: str, kept: KeptRun) -> bytes:
        (cipher, place), nonce = self._cipher(workflow_id, kept.sequence), os.urandom(_NONCE_BYTES)
        return nonce + cipher.encrypt(nonce, zlib.compress(json.dumps(asdict(kept)).encode()), place)

    def _cipher(self, workflow_id: str, sequence: int) -> tuple[AESGCM, bytes]:
        """Name a place, and derive its own key: no nonces are to be counted over all that is ever sealed."""
        place = json.dumps(["holdfast openai-agents run", 1, workflow_id, sequence]).encode()
        return AESGCM(hmac.digest(self._key(), place, "sha256")), place

    def _marked(self, workflow_id: str) -> int:
        marks = () if self._marks is None else self._marks.glob(f"{_hash(workflow_id)}.*")
        return max((int(mark.suffix[1:]) for mark in marks), default=0)

    def _mark(self, workflow_id: str, sequence: int) -> None:
        """Note how far a run is; a mark is the name of a file, so no writer takes another's back."""
        if self._marks is not None:
            self._marks.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._marks / f"{_hash(workflow_id)}.{sequence}").touch(mode=0o600)
            descriptor = os.open(self._marks, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


async def _decided(change: Callable[[], _Answer]) -> _Answer:
    """Make a change on another thread; a caller that is cancelled goes once it is done or has failed."""
    task = asyncio.ensure_future(asyncio.to_thread(change))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _asked(state: RunState[Any, Any]) -> tuple[AskedCall, ...]:
    calls = tuple(
        AskedCall(item.call_id or "", item.name or "", item.arguments or "", item.agent.name)
        for item in state.get_interruptions()
    )
    if len({call.call_id for call in calls} - {""}) != len(calls):
        problem = "calls of the run have no ids of their own: they could not be told apart later"
        raise errors.InvalidStateError(problem, place=", ".join(call.tool for call in calls))
    return calls


def _apply(calls: tuple[AskedCall, ...], state: RunState[Any, Any]) -> None:
    """Tell the SDK the answers; a call without one stays open."""
    answers = {call.call_id: call for call in calls}
    for item in state.get_interruptions():
        call = answers[item.call_id or ""]
        if call.granted:
            state.approve(item)
        elif call.granted is False:
            state.reject(item, rejection_message=call.reason)


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _sequence(state: WorkflowState) -> int:
    return int((state.checkpoint_id or "@0").rpartition("@")[2])
