"""Recording checkpoints and writes of LangGraph, and remembering the threads they are of."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakSet

from holdfast.application.commands import AppendEvent, CheckpointOptions
from holdfast.application.commit_queue import Ticket
from holdfast.application.recording import Recording
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    InvalidIdError,
    InvalidStateError,
    KeyDestroyedError,
    LeaseHeldError,
    LeaseLostError,
    UnstorableValueError,
    UnsupportedTypeError,
)
from holdfast.integrations.collecting import Uncollected
from holdfast.integrations.framework import framework
from holdfast.integrations.langgraph_given import told_as_given
from holdfast.integrations.langgraph_names import read_event, told_event
from holdfast.integrations.langgraph_states import checkpoint_in, draw
from holdfast.integrations.langgraph_thread import NOTE, REPEATED, WRITES_EVENT, Put, Thread
from holdfast.integrations.langgraph_values import Values, owned
from holdfast.integrations.names import names_in, workflow_name

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langgraph.checkpoint.base import WRITES_IDX_MAP
    from langgraph.checkpoint.serde.types import ERROR

_ROOM = "langgraph/"
#: So many others may come in between before a write is given up.
_ATTEMPTS = 50
#: So many checkpoints of threads are remembered, the least recently used thread forgotten first.
_REMEMBERED = 100_000
#: Looked after each time so many threads were added: it takes as long as there are threads.
_ROOM_EVERY = 256
_LARGE_CHARS = 4096
_TYPES = {"input": CheckpointType.STAGE_START}


class Place(NamedTuple):
    """Where in a store of LangGraph: a thread, a namespace in it, and perhaps a checkpoint."""

    thread_id: str
    ns: str = ""
    checkpoint_id: str | None = None
    #: The checkpoint of another thread that this one begins as, if nothing is in it yet.
    origin: str | None = None


class Recorder:
    """Records what LangGraph says. Safe to use from several threads."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.begin()
        _RECORDERS.add(self)

    def begin(self) -> None:
        """Remember nothing: at the start, and in a forked child, where others may have held the locks."""
        self._mutex = Lock()
        self._threads: OrderedDict[str, Thread] = OrderedDict()

    def thread(self, thread_id: str) -> Thread:
        """Answer what is remembered of a thread."""
        if not thread_id:
            raise InvalidIdError("the thread id is empty", hint='Set configurable["thread_id"] to some text.')
        with self._mutex:
            thread = self._threads.get(thread_id)
            if thread is None:
                thread = Thread(self.recording, workflow_name(_ROOM, thread_id))
                self._threads[thread_id] = thread
                if len(self._threads) % _ROOM_EVERY == 0:
                    self._make_room()
            self._threads.move_to_end(thread_id)
            return thread

    def thread_ids(self) -> list[str]:
        """Name all threads."""
        ours = (workflow for workflow in self.recording.workflows() if workflow.startswith(_ROOM))
        return sorted(map(self._thread_id, ours))

    def put(
        self,
        place: Place,
        checkpoint: dict[str, Any],
        metadata: dict[str, Any],
        new_versions: Mapping[str, Any],
        values: Values,
        *,
        is_exclusive: bool,
    ) -> None:
        """Record a checkpoint.

        Args:
            place: its thread and namespace, and the checkpoint that it follows.
            is_exclusive: it follows the newest one, whichever that is.

        Raises:
            CheckpointConflictError: it does not, or its id was put before as something else.
        """

        def prepare(thread: Thread) -> Ticket | None:
            known = thread.put(place.ns, checkpoint["id"])
            if known is not None:
                # Others may have removed it since: nothing is told to be there unless it is.
                thread.refresh()
                known = thread.put(place.ns, checkpoint["id"])
            if known is not None:
                self._check_same(thread, known, place, checkpoint, values)
                return None
            if is_exclusive:
                _check_newest(thread, place)
            with Uncollected():
                said = (thread, place, checkpoint, metadata, new_versions, values)
                try:
                    return self._queue_put(*said, is_hopeful=True)
                except (UnsupportedTypeError, UnstorableValueError):
                    return self._queue_put(*said, is_hopeful=False)

        self._record(place.thread_id, prepare)

    def put_writes(
        self, place: Place, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str, values: Values
    ) -> None:
        """Record writes of a task on top of a checkpoint."""
        told = [
            [WRITES_IDX_MAP.get(channel, at), channel, *values.encode(_sayable(channel, value), channel)]
            for at, (channel, value) in enumerate(writes)
        ]
        self.tell_writes(place, task_id, task_path, told)

    def tell_writes(self, place: Place, task_id: str, task_path: str, writes: list[list[Any]]) -> None:
        """Record writes of a task that are told as they are stored: index, channel, value and kind."""
        told: dict[str, Any] = {"id": place.checkpoint_id, "task": task_id}
        told |= {"ns": place.ns} if place.ns else {}
        told |= {"path": task_path} if task_path else {}
        told |= {"replace": True} if all(write[1] in WRITES_IDX_MAP for write in writes) else {}

        def are_told(thread: Thread) -> bool:
            assert place.checkpoint_id is not None
            put = thread.put(place.ns, place.checkpoint_id)
            return put is not None and all(w[0] >= 0 and (task_id, w[0]) in put.writes for w in writes)

        def prepare(thread: Thread) -> Ticket | None:
            if are_told(thread):
                # They may be on their way still: nobody is told that they are recorded before they are. Or
                # others may have removed them since.
                on_the_way = thread.queued
                thread.refresh()
                if are_told(thread):
                    return on_the_way
            put = thread.put(place.ns, place.checkpoint_id or "")
            once = told_as_given(writes, thread.given(put), put.names, put.metadata) if put else writes
            told["writes"] = _told_once(once)
            said = told_event(told, self.recording.hides)
            ticket = self.recording.event(AppendEvent(thread.workflow_id, WRITES_EVENT, said))
            data = ticket.result.data
            # A run that lives keeps its secrets, which are hidden in what is recorded.
            thread.queued_writes(ticket, read_event(data) if data == said else owned(told))
            return ticket

        self._record(place.thread_id, prepare)

    def _record(self, thread_id: str, prepare: Callable[[Thread], Ticket | None]) -> None:
        """Prepare a commit until nobody else came in between, and wait for it."""
        thread = self.thread(thread_id)
        for attempt in range(_ATTEMPTS):
            try:
                with thread:
                    if attempt or not thread.is_sure:
                        thread.refresh()
                    ticket = prepare(thread)
                if ticket is not None:
                    self.recording.wait(ticket)
                return
            except CheckpointConflictError as conflict:
                self._lost(thread)
                is_final = isinstance(conflict, LeaseHeldError | LeaseLostError | SupersededError)
                if is_final or attempt == _ATTEMPTS - 1:
                    raise
            except (InvalidStateError, CheckpointNotFoundError, KeyDestroyedError):
                # What it follows, or what is to stay as it was, others may have removed since, or its key.
                self._lost(thread)
                if attempt > 1:
                    raise
            except CheckpointWriteError:
                self._lost(thread)
                raise

    def insist(self, do: Callable[[], object]) -> None:
        """Do something that builds on the newest state, again for as long as others come in between."""
        for attempt in range(_ATTEMPTS):
            try:
                do()
                return
            except CheckpointConflictError as conflict:
                if attempt == _ATTEMPTS - 1 or isinstance(conflict, LeaseHeldError | LeaseLostError):
                    raise

    def _lost(self, thread: Thread) -> None:
        with thread:
            thread.lost()

    def _queue_put(
        self,
        thread: Thread,
        place: Place,
        checkpoint: dict[str, Any],
        metadata: dict[str, Any],
        new_versions: Mapping[str, Any],
        values: Values,
        *,
        is_hopeful: bool,
    ) -> Ticket:
        standing = thread.standing()
        before = standing.spaces.get(place.ns)
        is_on_top = before is not None and before.id == place.checkpoint_id
        parent = thread.any_put(place.ns, before.id) if before is not None and is_on_top else None
        drawn = draw(
            thread.workflow_id,
            place.thread_id,
            place.ns,
            checkpoint,
            standing,
            values,
            is_hopeful=is_hopeful,
            is_on_top=parent is not None,
            names=parent.names if parent else (),
            new_versions=new_versions,
            hides=self.recording.hides,
        )
        told = _note(place, checkpoint, metadata, thread.early(place.ns, checkpoint["id"]))
        options: CheckpointOptions = {
            "note": {NOTE: told_event(told, self.recording.hides)},
            "force": True,
            "expected_sequence": thread.made,
            "type": _TYPES.get(metadata.get("source", ""), CheckpointType.STAGE_COMPLETE),
        }
        if not place.ns and place.checkpoint_id and parent is None:
            # A branch: what it continues is not the one before.
            options |= self._continued(thread, place)
        origin = place.origin if thread.is_empty else None
        ticket = self.recording.checkpoint(thread.workflow_id, drawn.state, options, origin=origin)
        thread.queued_put(ticket, {**told, "metadata": owned(metadata)}, drawn.spaces)
        return ticket

    def _continued(self, thread: Thread, place: Place) -> CheckpointOptions:
        known = thread.put(place.ns, place.checkpoint_id or "")
        return {"parent_checkpoint_id": f"{thread.workflow_id}@{known.sequence}"} if known else {}

    def _check_same(
        self, thread: Thread, known: Put, place: Place, checkpoint: dict[str, Any], values: Values
    ) -> None:
        """Refuse to put something else under an id that was put."""
        stored = self.recording.state(thread.workflow_id, known.sequence)
        if known.parent == place.checkpoint_id and _is_same(checkpoint_in(stored, known, values), checkpoint):
            return
        raise SupersededError(
            "a checkpoint of this id was put before, and it is not the same",
            place=f"{thread.workflow_id} {known.id}",
            hint="History is not rewritten: put it under an id of its own.",
        )

    def _make_room(self) -> None:
        remembered = sum(thread.size for thread in self._threads.values())
        while remembered > _REMEMBERED and len(self._threads) > 1:
            _, oldest = self._threads.popitem(last=False)
            remembered -= oldest.size

    def _thread_id(self, workflow_id: str) -> str:
        """Name the thread that a workflow is of; a name that is too long for a workflow's is in its state."""
        names = names_in(_ROOM, workflow_id)
        if names is not None and len(names) == 1:
            return names[0]
        state = self.recording.newest_state(workflow_id)
        return str(state.at("metadata", "thread_id")) if state else workflow_id.removeprefix(_ROOM)


#: All there are, for children that inherit them.
_RECORDERS: WeakSet[Recorder] = WeakSet()


def _after_fork() -> None:
    for recorder in list(_RECORDERS):
        recorder.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class SupersededError(CheckpointConflictError):
    """Another run of the thread was faster, or an id is taken: trying again would change nothing."""


def _is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Compare checkpoints; what is not a number equals nothing, and still may be the same."""
    return one == other or (
        one.keys() == other.keys() and all(repr(one[key]) == repr(other[key]) for key in one)
    )


def _sayable(channel: str, value: Any) -> Any:
    """Tell of an error as LangGraph's own savers do; nothing makes an exception of it again."""
    return repr(value) if channel == ERROR and isinstance(value, BaseException) else value


def _told_once(writes: list[list[Any]]) -> list[list[Any]]:
    """Tell writes by the name of the channel: one that is called as secrets are is hidden, as in the state.

    A large text (an image) that goes to several channels is told once.
    """
    told: list[list[Any]] = []
    known: dict[str, int] = {}
    for index, channel, value, kind in writes:
        is_large = type(value) is str and len(value) >= _LARGE_CHARS
        at = known.setdefault(value, len(told)) if is_large else len(told)
        told.append([index, {channel: value}, kind] if at == len(told) else [index, {channel: at}, REPEATED])
    return told


def _check_newest(thread: Thread, place: Place) -> None:
    newest = thread.newest(place.ns)
    if newest is not None and newest.id != place.checkpoint_id:
        raise SupersededError(
            f"the thread went on to {newest.id} since this run began",
            place=thread.workflow_id,
            hint="Run it again from the newest state, or from a chosen checkpoint to make a branch.",
        )


def _note(
    place: Place, checkpoint: Mapping[str, Any], metadata: dict[str, Any], early: list[dict[str, Any]]
) -> dict[str, Any]:
    told: dict[str, Any] = {"id": checkpoint["id"]}
    told |= {"ns": place.ns} if place.ns else {}
    # Told before, its writes are told again: retention may take that away, or nobody read so far back.
    told |= {"early": early} if early else {}
    told |= {"parent": place.checkpoint_id} if place.checkpoint_id else {}
    told["ts"] = checkpoint["ts"]
    told["names"] = list(checkpoint["channel_values"])
    told["metadata"] = metadata
    return told
