"""The store in memory keeps every promise of the port."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.conformance.store import StoreConformance
from holdfast.domain.errors import CheckpointNotFoundError, ChecksumMismatchError, LeaseHeldError
from holdfast.domain.record import Keyframe
from holdfast.ports import Store
from holdfast.testing import FixedClock


class TestMemoryStore(StoreConformance):
    def open_store(self) -> Store:
        return MemoryStore()


def test_bytes_that_changed_are_not_returned() -> None:
    store = MemoryStore()
    History(store).commit(keyframe=b"one", blobs={blob_name(b"two"): b"two"})
    workflow = store._workflows["W"]
    workflow.keyframes[1] = Keyframe(workflow.keyframes[1].entry, b"other")
    store._blobs[blob_name(b"two")] = b"other"
    with pytest.raises(ChecksumMismatchError):
        store.keyframe("W", 1)
    with pytest.raises(ChecksumMismatchError):
        store.blob(blob_name(b"two"))
    assert len(list(store.check())) == 2


def test_a_keyframe_without_its_checkpoint_or_its_blobs_is_refused() -> None:
    store = MemoryStore()
    History(store).commit()
    with pytest.raises(CheckpointNotFoundError):
        store.put_keyframe("W", make_keyframe(2, b"two"))
    with pytest.raises(CheckpointNotFoundError):
        store.put_keyframe("W", make_keyframe(1, b"one", blobs=("0" * 64,)))


def test_counts_tell_what_is_kept() -> None:
    store = MemoryStore()
    History(store).commit(keyframe=b"one", blobs={blob_name(b"two"): b"two"})
    stats = store.stats()
    assert (stats["workflows"], stats["checkpoints"], stats["events"], stats["blobs"]) == (1, 1, 1, 1)
    store.settle()


def test_a_lease_expires_by_the_clock_that_was_given() -> None:
    clock = FixedClock()
    store = MemoryStore(clock)
    store.acquire("W", "ann", 60)
    clock.advance(timedelta(seconds=59))
    with pytest.raises(LeaseHeldError):
        store.acquire("W", "bob", 60)
    clock.advance(timedelta(seconds=1))
    assert store.acquire("W", "bob", 60).expires_at == "2026-01-11T12:02:00.000000Z"
