"""Risk: every point has a reason in words, and a run with nothing against it has none."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight import risk
from holdfast.application.insight.risk import HIGH_POINTS, MEDIUM_POINTS, Risk, duration_text, risks, risks_of
from holdfast.application.kit import Kit
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import START, Told, sample
from tests.application.services import make_kit, make_service


def judged(*told: Told, kit: Kit | None = None, **more: Any) -> Risk:
    """Judge the first of some runs."""
    found = risks_of(kit or make_kit(), sample(*told, **more), told[0].workflow_id)
    (one,) = found.runs
    return one


def codes(one: Risk) -> dict[str, int]:
    return {reason.code: reason.points for reason in one.reasons}


@pytest.mark.parametrize("url", STORES)
def test_live_runs_of_a_real_store_are_judged_and_ended_ones_are_not(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        run(service, team(), "DONE")
        run(service, team(), "FAILED", failures=2)
        service.create_checkpoint("FINE", {"n": 1})
        service.create_checkpoint("LOST", {"n": 1})
        service.acquire_lease("LOST", "somebody", ttl_seconds=0)
        found = risks(kit_of(service))
        of_one = risks(kit_of(service), "FINE")
    points = {one.workflow_id: one.points for one in found.runs}
    assert points == {"FAILED": 50, "LOST": 30, "FINE": 0}
    assert [one.level for one in found.runs] == ["high", "medium", "low"]
    assert (found.live, found.asleep, found.total) == (3, 0, 4)
    assert [one.workflow_id for one in of_one.runs] == ["FINE"]


def test_a_process_that_is_gone_is_told_from_a_lease_that_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "is_dead", lambda owner: owner == "dead")
    service = make_service()
    for name, owner in (("A", "dead"), ("B", "alive")):
        service.create_checkpoint(name, {"n": 1})
        service.acquire_lease(name, owner, ttl_seconds=600)
    found = {one.workflow_id: codes(one) for one in risks(kit_of(service)).runs}
    assert found == {"A": {"owner_gone": 40}, "B": {}}


def test_silence_is_measured_by_what_is_usual() -> None:
    told = Told()
    for number in range(12):
        told.event("STEP", {"n": number}, after_seconds=30.0)
    assert codes(judged(told, now=told.now + timedelta(seconds=80))) == {}
    assert codes(judged(told, now=told.now + timedelta(seconds=100))) == {"quiet": 20}
    late = judged(told, now=told.now + timedelta(seconds=400))
    assert codes(late) == {"quiet": 30}
    assert late.reasons[0].words == "quiet for 7 min; 30 s is usual"


def test_an_agent_that_usually_takes_long_may_be_quiet_for_long() -> None:
    slow = Told("B").ran("study", 600.0).ran("study", 600.0)
    told = Told("A")
    for number in range(12):
        told.event("STEP", {"n": number})
    told.started("study")
    assert codes(judged(told, slow, now=told.now + timedelta(seconds=900))) == {}
    assert "quiet" in codes(judged(told, slow, now=told.now + timedelta(seconds=3000)))


def test_a_run_that_rests_is_not_quiet() -> None:
    told = Told()
    for number in range(12):
        told.event("STEP", {"n": number})
    told.status("waiting")
    assert judged(told, now=told.now + timedelta(days=3)).points == 0


def test_tries_that_were_used_up_count() -> None:
    told = Told().started("write").failed("write").started("write", 2).failed("write", 2)
    assert codes(judged(told)) == {"retries": 20}
    told.started("write", 3)
    one = judged(told)
    assert one.agents == ("write",)
    assert one.reasons[0].words == "write is at attempt 3; 2 before gave no result"
    assert codes(judged(Told().checkpoint(retry_count=1))) == {"checkpoint_retries": 10}


def test_an_agent_that_gave_up_while_the_run_goes_on_counts() -> None:
    assert codes(judged(Told().started("a").failed("a", retries=False))) == {"gave_up": 40}


def test_an_agent_that_often_failed_elsewhere_counts_while_it_is_at_work() -> None:
    others = [Told(f"W-{number}").started("write").failed("write", retries=False) for number in range(3)]
    others.append(Told("W-3").ran("write"))
    told = Told("A").started("write")
    one = judged(told, *others)
    assert codes(one) == {"failing_agent": 22}
    assert one.reasons[0].words == "write is at work, and 75% of its 4 attempts failed"
    assert codes(judged(told, others[0])) == {}


def test_crashes_behind_it_count() -> None:
    assert codes(judged(Told().started("a").recovered().recovered())) == {"crashes": 20}


def test_a_state_near_its_limit_or_on_its_way_there_counts() -> None:
    kit = replace(make_kit(), limit_bytes=100_000)
    assert codes(judged(Told().checkpoint(60_000), kit=kit)) == {"large_state": 25}
    growing = Told()
    for number in range(10):
        growing.checkpoint(10_000 + 2_000 * number)
    assert codes(judged(growing, kit=kit)) == {"growing_state": 15}
    still = Told()
    for _ in range(10):
        still.checkpoint(10_000)
    assert codes(judged(still, kit=kit)) == {}
    slow = Told()
    for number in range(10):
        slow.checkpoint(10_000 + number)
    assert codes(judged(slow, kit=kit)) == {}


def test_a_loop_that_turns_more_often_than_usual_counts() -> None:
    def turned(name: str, rounds: int) -> Told:
        told = Told(name)
        for number in range(1, rounds + 1):
            told.ran("write", step=f"write#{number}").ran("judge", step=f"judge#{number}")
        return told

    one = judged(turned("A", 6), turned("B", 2))
    assert codes(one) == {"loop": 15}
    assert one.reasons[0].words == "it goes through the same agents for the 6th time; 2 are usual"
    assert codes(judged(turned("A", 6), turned("B", 5))) == {}
    assert "usual" not in judged(turned("A", 6)).reasons[0].words


def test_an_agent_that_is_unsure_counts() -> None:
    told = Told().started("a").completed("a", 1.0, confidence=0.3)
    assert codes(judged(told)) == {"confidence": 10}
    assert codes(judged(told.started("b").completed("b", 1.0, confidence=0.9))) == {}


def test_runs_that_were_quiet_for_a_month_are_asleep() -> None:
    told = Told().event("X")
    found = risks_of(make_kit(), sample(told, Told("EMPTY"), now=START + timedelta(days=40)))
    assert (found.live, found.asleep, found.runs) == (0, 1, ())


@given(
    st.lists(st.sampled_from(["started", "failed", "ran", "recovered", "checkpoint", "quiet"]), max_size=40),
    st.integers(0, 10**5),
)
def test_the_points_are_the_sum_of_their_reasons_and_the_level_follows_from_them(deeds, seconds) -> None:
    told = Told().event("BEGUN")
    for deed in deeds:
        if deed == "recovered":
            told.recovered()
        elif deed == "checkpoint":
            told.checkpoint()
        elif deed == "quiet":
            told.event("NOTE", after_seconds=100.0)
        else:
            getattr(told, deed)("a")
    one = judged(told, now=told.now + timedelta(seconds=seconds))
    assert one.points == min(sum(reason.points for reason in one.reasons), 100)
    assert all(reason.points > 0 and reason.words for reason in one.reasons)
    level = "high" if one.points >= HIGH_POINTS else "medium" if one.points >= MEDIUM_POINTS else "low"
    assert one.level == level


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0042, "4.2 ms"),
        (0.4, "400 ms"),
        (4, "4.0 s"),
        (90, "90 s"),
        (1500, "25 min"),
        (11_520, "3.2 h"),
        (345_600, "4.0 days"),
    ],
)
def test_durations_are_written_for_people(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


def test_times_are_told_as_text() -> None:
    assert (
        judged(Told(start=datetime(2026, 1, 1, tzinfo=UTC)).event("X")).last_written
        == "2026-01-01T00:00:01.000000Z"
    )
