"""What is looked at: the newest workflows, the newest part of each, and how many there are."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.application.insight import sample as sampling
from holdfast.application.insight.sample import (
    Chosen,
    amount,
    listings,
    look_at,
    newest_workflows,
    take_sample,
)
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointReadError
from holdfast.testing import FailingStore, FixedClock
from tests.application.insight.teams import kit_of, open_at
from tests.application.insight.told_journals import START, Told
from tests.application.services import make_kit, make_service


@pytest.fixture
def service() -> CheckpointService:
    service = make_service()
    for name in ("A", "B", "C"):
        service.create_checkpoint(name, {"n": name})
    service.create_checkpoint("A", {"n": "again"})
    service.append_event("D", "BEGUN")
    service.flush()
    return service


def test_the_newest_are_chosen_first_and_all_are_counted(service: CheckpointService) -> None:
    store = kit_of(service).store
    assert newest_workflows(store, 2) == Chosen(("A", "C"), 4)
    assert newest_workflows(store, 10) == Chosen(("A", "C", "B", "D"), 4)
    assert newest_workflows(store, 0) == Chosen((), 4)


@pytest.mark.parametrize("url", ["memory:", "file:", "sqlite:"])
def test_of_very_many_the_end_of_the_trail_names_the_newest(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "DATED_MAX", 3)
    with open_at(url, tmp_path) as service:
        for name in ("A", "B", "C", "D", "A"):
            service.create_checkpoint(name, {"n": name}, force=True)
        service.append_event("E", "BEGUN")
        service.flush()
        store = kit_of(service).store
        assert newest_workflows(store, 2) == Chosen(("A", "D"), 5)
        assert newest_workflows(store, 9) == Chosen(("A", "D", "C", "B", "E"), 5)


def test_a_workflow_that_is_named_is_looked_at_in_any_case(service: CheckpointService) -> None:
    told: list[tuple[int, int]] = []
    found = take_sample(kit_of(service), "B", 1, lambda done, total: told.append((done, total)))
    assert [one.workflow_id for one in found.looked] == ["A", "B"]
    assert told == [(1, 2), (2, 2)]
    assert [one.workflow_id for one in found.only("B").looked] == ["B"]
    assert found.only(None) is found
    assert Chosen(("A", "B"), 2).first(1, "A").names == ("A",)


def test_of_a_long_journal_the_end_is_read(
    service: CheckpointService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        service.append_event("D", "STEP", {"n": number})
    monkeypatch.setattr(sampling, "EVENTS_MAX", 4)
    monkeypatch.setattr(sampling, "ENTRIES_MAX", 1)
    looked = look_at(kit_of(service), "D")
    assert [event.seq for event in looked.events] == [8, 9, 10, 11] and looked.is_cut
    assert [entry.sequence for entry in look_at(kit_of(service), "A").entries] == [2]


def test_a_journal_that_cannot_be_read_is_told_and_hides_no_other(service: CheckpointService) -> None:
    store = FailingStore(kit_of(service).store)
    store.fail("events", CheckpointReadError("the disk does not answer"))
    found = take_sample(make_kit(store))
    assert len(found.looked) == 4 and found.unreadable == ("A",)
    assert found.looked[0].problem == "the disk does not answer"


def test_a_listing_that_cannot_be_read_is_empty(service: CheckpointService) -> None:
    store = FailingStore(kit_of(service).store)
    store.fail("entries", CheckpointReadError("gone"))
    (first, second) = listings(make_kit(store), ("A", "B"))
    assert first.entries == () and len(second.entries) == 1
    store.fail("entries", CheckpointReadError("gone"), times=4)
    assert newest_workflows(store, 9).total == 4


def test_listings_end_where_there_are_too_many_checkpoints(
    service: CheckpointService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "LISTED_ENTRIES_MAX", 2)
    assert [one.workflow_id for one in listings(kit_of(service), ("A", "B", "C"))] == ["A"]


def test_results_and_texts_are_not_kept() -> None:
    (event,) = Told().completed("write", 2.0, messages=["secret"]).events
    assert dict(event.data) == {"attempt": 1, "duration_seconds": 2.0}


def test_a_run_stands_as_its_journal_says_or_its_last_checkpoint() -> None:
    assert Told().looked().status == "in_progress"
    assert Told().status("paused").looked().status == "paused"
    assert Told().checkpoint(type="workflow_complete").looked().status == "completed"
    assert Told().status("cancelled").checkpoint(type="workflow_complete").looked().status == "cancelled"


def test_it_was_last_written_when_its_last_event_or_checkpoint_was() -> None:
    assert Told().looked().last_written is None
    assert Told().event("X").checkpoint().looked().last_written == START + timedelta(seconds=2)
    assert Told().checkpoint().event("X").looked().last_written == START + timedelta(seconds=2)
    assert Told().checkpoint(pruned=True).looked().newest is None


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3.0), (0.5, 0.5), (True, None), ("3", None), (None, None), (-1, None), (float("inf"), None)],
)
def test_only_numbers_count(value: Any, number: float | None) -> None:
    assert amount(value) == number


def test_time_is_that_of_the_kit() -> None:
    clock = FixedClock(START)
    assert take_sample(make_kit(clock=clock)).now == START
