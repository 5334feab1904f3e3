"""The newest checkpoints of workflows, kept while these stand still."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.insight import recent_checkpoints
from holdfast.application.insight.recent_checkpoints import RecentCheckpoints, moment_of
from holdfast.application.insight.run_facts import RunFacts
from holdfast.application.insight.runs import RunBook
from holdfast.application.service import CheckpointService
from tests.application.services import make_kit


class Counting:
    """A store that counts how often listings are read."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Any:
        self.reads += 1
        return self._store.entries(workflow_id, newest_first=newest_first)


class Filled:
    """A workflow with checkpoints, and what is kept of it."""

    def __init__(self, count: int) -> None:
        self.store = Counting(make_kit().store)
        kit = make_kit(self.store)
        self.service, self.book = CheckpointService(kit), RunBook(kit)
        for number in range(count):
            self.service.create_checkpoint("W", {"n": number})
        self.now = 0.0
        self.recent = RecentCheckpoints(self.store, now=lambda: self.now)

    @property
    def facts(self) -> RunFacts:
        facts = self.book.facts("W")
        assert facts is not None
        return facts

    def numbers(self, facts: RunFacts, after: Any = None) -> list[int]:
        return [entry.sequence for _, entry in self.recent.of(facts, after)]

    def reads_for(self, facts: RunFacts) -> int:
        before = self.store.reads
        self.numbers(facts)
        return self.store.reads - before


def test_a_listing_is_read_once_while_its_workflow_stands_still() -> None:
    filled = Filled(4)
    facts = filled.facts
    assert filled.numbers(facts) == [4, 3, 2, 1]
    assert filled.reads_for(facts) == 0
    filled.service.create_checkpoint("W", {"n": "new"})
    assert filled.numbers(filled.facts) == [5, 4, 3, 2, 1]


def test_a_status_that_changed_is_told() -> None:
    filled = Filled(2)
    assert filled.numbers(filled.facts) == [2, 1]
    filled.service.mark_failed("W@1", "no")
    assert [entry.status for _, entry in filled.recent.of(filled.facts)] == ["active", "failed"]


def test_what_a_prune_removed_is_not_told_for_longer_than_a_minute() -> None:
    filled = Filled(4)
    before = filled.facts
    assert filled.numbers(before) == [4, 3, 2, 1]
    filled.service.prune_checkpoints("W", retain_count=2, retain_days=0)
    assert filled.numbers(filled.facts) == [4, 3]
    filled.now = 61.0
    assert filled.numbers(before) == [4, 3]


def test_the_only_checkpoint_needs_no_reading() -> None:
    filled = Filled(1)
    facts = filled.facts
    assert (filled.numbers(facts), filled.reads_for(facts)) == ([1], 0)


@pytest.mark.parametrize("after", [None, 7, 5, 4, 3, 1])
def test_a_listing_goes_on_in_the_store_where_what_is_kept_ends(
    after: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent_checkpoints, "EACH_MAX", 3)
    filled = Filled(7)
    facts = filled.facts
    places = {entry.sequence: place for place, entry in filled.recent.of(facts)}
    expected = [number for number in range(7, 0, -1) if after is None or number < after]
    assert filled.numbers(facts, None if after is None else places[after]) == expected


def test_so_many_are_kept_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_checkpoints, "ALL_MAX", 3)
    filled = Filled(4)
    facts = filled.facts
    assert filled.numbers(facts) == [4, 3, 2, 1]
    assert filled.reads_for(facts) == 1


def test_moments_grow_with_time() -> None:
    assert moment_of("2026-01-01T00:00:00.000001Z") > moment_of("2026-01-01T00:00:00.000000Z") > 0
    assert moment_of("no moment") == 0
