"""Checkpoints: how often, at what cost, for what gain, and how often they should be made."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.intervals import intervals, intervals_of
from holdfast.domain.checkpoint_interval import PRIOR_COST_SECONDS, PRIOR_MTBF_SECONDS
from tests.application.insight.teams import STORES, kit_of, open_at, run, team
from tests.application.insight.told_journals import Told, sample


def learnt(cost: float | None, failures: int, ran: float) -> dict[str, float | None]:
    return {"cost_seconds": cost, "failures": failures, "ran_seconds": ran}


@pytest.mark.parametrize("url", STORES)
def test_what_the_executor_measured_is_what_counts(url: str, tmp_path: Path) -> None:
    with open_at(url, tmp_path) as service:
        workflow = team()
        assert run(service, workflow, "A", failures=2) == "failed"
        assert run(service, workflow, "A") == "completed"
        service.create_checkpoint("B", {"by": "hand"})
        found = intervals(kit_of(service))
        (of_one,) = intervals(kit_of(service), "A").workflows
        made = len(service.list_checkpoints("A"))
    assert (found.looked_at, found.total, found.overall.checkpoints) == (2, 2, made + 1)
    assert {one.workflow_id: one.is_cost_measured for one in found.workflows} == {"A": True, "B": False}
    assert of_one.checkpoints == made and of_one.median_seconds is not None
    # Everything up to the publisher was kept when the run was brought back.
    assert of_one.saved_seconds > 0 and of_one.ran_seconds > 0
    assert of_one.spent_seconds == pytest.approx(made * of_one.cost_seconds)


def test_a_workflow_without_the_executor_is_judged_by_what_is_assumed() -> None:
    told = Told().checkpoint().checkpoint(after_seconds=60).recovered()
    one = intervals_of(sample(told)).overall
    assert (one.cost_seconds, one.is_cost_measured, one.spent_share) == (PRIOR_COST_SECONDS, False, None)
    assert (one.failures, one.median_seconds) == (1, 60.0)
    assert one.mtbf_seconds == PRIOR_MTBF_SECONDS / 2
    assert one.advice == "about right, if a checkpoint costs what is assumed"


def test_work_that_was_done_is_saved_and_work_under_way_is_lost() -> None:
    told = Told().ran("plan", 30.0).started("write").event("NOTE", after_seconds=9.0).recovered()
    told.started("write", 2).completed("write", 5.0, attempt=2).recovered()
    one = intervals_of(sample(told)).overall
    # The plan at both recoveries, and the text at the second.
    assert one.saved_seconds == 30.0 + 35.0
    assert one.lost_seconds == 9.0


@pytest.mark.parametrize(
    ("gap_seconds", "cost", "ran", "advice"),
    [
        (3000.0, 0.01, 1e5, "more often"),
        (1.0, 0.01, 1e5, "and cheap"),
        (1.0, 5.0, 100.0, "less often would do: they take"),
    ],
)
def test_the_advice_says_which_way_to_go(gap_seconds: float, cost: float, ran: float, advice: str) -> None:
    told = Told().status("paused", learnt(cost, 0, ran))
    for _ in range(10):
        told.checkpoint(after_seconds=gap_seconds)
    assert advice in intervals_of(sample(told)).overall.advice


def test_without_a_second_checkpoint_there_is_nothing_to_compare() -> None:
    found = intervals_of(sample(Told().event("X"), Told("B").checkpoint()))
    assert found.overall.median_seconds is None and "nothing to compare" in found.overall.advice
    assert [one.workflow_id for one in found.workflows] == ["B"]
    dear = Told().checkpoint().checkpoint(after_seconds=1.0)
    assert intervals_of(sample(dear)).overall.advice.startswith("less often would do, if")


@given(st.floats(0.01, 1.0), st.integers(1, 50))
def test_the_recommendation_is_the_square_root_of_twice_cost_and_time_between_failures(
    cost, failures
) -> None:
    told = Told().checkpoint().status("paused", learnt(cost, failures, 1e5))
    one = intervals_of(sample(told)).overall
    assert one.mtbf_seconds == (PRIOR_MTBF_SECONDS + 1e5) / (1 + failures)
    assert one.young_seconds == math.sqrt(2 * cost * one.mtbf_seconds)
    assert one.recommended_seconds == pytest.approx(one.young_seconds, rel=0.02)


def test_over_simulated_runs_the_recommendation_follows_the_true_time_between_failures() -> None:
    dice, mtbf, cost = random.Random(5), 2000.0, 0.5
    runs = []
    for number in range(60):
        failures, ran = 0, 0.0
        while ran < 20_000:
            ran += dice.expovariate(1 / mtbf)
            failures += 1
        costs = learnt(cost * dice.uniform(0.9, 1.1), failures, ran)
        runs.append(Told(f"W-{number}").checkpoint().status("paused", costs))
    one = intervals_of(sample(*runs)).overall
    assert one.mtbf_seconds == pytest.approx(mtbf, rel=0.1)
    assert one.recommended_seconds == pytest.approx(math.sqrt(2 * cost * mtbf), rel=0.1)


def test_what_was_learnt_and_is_none_is_passed_over() -> None:
    told = Told().checkpoint().status("paused", {"failures": "many", "ran_seconds": -1, "cost_seconds": None})
    one = intervals_of(sample(told)).overall
    assert (one.failures, one.is_cost_measured, one.ran_seconds) == (0, False, 0.0)
