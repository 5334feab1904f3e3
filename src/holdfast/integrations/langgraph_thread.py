"""One thread of LangGraph as its journal tells it: what was put, with which writes, and what is gone.

Listing, finding the newest and following parents read this and no state. Of a long journal only the end is
read, until more is asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.application.commit_queue import Ticket
from holdfast.application.draft import CREATED_EVENT
from holdfast.application.recording import Recording
from holdfast.application.recovery.recovering import RECOVERED_EVENT
from holdfast.application.writer import PRUNED_EVENT
from holdfast.domain.event import Event
from holdfast.integrations.langgraph_names import read_event
from holdfast.integrations.langgraph_told import Space, spaces_in

WRITES_EVENT = "LANGGRAPH_WRITES"
#: What a checkpoint needs of others that are removed: the history of its delta channels.
SEED_EVENT = "LANGGRAPH_SEED"
NOTE = "langgraph"
#: The kind of a write whose value is that of another one, by its place among them.
REPEATED = "as"

#: What names a checkpoint where its writes are told.
_OWN = ("id", "ns")
#: How much of the end of a journal is read at first.
_FIRST_EVENTS = 256


@dataclass(frozen=True, slots=True)
class Write:
    """One pending write, its value as data."""

    path: str
    task: str
    index: int
    channel: str
    value: Any
    kind: Any

    @property
    def order(self) -> tuple[str, str, int]:
        """Where it comes among the writes of a checkpoint."""
        return self.path, self.task, self.index


@dataclass(slots=True)
class Put:
    """One checkpoint, without its state."""

    id: str
    ns: str
    parent: str | None
    sequence: int
    ts: str
    metadata: dict[str, Any]
    #: Channels that have a value in it.
    names: tuple[str, ...]
    writes: dict[tuple[str, int], Write] = field(default_factory=dict)
    #: By channel, what came before it where the checkpoints before it are removed.
    seed: dict[str, Any] | None = None
    is_gone: bool = False

    def add(self, writes: Iterable[Write]) -> None:
        """Take writes; those that are there already stay. Of reserved ones the last counts.

        Also among others: a person's answer comes together with the updates that were told before it.
        """
        for write in writes:
            key = write.task, write.index
            if write.index < 0 or key not in self.writes:
                self.writes[key] = write

    def ordered(self) -> list[Write]:
        """Answer the writes in the order in which a run applies them."""
        return sorted(self.writes.values(), key=lambda write: write.order)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the newest state of a thread holds, by namespace."""

    sequence: int = 0
    spaces: dict[str, Space] = field(default_factory=dict)


class Thread:
    """What is known of one thread. Enter it to read or to prepare, one at a time."""

    def __init__(self, recording: Recording, workflow_id: str) -> None:
        self.workflow_id = workflow_id
        self.recording = recording
        self._lock = threading.RLock()
        #: The last checkpoint that was ever made, removed or not: what the next one follows.
        self.made = 0
        #: Of the thread in a store that is encrypted.
        self._key = ""
        self._forget()

    def __enter__(self) -> Thread:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def size(self) -> int:
        """Count what is remembered."""
        return len(self._puts)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever recorded in it."""
        return not self.made and not self._head

    def _forget(self) -> None:
        #: Events after this one are known, up to the head.
        self._after = 0
        self._head = 0
        self.is_read = False
        #: Whether what was queued here last, and what others recorded before it, is still to be taken in.
        self._is_behind = False
        #: Whether something waited for its store when it was last asked: it may be written as something else.
        self._is_ahead = False
        self._puts: dict[tuple[str, str], Put] = {}
        self._newest: dict[str, Put] = {}
        #: By namespace, the largest id that was put, whether it is there or was removed.
        self._highest: dict[str, str] = {}
        #: Writes that were told before the checkpoint they belong to.
        self._early: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        self._known = Standing()
        #: What was queued here last: until it is decided, others may have come in between.
        self._queued: Ticket | None = None
        #: The newest checkpoint that is there, by sequence; 0 if there is none.
        self._last = 0

    # -- asking ------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what was recorded since, here or elsewhere."""
        if self._queued is not None and not self.recording.is_kept(self._queued):
            self.lost()
        self._queued = None
        made, head = self.recording.head(self.workflow_id)
        self.made = made
        key = self.recording.key_of(self.workflow_id)
        if key != self._key:
            # Erased, perhaps by others: the journal is as long as before, and says nothing more.
            self._key = key
            self.lost()
        if self.is_read and not self._is_behind and self.recording.waits(self.workflow_id):
            # In no journal yet: what is remembered is all there is of it, and the ladder adds nothing to it.
            self._is_ahead = True
            return
        if not self.is_read or self._is_ahead or head < self._head:
            self._read(max(head - _FIRST_EVENTS, 0), head)
        elif head > self._head:
            events = self.recording.events(self.workflow_id, self._head)
            if not events or events[0].seq != self._head + 1:
                # What was in between is removed: nothing that is remembered can be relied on.
                self._read(max(head - _FIRST_EVENTS, 0), head)
                return
            self._take(events)
        self._is_behind = False

    def newest(self, ns: str) -> Put | None:
        """Answer the newest checkpoint of a namespace: the one that was put last."""
        return self._found(lambda: self._newest.get(ns))

    def put(self, ns: str, checkpoint_id: str) -> Put | None:
        """Answer a checkpoint that is there."""
        found = self._puts.get((ns, checkpoint_id)) or self.any_put(ns, checkpoint_id)
        return None if found is None or found.is_gone else found

    def any_put(self, ns: str, checkpoint_id: str) -> Put | None:
        """Answer a checkpoint, whether it is still there or was removed.

        Ids grow with time: one above all that the end of the journal tells of is not further back.
        """
        found = self._puts.get((ns, checkpoint_id))
        if found is not None or not self._after:
            return found
        highest = self._highest.get(ns)
        if highest is not None and checkpoint_id > highest:
            return None
        return self._found(lambda: self._puts.get((ns, checkpoint_id)))

    def newest_first(self, ns: str | None, limit: int | None) -> list[Put]:
        """Answer checkpoints of a namespace, or of all, by id; at least so many if there are as many."""
        while True:
            puts = [put for put in self._puts.values() if not put.is_gone and (ns is None or put.ns == ns)]
            if self._after == 0 or (limit is not None and len(puts) >= limit):
                return sorted(puts, key=lambda put: put.id, reverse=True)
            self._reach_back()

    def all_puts(self) -> list[Put]:
        """Answer every checkpoint that is there, in the order in which they were put."""
        return sorted(self.newest_first(None, None), key=lambda put: put.sequence)

    def says_anything(self) -> bool:
        """Tell whether the journal holds anything of LangGraph's, be it of checkpoints that are gone."""
        while not (self._puts or self._early) and self._after > 0:
            self._reach_back()
        return bool(self._puts or self._early)

    def early(self, ns: str, checkpoint_id: str) -> list[dict[str, Any]]:
        """Answer what was told of the writes of a checkpoint which was not put yet, without its name."""
        told = self._early.get((ns, checkpoint_id), ())
        return [{key: one[key] for key in one if key not in _OWN} for one in told]

    def given(self, put: Put) -> Mapping[str, bytes]:
        """Answer what the run was given that began with a checkpoint, if that was recorded here just now."""
        space = self._known.spaces.get(put.ns)
        return space.given if space is not None and space.id == put.id else {}

    def standing(self) -> Standing:
        """Answer which channels the newest state holds, of which versions; of one that is gone, none."""
        last = self._last if self._last == self.made else 0
        if self._known.sequence != last:
            told = self.recording.state(self.workflow_id, last).at("metadata", NOTE) if last else None
            self._known = Standing(last, spaces_in(told or {}))
        return self._known

    # -- telling -----------------------------------------------------------------------------------

    def queued_put(self, ticket: Ticket, told: Mapping[str, Any], spaces: dict[str, Space]) -> None:
        """Take in a checkpoint that was queued here just now, as if it were read."""
        if self._follows(ticket):
            sequence = ticket.result.sequence
            self._last = self.made = sequence
            self._take_put(sequence, told)
            self._known = Standing(sequence, spaces)

    def queued_writes(self, ticket: Ticket, told: Mapping[str, Any]) -> None:
        """Take in writes that were queued here just now, as if they were read."""
        if self._follows(ticket):
            self._take_writes(told)

    def _follows(self, ticket: Ticket) -> bool:
        """Move on to what was queued; if others came in between, it is read after what they recorded.

        Where what was queued before still waits for its store, only the ladder of this process can have come
        in between, and nothing of it can be read.
        """
        seq, before = ticket.commit.events[-1].seq, self._queued
        is_next = self.is_read and (seq == self._head + 1 or self.recording.waits(self.workflow_id))
        if is_next:
            self._head = seq
        elif before is not None and not self.recording.is_kept(before):
            self.lost()
        self._queued, self._is_behind = ticket, not is_next
        return is_next

    @property
    def is_sure(self) -> bool:
        """Whether it was read, and nothing that was taken in since is known to have failed."""
        is_read = self.is_read and not self._is_behind
        return is_read and (self._queued is None or self._queued.error is None)

    @property
    def queued(self) -> Ticket | None:
        """What was queued here last, if it is not known to be decided."""
        return self._queued

    def lost(self) -> None:
        """Forget everything: what was taken in was not committed."""
        self._forget()

    def _found(self, look: Callable[[], Put | None]) -> Put | None:
        found = look()
        while found is None and self._after > 0:
            self._reach_back()
            found = look()
        return found

    def _reach_back(self) -> None:
        """Read twice as much of the journal as before."""
        after = max(self._after - (self._head - self._after) - _FIRST_EVENTS, 0)
        if self._queued is not None:
            # It is in no journal yet. What was read without it would pass for all there is.
            self.recording.is_kept(self._queued)
        waits, remembered = self.recording.waits(self.workflow_id), vars(self).copy()
        self.made, head = self.recording.head(self.workflow_id)
        self._read(after, head)
        if waits:
            self._lay_over(remembered)

    def _lay_over(self, remembered: dict[str, Any]) -> None:
        """Keep what waits for its store: what was read goes further back, and does not tell of that."""
        read = vars(self).copy()
        vars(self).update(remembered, _after=read["_after"], _is_ahead=True)
        for name in ("_puts", "_newest", "_early"):
            setattr(self, name, {**read[name], **remembered[name]})
        for ns, highest in read["_highest"].items():
            self._highest[ns] = max(highest, self._highest.get(ns, ""))

    def _read(self, after: int, head: int) -> None:
        self._forget()
        self._after, self._head, self.is_read = after, after, True
        self._take(self.recording.events(self.workflow_id, after) if head else [])
        self._head = max(self._head, head)

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._head = event.seq
            if event.type == CREATED_EVENT:
                self.made = event.cp_seq or 0
                self._last = 0 if event.erased else self.made
                if NOTE in event.data:
                    self._take_put(self._last, read_event(event.data[NOTE]))
            elif event.erased:
                # Its key is destroyed: it says no more.
                continue
            elif event.type == WRITES_EVENT:
                self._take_writes(read_event(event.data))
            elif event.type == SEED_EVENT:
                self._take_seed(read_event(event.data))
            elif event.type == PRUNED_EVENT:
                self._take_removal(event.data.get("sequences", ()))
            elif event.type == RECOVERED_EVENT:
                self._step_back(event.cp_seq or 0)

    def _take_put(self, sequence: int, told: Mapping[str, Any]) -> None:
        put = Put(
            id=told["id"],
            ns=told.get("ns", ""),
            parent=told.get("parent"),
            sequence=sequence,
            ts=told["ts"],
            metadata=told["metadata"],
            names=tuple(told["names"]),
        )
        self._highest[put.ns] = max(put.id, self._highest.get(put.ns, ""))
        self._puts[put.ns, put.id] = put
        # Told with it again, or by an older version before it only.
        for early in told.get("early", ()) or self._early.get((put.ns, put.id), ()):
            self._take_writes({**early, "id": put.id, "ns": put.ns})
        self._early.pop((put.ns, put.id), None)
        # Not the one with the largest id: a clock that was put back must not stop a thread.
        self._newest[put.ns] = put

    def _take_writes(self, told: Mapping[str, Any]) -> None:
        key = told.get("ns", ""), told["id"]
        put = self._puts.get(key)
        if put is None:
            self._early.setdefault(key, []).append(told)
            return
        path, task = told.get("path", ""), told["task"]
        writes: list[Write] = []
        for index, said, kind in told["writes"]:
            ((channel, value),) = said.items()
            if kind == REPEATED:
                writes.append(replace(writes[value], index=index, channel=channel))
            else:
                writes.append(Write(path, task, index, channel, value, kind))
        put.add(writes)

    def _take_seed(self, told: Mapping[str, Any]) -> None:
        put = self._puts.get((told.get("ns", ""), told["id"]))
        if put is not None:
            put.seed = told["history"]

    def _take_removal(self, sequences: Iterable[int]) -> None:
        gone = set(sequences)
        if self._last in gone:
            self._last = 0
        for put in self._puts.values():
            put.is_gone = put.is_gone or put.sequence in gone
        for ns, newest in list(self._newest.items()):
            if newest.is_gone:
                self._choose_newest(ns, newest.sequence)

    def _step_back(self, through: int) -> None:
        """Go on from where a recovery did: what came after is there, or damaged, and not the newest."""
        for ns, newest in list(self._newest.items()):
            if newest.sequence > through:
                self._choose_newest(ns, through)

    def _choose_newest(self, ns: str, through: int) -> None:
        found = (put for put in self._puts.values() if put.ns == ns and not put.is_gone)
        left = [put for put in found if put.sequence <= through]
        self._newest.pop(ns)
        if left:
            self._newest[ns] = max(left, key=lambda put: put.sequence)
