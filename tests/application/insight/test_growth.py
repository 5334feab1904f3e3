"""Growth: told by what is kept, day by day, and led on by a line that one wild day does not bend."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import bootstrap
from holdfast.application.insight.growth import growth
from holdfast.application.insight.sample import Listed
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.config import Config
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text
from holdfast.testing import FailingStore, FixedClock
from tests.application.services import make_kit

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 11, tzinfo=UTC)


def entry(sequence: int, at: datetime, length: int, *, pruned: bool = False) -> Entry:
    moment = timestamp_text(at)
    return Entry(
        sequence, f"u-{sequence}", moment, "stage_complete", "sha256:0", length=length, pruned=pruned
    )


class Made(FailingStore):
    """A store whose listings and size are made up."""

    def __init__(self, listed: list[Listed], store_bytes: int = 0) -> None:
        super().__init__()
        self.alter("workflows", lambda _: iter([one.workflow_id for one in listed]))
        self.alter("stats", lambda _: {"bytes": store_bytes})
        self.listed = {one.workflow_id: one for one in listed}

    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Any:
        entries = self.listed[workflow_id].entries
        return iter(reversed(entries) if newest_first else entries)


def made(*days: int, name: str = "A", per_day: int = 1000) -> Listed:
    """Make up a workflow with a checkpoint at noon of each of some days before NOON."""
    moments = [NOON - timedelta(days=day) for day in sorted(days, reverse=True)]
    return Listed(name, tuple(entry(place + 1, at, per_day) for place, at in enumerate(moments)), ())


def kit_with(*listed: Listed, store_bytes: int = 0, space: tuple[int, int] | None = None, now=NOON) -> Kit:
    kit = make_kit(Made(list(listed), store_bytes), clock=FixedClock(now))
    return replace(kit, space=(lambda: space) if space else None)


@pytest.mark.parametrize("url", ["file:{}/store", "sqlite:{}/store.db"])
def test_a_real_store_tells_how_it_grew_and_when_its_disk_is_full(url: str, tmp_path: Path) -> None:
    clock = FixedClock(NOON - timedelta(days=9), step=timedelta(microseconds=1))
    store = bootstrap.open_store(Config(store=url.format(tmp_path)))
    kit = make_kit(store, clock=clock)
    with CheckpointService(kit) as service:
        for day in range(10):
            for number in range(3):
                service.create_checkpoint(f"W-{day}", {"text": f"{day} {number} " * 200})
            clock.advance(timedelta(days=1))
        clock.advance(timedelta(days=-1))
        service.flush()
        store.settle()
        found = growth(replace(kit, space=lambda: (10**9, 10**6)), days=30)
        one = growth(kit, workflow_id="W-3")
    assert [day.checkpoints for day in found.days] == [3] * 10
    assert found.days[-1].total_bytes == found.listed_bytes == sum(day.bytes for day in found.days)
    assert found.is_whole and found.factor >= 1 and found.store_bytes >= found.listed_bytes
    forecast = found.forecast
    assert forecast is not None and forecast.what == "disk"
    # As much each day: a tenth of everything.
    assert forecast.bytes_per_day == pytest.approx(found.store_bytes / 10, rel=0.2)
    assert forecast.days_left == pytest.approx(10**6 / forecast.bytes_per_day)
    assert [day.checkpoints for day in one.days if day.checkpoints] == [3] and one.factor == 1


@given(st.integers(1, 10**9), st.integers(3, 60))
def test_the_forecast_of_even_growth_is_exact(per_day, count) -> None:
    now = MIDNIGHT
    listed = Listed(
        "A",
        tuple(entry(n + 1, now - timedelta(days=count - n, hours=-1), per_day) for n in range(count)),
        (),
    )
    kit = kit_with(listed, store_bytes=per_day * count, space=(10**15, per_day * 100), now=now)
    forecast = growth(kit, days=count).forecast
    assert forecast is not None
    assert forecast.bytes_per_day == pytest.approx(per_day, rel=1e-9)
    assert forecast.low_bytes_per_day <= forecast.bytes_per_day <= forecast.high_bytes_per_day
    assert forecast.days_left == pytest.approx(100, rel=1e-9)
    # The window ends at midnight, at the beginning of a day without anything.
    assert forecast.full_on == (now + timedelta(days=forecast.days_left)).date().isoformat()


def test_one_wild_day_does_not_bend_the_line() -> None:
    entries = [entry(n + 1, NOON - timedelta(days=20 - n), 1000) for n in range(21)]
    entries[10] = replace(entries[10], length=10**6)
    forecast = growth(kit_with(Listed("A", tuple(entries), ()))).forecast
    assert forecast is not None
    assert forecast.bytes_per_day == pytest.approx(1000, rel=0.05)
    assert forecast.exceptional == ((NOON - timedelta(days=10)).date().isoformat(),)


def test_work_that_comes_once_a_week_is_growth_and_no_exception() -> None:
    forecast = growth(kit_with(made(*range(1, 29, 7), per_day=7000))).forecast
    assert forecast is not None and forecast.exceptional == ()
    assert forecast.bytes_per_day == pytest.approx(1000, rel=0.3)


def test_too_few_days_are_no_reason_to_say_anything() -> None:
    found = growth(kit_with(made(0, 1)))
    assert found.forecast is None
    assert found.reason == "the checkpoints span 2 of the 3 days that are needed"
    empty = growth(kit_with())
    assert (empty.days, empty.forecast, empty.is_whole) == ((), None, True)


def test_what_does_not_grow_is_never_full() -> None:
    forecast = growth(kit_with(made(29), space=(100, 50))).forecast
    assert forecast is not None
    assert (forecast.bytes_per_day, forecast.what, forecast.days_left, forecast.full_on) == (
        0,
        None,
        None,
        None,
    )


def test_what_is_less_counts_the_disk_or_the_limit() -> None:
    kit = kit_with(made(*range(10)), store_bytes=10_000, space=(10**6, 10**5))
    disk = growth(kit, limit_bytes=10**6).forecast
    limit = growth(kit, limit_bytes=15_000).forecast
    over = growth(kit, limit_bytes=5_000).forecast
    assert disk is not None and (disk.what, disk.room_bytes) == ("disk", 10**5)
    assert limit is not None and (limit.what, limit.room_bytes) == ("limit", 5_000)
    assert over is not None and over.days_left == 0.0 and over.full_on == NOON.date().isoformat()


def test_a_disk_that_lasts_for_ages_has_no_day() -> None:
    forecast = growth(kit_with(made(*range(10)), space=(10**15, 10**15))).forecast
    assert forecast is not None and forecast.days_left is not None and forecast.full_on is None


def test_what_was_removed_was_made_and_takes_nothing() -> None:
    listed = Listed("A", (entry(1, NOON, 500, pruned=True), entry(2, NOON, 300)), ())
    (day,) = growth(kit_with(listed)).days
    assert (day.checkpoints, day.kept, day.bytes) == (2, 1, 300)


def test_what_is_older_than_the_window_is_in_the_sum() -> None:
    found = growth(kit_with(made(0, 1, 50)), days=5)
    assert [day.total_bytes for day in found.days] == [1000, 1000, 1000, 2000, 3000]


def test_the_newest_workflows_may_be_all_that_matters() -> None:
    old, new = made(90, 91, name="A"), made(0, 1, 2, name="B")
    middle = made(40, name="M")
    assert growth(kit_with(old, middle, new), limit=2).is_whole
    assert not growth(kit_with(made(0, name="A"), new), limit=1).is_whole
