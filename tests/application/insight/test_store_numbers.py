"""The numbers of a store are at hand, however long reading them takes and whatever is damaged."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from holdfast.application.insight.store_numbers import StoreNumbers, StoreWatch
from holdfast.domain.errors import CheckpointReadError
from holdfast.domain.quarantine import Kind
from tests.application.services import make_service
from tests.damage import KINDS, Spoiler


class Clock:
    """A clock that stands until somebody moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize("kind", KINDS)
def test_every_store_tells_all_of_them(kind: str, tmp_path: Path) -> None:
    spoiler = Spoiler(kind, tmp_path)
    spoiler.fill(4)
    spoiler.spoil_record(4)
    with spoiler.opened() as service:
        service.recover_workflow("WF")
        service.flush()
        numbers = StoreWatch(service._engine.kit, patience_seconds=60).numbers()
    assert numbers.readable == dict.fromkeys(("sizes", "quarantine", "entries", "survey"), True)
    assert numbers.store_bytes["live"] > 0 and numbers.store_bytes["quarantine"] > 0
    assert numbers.quarantined == {Kind.CHECKPOINT: 1}
    assert numbers.audit_entries is not None and numbers.audit_entries == numbers.unanchored
    assert (numbers.free_bytes is not None) is (kind in ("file", "sqlite"))
    assert numbers.trail is not None and numbers.trail.last_checkpoint_at is not None
    assert numbers.runs is not None and numbers.runs.runs.total() == 1


def test_a_signed_head_leaves_only_what_came_after_it(tmp_path: Path) -> None:
    service = make_service(signing_key=str(tmp_path / "key"))
    service.create_checkpoint("W", {"a": 1})
    service.audit.keeper.anchor(create_key=True)
    before = StoreWatch(service._engine.kit, patience_seconds=60).numbers()
    for number in range(5):
        service.create_checkpoint("W", {"b": number})
    after = StoreWatch(service._engine.kit, patience_seconds=60).numbers()
    assert before.unanchored is not None and after.unanchored == before.unanchored + 5


def test_numbers_are_read_again_once_they_are_old() -> None:
    service, clock = make_service(), Clock()
    watch = StoreWatch(service._engine.kit, patience_seconds=60, now=clock)
    assert watch.age_seconds() is None
    first = watch.numbers()
    service.create_checkpoint("W", {"a": 1})
    clock.seconds = 4.9
    assert watch.numbers() is first and watch.age_seconds() == 4.9
    clock.seconds = 5.0
    assert watch.numbers().audit_entries == 2 and watch.age_seconds() == 0


def test_who_takes_long_is_asked_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    service, clock = make_service(), Clock()
    store = service._engine.kit.store
    stats, asked = store.stats, []

    def slowly():
        asked.append(clock.seconds)
        clock.seconds += 10
        return stats()

    monkeypatch.setattr(store, "stats", slowly)
    watch = StoreWatch(service._engine.kit, patience_seconds=60, now=clock)
    for seconds in (0, 50, 99, 100):
        clock.seconds = max(clock.seconds, float(seconds))
        watch.numbers()
    assert asked == [0, 100]


def test_whoever_asks_waits_no_longer_than_so(monkeypatch: pytest.MonkeyPatch) -> None:
    service, go_on = make_service(), threading.Event()
    store = service._engine.kit.store
    stats, asked = store.stats, []

    def hanging():
        asked.append(1)
        go_on.wait(60)
        return stats()

    monkeypatch.setattr(store, "stats", hanging)
    watch = StoreWatch(service._engine.kit, patience_seconds=0.01)
    assert watch.numbers() == watch.numbers() == StoreNumbers()
    go_on.set()
    reading = watch._reading
    assert reading is not None
    reading.join()
    assert watch.numbers().audit_entries == 0 and len(asked) == 1


@pytest.mark.parametrize(
    ("call", "piece"),
    [("stats", "sizes"), ("files", "quarantine"), ("leaves", "entries"), ("workflows", "survey")],
)
def test_what_cannot_be_read_is_said_and_hides_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str, piece: str
) -> None:
    service = make_service()
    service.create_checkpoint("W", {"a": 1})

    def fail(*args: object, **more: object) -> None:
        raise CheckpointReadError("the disk is gone")

    monkeypatch.setattr(service._engine.kit.store, call, fail)
    numbers = StoreWatch(service._engine.kit, patience_seconds=60).numbers()
    assert {name for name, is_read in numbers.readable.items() if not is_read} == {piece}
    assert ("live" in numbers.store_bytes) is (piece != "sizes")
    assert piece in caplog.text
