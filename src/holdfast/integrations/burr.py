"""Burr: the state of its applications, kept by Holdfast.

Each application is a workflow of Holdfast, and each step of it a checkpoint that costs what the step changed.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Literal

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import open as open_service
from holdfast.domain import errors, msgpack
from holdfast.domain.checkpoint import CheckpointMeta, CheckpointType
from holdfast.domain.ids import CheckpointID
from holdfast.domain.plain import TypeRegistry, to_plain
from holdfast.domain.state import WorkflowState
from holdfast.domain.time import timestamp_text
from holdfast.integrations.framework import framework
from holdfast.integrations.names import names_begin, names_in, stage_name, workflow_name

with framework("apache-burr", "0.43", "0.44", extra="burr"):
    from burr.core import State
    from burr.core.application import PRIOR_STEP, SEQUENCE_ID
    from burr.core.persistence import AsyncBaseStatePersister, BaseStatePersister, PersistedStateData

_ROOM = "burr/"
_SHOWN_CHARS_MAX = 120
#: Fields of an application's state that hold a conversation, by the names that Burr's own examples give them.
_CONVERSATIONS = ("messages", "chat_history")

Status = Literal["completed", "failed"]


class HoldfastPersister(BaseStatePersister):
    """Keep the state of applications in a Holdfast store. Safe to use from several threads.

    What was saved is durable when `save` returns. Values come back as what they were; one of a type that
    nobody registered is refused, and the error tells where it stands.
    """

    def __init__(self, store: str | CheckpointService, *, registry: TypeRegistry | None = None) -> None:
        """Choose where state is kept.

        Args:
            store: a URL, closed by `close`; or an open service, which stays the caller's.
            registry: types of your own that a state may hold. A service has to be opened with the same one.
        """
        self._registry = registry or TypeRegistry()
        self._is_own = isinstance(store, str)
        self._service = open_service(store, registry=self._registry) if isinstance(store, str) else store

    def is_initialized(self) -> bool:
        """Tell that nothing has to be prepared: a store is made when it is first opened."""
        return True

    def save(
        self,
        partition_key: str | None,
        app_id: str,
        sequence_id: int,
        position: str,
        state: State[Any],
        status: Status,
        **kwargs: Any,
    ) -> None:
        """Store the state after a step durably; the same step again is stored once.

        Raises:
            CheckpointConflictError: another process has recorded this step, or a later one.
            UnsupportedTypeError: a value is of a type that nobody registered.
            InvalidStateError: this is the state from before the step, and not the one after it.
        """
        _check_fresh(state, position, status)
        saved = _workflow_state(partition_key, app_id, sequence_id, position, state, status)
        workflow_id = workflow_name(_ROOM, partition_key or "", app_id)
        last = self._last(workflow_id)
        if last is not None and self._is_repeated(last, saved):
            return
        self._service.create_checkpoint(
            workflow_id,
            saved,
            stage_id=stage_name(position),
            type=CheckpointType.STAGE_COMPLETE if status == "completed" else CheckpointType.ERROR_STATE,
            expected_sequence=last.id.sequence if last is not None else 0,
            force=True,
        )

    def load(
        self, partition_key: str | None, app_id: str | None, sequence_id: int | None = None, **kwargs: Any
    ) -> PersistedStateData | None:
        """Load the state after a step, every byte of it verified; None if there is none.

        Args:
            partition_key: None is the same as no text.
            app_id: None is the application of the partition that was saved last.
            sequence_id: the step; by default the last one, also if that failed.

        Raises:
            CheckpointCorruptError: what is stored is not what was saved.
        """
        if app_id is None:
            known = self.list_app_ids(partition_key)
            return self.load(partition_key, known[0], sequence_id) if known else None
        workflow_id = workflow_name(_ROOM, partition_key or "", app_id)
        point = "latest" if sequence_id is None else f"phase:{sequence_id}"
        found = self._service.get_by_id(f"{workflow_id}@{point}")
        if found is None:
            return None
        restored = self._service.restore_checkpoint(found.id)
        return _loaded(restored, found.id, (partition_key or "", app_id))

    def list_app_ids(self, partition_key: str | None, **kwargs: Any) -> list[str]:
        """Name the applications of a partition, the one that was saved last first; no state is read."""
        prefix = names_begin(_ROOM, partition_key or "")
        named = [name for name in self._service.workflows() if name.startswith(prefix)]
        last = [found for name in named if (found := self._last(name)) is not None]
        last.sort(key=lambda meta: meta.created_at, reverse=True)
        return [self._app_id(meta) for meta in last]

    def close(self) -> None:
        """Close the store if this opened it."""
        if self._is_own:
            self._service.close()

    def __enter__(self) -> HoldfastPersister:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _last(self, workflow_id: str) -> CheckpointMeta | None:
        return next(iter(self._service.list_checkpoints(workflow_id, limit=1)), None)

    def _is_repeated(self, last: CheckpointMeta, saved: WorkflowState) -> bool:
        """Tell whether a step is the last one that was recorded; what was recorded is never replaced."""
        recorded = last.phase if last.phase is not None else -1
        if recorded < saved.current_step:
            return False
        if recorded == saved.current_step:
            if self._packed(self._service.restore_checkpoint(last.id)) == self._packed(saved):
                return True
            # A step that failed is taken again, under the same number where the process was started anew.
            if last.type is CheckpointType.ERROR_STATE:
                return False
        raise errors.CheckpointConflictError(
            f"step {recorded} of this application was recorded, and step {saved.current_step} is another one",
            place=str(last.id),
            hint="Another process runs it too. To go on from an older step, use fork_from_app_id.",
        )

    def _packed(self, state: WorkflowState) -> bytes:
        return msgpack.pack(to_plain([state.messages, state.context, state.metadata], self._registry))

    def _app_id(self, meta: CheckpointMeta) -> str:
        known = names_in(_ROOM, meta.id.workflow_id)
        if known is not None:
            return known[-1]
        return str(self._service.restore_checkpoint(meta.id).metadata["app_id"])


class HoldfastAsyncPersister(AsyncBaseStatePersister):
    """The same for applications that are built with `abuild`: each call runs in a thread."""

    def __init__(self, store: str | CheckpointService, *, registry: TypeRegistry | None = None) -> None:
        """Choose where state is kept; arguments as for HoldfastPersister."""
        self._persister = HoldfastPersister(store, registry=registry)

    async def is_initialized(self) -> bool:
        """Tell that nothing has to be prepared."""
        return True

    async def save(self, *args: Any, **kwargs: Any) -> None:
        """Store the state after a step durably; see HoldfastPersister."""
        await asyncio.to_thread(self._persister.save, *args, **kwargs)

    async def load(self, *args: Any, **kwargs: Any) -> PersistedStateData | None:
        """Load the state after a step; see HoldfastPersister."""
        return await asyncio.to_thread(self._persister.load, *args, **kwargs)

    async def list_app_ids(self, partition_key: str | None, **kwargs: Any) -> list[str]:
        """Name the applications of a partition; see HoldfastPersister."""
        return await asyncio.to_thread(self._persister.list_app_ids, partition_key, **kwargs)

    async def close(self) -> None:
        """Close the store if this opened it."""
        await asyncio.to_thread(self._persister.close)

    async def __aenter__(self) -> HoldfastAsyncPersister:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _check_fresh(state: State[Any], position: str, status: Status) -> None:
    """Refuse the state from before a step that is said to be done: the step's work would be lost for good.

    Burr's runner hands such a state over after a plain action of an application that it steps with `astep`.
    """
    values = state.get_all()
    is_from_runner = SEQUENCE_ID in values
    if is_from_runner and status == "completed" and values.get(PRIOR_STEP) != position:
        raise errors.InvalidStateError(
            "Burr gave the state from before this action as the state after it",
            place=ascii(position)[:_SHOWN_CHARS_MAX],
            hint="In an application that is run with astep, arun or aiterate, make every action async.",
        )


def _workflow_state(
    partition_key: str | None, app_id: str, sequence_id: int, position: str, state: State[Any], status: Status
) -> WorkflowState:
    """Put the state of an application into the fields that Holdfast shows."""
    values = state.get_all()
    shown = next((name for name in _CONVERSATIONS if type(values.get(name)) is list), None)
    messages = values.pop(shown) if shown is not None else []
    told = {"partition_key": partition_key or "", "app_id": app_id, "position": position, "status": status}
    return WorkflowState(
        current_step=sequence_id,
        phase=sequence_id,
        messages=messages,
        context=values,
        metadata={**told, "messages": shown},
    )


def _loaded(restored: WorkflowState, place: CheckpointID, wanted: tuple[str, str]) -> PersistedStateData:
    told = restored.metadata
    if (told.get("partition_key"), told.get("app_id")) != wanted:
        raise errors.CheckpointCorruptError("a step of another application stands here", place=str(place))
    shown = told["messages"]
    return PersistedStateData(
        partition_key=wanted[0],
        app_id=wanted[1],
        sequence_id=restored.current_step,
        position=told["position"],
        state=State({**restored.context, **({shown: restored.messages} if shown is not None else {})}),
        created_at=timestamp_text(place.timestamp),
        status=told["status"],
    )
