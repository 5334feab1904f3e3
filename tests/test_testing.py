"""The doubles that users get behave as they say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.conformance.history import History
from holdfast.conformance.store import StoreConformance
from holdfast.domain.errors import CheckpointWriteError, DiskFullError
from holdfast.ports import Store
from holdfast.testing import FailingStore, FixedClock, SequentialIds


class TestFailingStore(StoreConformance):
    """Told nothing, it is a store like any other."""

    def open_store(self) -> Store:
        return FailingStore()


def test_a_clock_stands_still_or_moves_by_its_step() -> None:
    still = FixedClock(datetime(2026, 1, 1, tzinfo=UTC))
    assert still.now() == still.now()
    still.advance(timedelta(hours=1))
    assert still.now() == datetime(2026, 1, 1, 1, tzinfo=UTC)
    moving = FixedClock(step=timedelta(seconds=1))
    assert moving.now() < moving.now()


def test_ids_count() -> None:
    ids = SequentialIds()
    assert [ids.new(), ids.new()] == [
        "00000000-0000-4000-8000-000000000001",
        "00000000-0000-4000-8000-000000000002",
    ]


def test_a_method_fails_as_often_as_it_was_told_to() -> None:
    store = FailingStore()
    store.fail("head", DiskFullError("full"))
    store.fail("head")
    with pytest.raises(DiskFullError):
        store.head("W")
    with pytest.raises(CheckpointWriteError, match="head was told to fail"):
        store.head("W")
    store.head("W")
    assert store.calls["head"] == 3


def test_answers_are_altered_until_told_otherwise() -> None:
    store = FailingStore()
    History(store).commit()
    store.alter("records", lambda lines: [line.upper() for line in lines])
    altered = list(store.records("W", 1, 1))
    store.alter("records", None)
    store.alter("records", None)
    assert altered == [line.upper() for line in store.records("W", 1, 1)]
