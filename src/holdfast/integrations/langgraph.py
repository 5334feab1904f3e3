"""LangGraph's checkpoints in any Holdfast store: one changed line in an agent that is there already.

A thread is a workflow, `langgraph/` and its id; a checkpoint of LangGraph is one of Holdfast; a pending write
is an event. `langgraph_states` tells where in a state the channels are.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from heapq import merge
from itertools import islice
from typing import Any

from holdfast.application.service import CheckpointService
from holdfast.application.stored_state import StoredState
from holdfast.bootstrap import open as open_service
from holdfast.domain.errors import InvalidIdError
from holdfast.domain.plain import TypeRegistry
from holdfast.integrations.collecting import Uncollected
from holdfast.integrations.framework import framework
from holdfast.integrations.langgraph_listing import listed
from holdfast.integrations.langgraph_recorder import Place, Recorder
from holdfast.integrations.langgraph_states import checkpoint_in, writes_in
from holdfast.integrations.langgraph_thread import Put
from holdfast.integrations.langgraph_upkeep import Upkeep
from holdfast.integrations.langgraph_values import Values, owned

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
        get_serializable_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

#: In a config: it was answered to whoever asked for the newest checkpoint, whatever that is. Who builds on it
#: means the newest one still. LangGraph carries it along, and leaves it out of metadata.
NEWEST = "__holdfast_newest"
#: Only a run has such keys in its config.
_RUN_PREFIX = "__pregel_"


class HoldfastSaver(BaseCheckpointSaver[Any]):
    """A checkpointer of LangGraph over an open service. Safe to use from several threads.

    Two runs of one thread that do not know of each other conflict: the later one gets CheckpointConflictError
    instead of taking the other's place. An id that was put stays what it is.
    """

    def __init__(self, service: CheckpointService, *, serde: SerializerProtocol | None = None) -> None:
        """Use an open service, which stays open.

        Args:
            serde: what writes objects that are neither plain data, nor messages, nor registered with the
                service; by default LangGraph's own in its strict mode.
        """
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self._service = service
        self._recorder = Recorder(service.recording)

    @classmethod
    @contextmanager
    def open(
        cls, url: str | None = None, *, types: Collection[type] = (), **settings: Any
    ) -> Iterator[HoldfastSaver]:
        """Open a store for as long as the `with` statement lasts.

        Args:
            url: where, see `holdfast.open`.
            types: classes of the application's that its channels hold: dataclasses, enums, pydantic models.
            settings: whatever else `holdfast.open` takes.
        """
        with open_service(url, registry=_registered(types), **settings) as service:
            yield cls(service)

    @classmethod
    @asynccontextmanager
    async def open_async(
        cls, url: str | None = None, *, types: Collection[type] = (), **settings: Any
    ) -> AsyncIterator[HoldfastSaver]:
        """Open a store for as long as the `async with` statement lasts; see `open`."""
        service = await asyncio.to_thread(open_service, url, registry=_registered(types), **settings)
        try:
            yield cls(service)
        finally:
            await asyncio.to_thread(service.close)

    # -- reading -----------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Answer a checkpoint; without an id the newest of its thread and namespace."""
        place = _place(config)
        with self._recorder.thread(place.thread_id) as thread:
            thread.refresh()
            put = (
                thread.put(place.ns, place.checkpoint_id) if place.checkpoint_id else thread.newest(place.ns)
            )
            if put is None:
                return None
            stored = thread.recording.state(thread.workflow_id, put.sequence)
            # The checkpoint takes the state apart.
            writes: Any = writes_in(lambda: stored, put, self._values())
            checkpoint = self._checkpoint(stored, put)
        config = _config(place.thread_id, put.ns, put.id, is_newest=not place.checkpoint_id)
        return CheckpointTuple(
            config, checkpoint, _metadata(put), _parent_config(place.thread_id, put), writes
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Answer checkpoints, the newest first; a state is read when somebody looks at it.

        The saver may be used while the answer is looped over.
        """
        bound = before["configurable"].get("checkpoint_id") if before else None
        wanted = config["configurable"].get("checkpoint_id") if config else None
        is_bare = not (filter or bound or wanted)

        def fits(put: Put) -> bool:
            return (
                (bound is None or put.id < bound)
                and (wanted is None or put.id == wanted)
                and all(put.metadata.get(key) == value for key, value in (filter or {}).items())
            )

        def found(thread_id: str) -> Iterator[tuple[Put, str]]:
            puts = self._puts(thread_id, config, limit if is_bare else None)
            return ((put, thread_id) for put in puts if is_bare or fits(put))

        ordered = merge(*map(found, self._thread_ids(config)), key=lambda pair: pair[0].id, reverse=True)
        return (self._listed(thread_id, put) for put, thread_id in islice(ordered, limit))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """Answer the writes and the seed that delta channels are rebuilt from.

        Raises:
            CheckpointNotFoundError: a checkpoint that they are rebuilt from is gone.
        """
        place = _place(config)
        with self._recorder.thread(place.thread_id) as thread:
            thread.refresh()
            put = (
                thread.put(place.ns, place.checkpoint_id) if place.checkpoint_id else thread.newest(place.ns)
            )
            return (
                self._upkeep().history(thread, put, channels)
                if put
                else {c: {"writes": []} for c in channels}
            )

    # -- writing -----------------------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Record a checkpoint durably.

        Raises:
            CheckpointConflictError: the thread went on without this run, or the id was put before as
                something else.
            UnsupportedTypeError: a channel holds what would not come back as it is.
        """
        place, conf = _place(config), config["configurable"]
        self._recorder.put(
            place,
            dict(checkpoint),
            dict(get_serializable_checkpoint_metadata(config, metadata)),
            new_versions,
            self._values(),
            # A run that was answered nothing began the thread, and stays alone on it.
            is_exclusive=bool(conf[NEWEST] if NEWEST in conf else _is_of_run(conf, place)),
        )
        return _config(place.thread_id, place.ns, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Record what a task wrote on top of a checkpoint, durably; what is recorded already stays."""
        place = _place(config)
        if not place.checkpoint_id:
            raise InvalidIdError("writes belong to a checkpoint, and none is named", place=place.thread_id)
        self._recorder.put_writes(place, writes, task_id, task_path, self._values())

    def get_next_version(self, current: int | str | None, channel: None) -> int | str:
        """Answer a version above the current one: a number, or what other savers wrote carried on."""
        if isinstance(current, str):
            number = int(current.partition(".")[0]) + 1
            return f"{number:032}.{random.random():016}"
        return (current or 0) + 1

    # -- keeping -----------------------------------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: states, writes, metadata. That it was done stays in the trail."""
        self._upkeep().erase(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, in all threads."""
        self._upkeep().remove_runs(self._thread_ids(None), {str(run_id) for run_id in run_ids})

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread under another name: ids, parents, metadata and writes stay what they are."""
        self._upkeep().copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep of each namespace of some threads the newest checkpoint, or (`delete`) nothing."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"the strategy {strategy!r} is unknown, use keep_latest or delete")
        for thread_id in thread_ids:
            if strategy == "delete":
                self._upkeep().erase(str(thread_id))
            else:
                self._upkeep().keep_newest(str(thread_id))

    # -- for coroutines: the same, in a thread -------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Answer a checkpoint; see `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Answer checkpoints, the newest first, each with its state: an event loop must not wait for one."""
        ask = partial(self.list, config, filter=filter, before=before, limit=limit)
        found = await asyncio.to_thread(ask)
        while (item := await asyncio.to_thread(_next_whole, found)) is not None:
            yield item

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """Answer what delta channels are rebuilt from; see `get_delta_channel_history`."""
        return await asyncio.to_thread(self.get_delta_channel_history, config=config, channels=channels)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Record a checkpoint; see `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Record what a task wrote; see `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Erase a thread; see `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs; see `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread; see `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep only the newest; see `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # -- inside --------------------------------------------------------------------------------------

    def _values(self) -> Values:
        return Values(self.serde, self._recorder.recording.packs)

    def _upkeep(self) -> Upkeep:
        return Upkeep(self._service, self._recorder, self._values())

    def _checkpoint(self, stored: StoredState, put: Put) -> Checkpoint:
        with Uncollected():
            found: Any = checkpoint_in(stored, put, self._values())
        return found

    def _thread_ids(self, config: RunnableConfig | None) -> Sequence[str]:
        if config and "thread_id" in config["configurable"]:
            return [str(config["configurable"]["thread_id"])]
        return self._recorder.thread_ids()

    def _puts(self, thread_id: str, config: RunnableConfig | None, limit: int | None) -> Sequence[Put]:
        ns = config["configurable"].get("checkpoint_ns") if config else None
        with self._recorder.thread(thread_id) as thread:
            thread.refresh()
            return thread.newest_first(ns, limit)

    def _listed(self, thread_id: str, put: Put) -> CheckpointTuple:
        def stored() -> StoredState:
            thread = self._recorder.thread(thread_id)
            return thread.recording.state(thread.workflow_id, put.sequence)

        return listed(
            _config(thread_id, put.ns, put.id),
            lambda: self._checkpoint(stored(), put),
            _metadata(put),
            _parent_config(thread_id, put),
            lambda: writes_in(stored, put, self._values()),
        )


def _registered(types: Collection[type]) -> TypeRegistry | None:
    if not types:
        return None
    registry = TypeRegistry()
    for cls in types:
        registry.register(cls)
    return registry


def _next_whole(found: Iterator[CheckpointTuple]) -> CheckpointTuple | None:
    item = next(found, None)
    return CheckpointTuple(*item) if item is not None else None


def _place(config: RunnableConfig) -> Place:
    conf = config.get("configurable") or {}
    if conf.get("thread_id") is None:
        raise InvalidIdError("no thread is named", hint='Set configurable["thread_id"].')
    return Place(str(conf["thread_id"]), conf.get("checkpoint_ns") or "", conf.get("checkpoint_id") or None)


def _is_of_run(conf: dict[str, Any], place: Place) -> bool:
    return not place.ns and any(key.startswith(_RUN_PREFIX) for key in conf)


def _config(thread_id: str, ns: str, checkpoint_id: str, *, is_newest: bool | None = None) -> RunnableConfig:
    conf: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    if is_newest is not None:
        conf[NEWEST] = is_newest
    return {"configurable": conf}


def _parent_config(thread_id: str, put: Put) -> RunnableConfig | None:
    return _config(thread_id, put.ns, put.parent) if put.parent else None


def _metadata(put: Put) -> Any:
    """Answer the metadata of a checkpoint, the caller's own."""
    return owned(put.metadata)
