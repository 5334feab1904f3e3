"""Stores with a past, and all that they hold, for the tests of copying."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.application.history import look, read_records
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.application.transport.copying import Copier, CopyResult
from holdfast.bootstrap import open_store
from holdfast.config import Config
from holdfast.domain.event import Event, encode_event
from holdfast.domain.record import Commit, Transition
from holdfast.ports import Store
from tests.application.services import make_kit

WORKFLOWS = ("A", "B")
#: Values above this are blobs.
BLOB_BYTES = 40


@dataclass(slots=True)
class Past:
    """Lives through what a test wants to have happened in a store."""

    kit: Kit
    service: CheckpointService
    states: dict[str, dict[str, Any]]

    def checkpoint(self, workflow_id: str, value: Any = None, times: int = 1) -> None:
        """Make checkpoints, each with another number and perhaps a new value."""
        state = self.states.setdefault(workflow_id, {"number": 0})
        for _ in range(times):
            state["number"] += 1
            if value is not None:
                state[f"value {state['number'] % 3}"] = value
            self.service.create_checkpoint(workflow_id, state)

    def event(self, workflow_id: str, text: str = "") -> None:
        self.service.append_event(workflow_id, "STEP", {"text": text})

    def prune(self, workflow_id: str, keep: int) -> None:
        self.service.prune_checkpoints(workflow_id, keep, 0)

    def delete(self, workflow_id: str, sequence: int) -> None:
        listed = [made.id.sequence for made in self.service.list_checkpoints(workflow_id)]
        if sequence in listed:
            self.service.delete(f"{workflow_id}@{sequence}")

    def fork(self, workflow_id: str, name: str) -> None:
        if self.service.list_checkpoints(workflow_id) and not self.service.list_checkpoints(name):
            self.service.fork_workflow(f"{workflow_id}@latest", name)

    def move(self, workflow_id: str, status: str, retry_count: int = 0, *, pinned: bool = False) -> None:
        """Change the status of the newest checkpoint as the service does: with an event that says it."""
        store = self.kit.store
        newest = next((e for e in store.entries(workflow_id, newest_first=True) if not e.pruned), None)
        if newest is None:
            return
        head = store.head(workflow_id)
        told = {"status": status, "retry_count": retry_count, "pinned": pinned}
        event = Event(
            head.event_seq + 1,
            self.kit.clock.now(),
            "CHECKPOINT_STATUS",
            workflow_id,
            cp_seq=newest.sequence,
            data=told,
        )
        transition = Transition(newest.sequence, status, retry_count, pinned)
        commit = Commit(
            workflow_id, head, events=(encode_event(event, head.event_hash),), transitions=(transition,)
        )
        assert store.commit([commit]) == [None]
        # The service remembers another head; a new one reads it.
        self.service = CheckpointService(self.kit)


def past(store: Store | None = None, **settings: Any) -> Past:
    """Begin a past in a store whose housekeeping has no thread."""
    kit = make_kit(store, **{"blob_threshold_bytes": BLOB_BYTES, **settings})
    return Past(kit, CheckpointService(kit), {})


def eventful(store: Store | None = None) -> Past:
    """A store in which everything happened once: keyframes, blobs, prunes, a fork, statuses, deletes."""
    told = past(store)
    told.event("A", "before everything")
    told.checkpoint("A", "long " * 20)
    told.checkpoint("A", times=70)
    told.move("A", "failed", 2, pinned=True)
    told.event("A", "between")
    told.checkpoint("A", "other " * 20, times=60)
    told.fork("A", "fork")
    told.prune("A", 3)
    told.checkpoint("A", b"raw" * 30, times=2)
    told.checkpoint("B", "long " * 20, times=4)
    told.delete("B", 2)
    told.move("B", "completed")
    told.event("C", "nothing but this")
    for sequence in (1, 3, 4):
        told.delete("B", sequence)
    return told


@contextmanager
def opened(scheme: str) -> Iterator[Store]:
    """Open a new store of some kind, in memory where there is a folder for that."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        store = open_store(Config(store=f"{scheme}:{folder}/store", journal_bytes=65536))
        yield store
        store.close()


names = st.sampled_from(WORKFLOWS)
values = st.sampled_from(
    [None, 1, "short", "long " * 20, "other " * 20, b"raw" * 30, [1.0, -0.0, True, None]]
)
steps: st.SearchStrategy[Callable[[Past], None]] = st.one_of(
    st.builds(lambda name, value: lambda p: p.checkpoint(name, value), names, values),
    st.builds(lambda name, times: lambda p: p.checkpoint(name, times=times), names, st.just(45)),
    st.builds(lambda name, text: lambda p: p.event(name, text), names, st.text(max_size=5)),
    st.builds(lambda name, keep: lambda p: p.prune(name, keep), names, st.integers(1, 3)),
    st.builds(lambda name, sequence: lambda p: p.delete(name, sequence), names, st.integers(1, 8)),
    st.builds(lambda name: lambda p: p.fork(name, "fork"), names),
    st.builds(
        lambda name, status, pinned: lambda p: p.move(name, status, 1, pinned=pinned),
        names,
        st.sampled_from(["failed", "completed", "recovering"]),
        st.booleans(),
    ),
)


def copy(source: Store, target: Store, *workflow_ids: str, **settings: Any) -> CopyResult:
    """Copy some workflows, or all."""
    return make_copier(source, target, **settings).copy(workflow_ids or sorted(source.workflows()))


def make_copier(source: Store, target: Store, **settings: Any) -> Copier:
    kit = make_kit(MemoryStore())
    return Copier(source, target, kit.packer, kit.formats, **settings)


def holdings(store: Store) -> dict[str, Any]:
    """Read everything that a store holds, so that equal holdings mean equal stores."""
    return {workflow_id: _holding(store, workflow_id) for workflow_id in sorted(store.workflows())}


def _holding(store: Store, workflow_id: str) -> dict[str, Any]:
    history = look(store, workflow_id)
    return {
        "head": history.head,
        "entries": [replace(entry, blobs=()) for entry in history.entries],
        "records": list(read_records(store, history)),
        "keyframes": [(one, store.keyframe(workflow_id, one.sequence)) for one in history.keyframes],
        "events": list(store.events(workflow_id)),
        "blobs": {sha256: store.blob(sha256) for sha256 in history.blobs()},
    }


def innards(store: Store, workflow_id: str) -> Any:
    """Open up what a store in memory keeps about a workflow, to damage it."""
    assert isinstance(store, MemoryStore)
    return store._workflows[workflow_id]


def states(store: Store) -> dict[str, dict[int, str]]:
    """Restore every checkpoint that is kept."""
    service = CheckpointService(make_kit(store))
    return {
        workflow_id: {
            made.id.sequence: repr(service.restore_checkpoint(made.id))
            for made in service.list_checkpoints(workflow_id, limit=1000)
        }
        for workflow_id in sorted(store.workflows())
    }
