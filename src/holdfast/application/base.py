"""The last state of recently active workflows, so that a checkpoint costs what changed.

Remembered are encoded bytes, never the caller's objects, and not more of them than a bound in bytes.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from types import TracebackType

from holdfast.application.commit_queue import Lineage, Ticket
from holdfast.application.snapshot import Snapshot
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Head
from holdfast.domain.value import value

CACHE_BYTES = 64 * 1024 * 1024
#: What one remembered workflow costs beside its snapshot.
_OVERHEAD_BYTES = 1024
#: How many slots are looked at to make room; bounds what one commit pays for others.
_EVICTION_STEPS = 32


@value
class Base:
    """What the next checkpoint of a workflow is made from."""

    head: Head
    lineage: Lineage
    #: None where there is no state to build on: a new workflow, or one whose checkpoints are all gone.
    snapshot: Snapshot | None = None
    #: The snapshot was read back from the store: it has no secrets, where the state of the caller may.
    is_read_back: bool = False
    #: Bytes of the whole state, packed.
    size_bytes: int = 0
    #: The last checkpoint, and everything that tells it from the next one beside the state.
    id: CheckpointID | None = None
    fingerprint: tuple[object, ...] = ()
    #: Group that the next record belongs to.
    group: int = 0
    #: Packed size of the state at the last keyframe, and weight of the deltas since.
    keyframe_bytes: int = 0
    weight: int = 0
    #: Last event at or before the last checkpoint.
    checkpoint_event_seq: int = 0
    #: Size that a warning was last given for.
    warned_bytes: int = 0
    #: Key that the last checkpoint is sealed with; empty where nothing is sealed.
    key_id: str = ""
    #: Only the head is known: enough for an event, not for a checkpoint.
    is_stub: bool = False
    #: No secret was ever hidden in it: what is stored is what the snapshot holds.
    is_bare: bool = False

    @property
    def sound(self) -> bool:
        """False once a commit that this was made from has failed, or ended up elsewhere than was thought."""
        return self.lineage.failure is None and not self.lineage.is_moved


class Slot:
    """The place of one workflow: enter it to prepare commits, one thread at a time."""

    __slots__ = ("_bases", "base", "bytes", "lock", "pending", "users", "workflow_id")

    def __init__(self, bases: Bases, workflow_id: str) -> None:
        self._bases = bases
        self.workflow_id = workflow_id
        self.lock = threading.Lock()
        self.base: Base | None = None
        #: The commit last queued. The store is not read for a base before its outcome is known.
        self.pending: Ticket | None = None
        self.users = 0
        self.bytes = 0

    def __enter__(self) -> Slot:
        if not self.lock.acquire(False):
            self._bases.await_turn(self.lock)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.release()
        self._bases.put_back(self)


class Bases:
    """Slots of workflows, the least recently used forgotten first."""

    def __init__(
        self, max_bytes: int = CACHE_BYTES, on_waited: Callable[[float], None] | None = None
    ) -> None:
        """Begin with no slot; `on_waited` is told the seconds that somebody waited for one."""
        self._max_bytes = max_bytes
        self._on_waited = on_waited
        self._mutex = threading.Lock()
        self._slots: OrderedDict[str, Slot] = OrderedDict()
        self._bytes = 0

    def slot(self, workflow_id: str) -> Slot:
        """Take out the slot of a workflow, for one `with` statement."""
        with self._mutex:
            slot = self._slots.get(workflow_id)
            if slot is None:
                slot = self._slots[workflow_id] = Slot(self, workflow_id)
            slot.users += 1
            return slot

    def await_turn(self, lock: threading.Lock) -> None:
        """Take the lock of a slot that another thread is in."""
        began = time.perf_counter()
        lock.acquire()
        if self._on_waited is not None:
            self._on_waited(time.perf_counter() - began)

    def is_warm(self, workflow_id: str, *, is_head_enough: bool = False) -> bool:
        """Tell whether a checkpoint, or just an event, can be prepared without reading the store."""
        with self._mutex:
            slot = self._slots.get(workflow_id)
            base = slot.base if slot is not None else None
            return base is not None and base.sound and (is_head_enough or not base.is_stub)

    def recent(self, limit: int) -> list[str]:
        """Name the workflows that were used last, the last one first."""
        with self._mutex:
            return list(islice(reversed(self._slots), limit))

    def put_back(self, slot: Slot) -> None:
        """Account for a slot after use; called by leaving it."""
        held = _OVERHEAD_BYTES + (slot.base.size_bytes if slot.base is not None else 0)
        with self._mutex:
            slot.users -= 1
            self._bytes += held - slot.bytes
            slot.bytes = held
            self._slots.move_to_end(slot.workflow_id)
            if self._bytes > self._max_bytes:
                self._evict()

    def _evict(self) -> None:
        """Drop old slots that nobody uses and that have nothing on its way; the mutex is held."""
        for workflow_id in list(islice(self._slots, _EVICTION_STEPS)):
            if self._bytes <= self._max_bytes:
                return
            slot = self._slots[workflow_id]
            if slot.users == 0 and (slot.pending is None or slot.pending.done):
                del self._slots[workflow_id]
                self._bytes -= slot.bytes
