"""The formulas of Young and Daly, held against the exact loss and against a simulation."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoint_interval import (
    MAX_INTERVAL_SECONDS,
    MIN_INTERVAL_SECONDS,
    daly_seconds,
    mtbf_seconds,
    recommended_seconds,
    young_seconds,
)
from tests.domain.losses import expected_share_lost

costs = st.floats(1e-4, 1e3)
mtbfs = st.floats(1.0, 1e7)


def test_young_is_the_square_root_of_twice_cost_and_time_between_failures():
    assert young_seconds(2.0, 3600.0) == 120.0


def test_daly_gives_known_values():
    # sqrt(2 * 5 * 1440) is 120, and 5 / (2 * 1440) is 1/576, whose root is 1/24.
    assert daly_seconds(5.0, 1440.0) == pytest.approx(120 * (1 + 1 / 72 + 1 / 5184) - 5)


def test_daly_answers_the_time_between_failures_where_a_checkpoint_takes_twice_that():
    assert daly_seconds(20.0, 10.0) == 10.0
    assert daly_seconds(200.0, 10.0) == 10.0


@given(costs, mtbfs)
def test_daly_is_near_the_exact_optimum_and_never_worse_than_young(cost, mtbf):
    if cost > mtbf / 2:
        return
    best = min(expected_share_lost(daly_seconds(cost, mtbf) * k, cost, mtbf) for k in (0.5, 0.8, 1.25, 2.0))
    by_daly = expected_share_lost(daly_seconds(cost, mtbf), cost, mtbf)
    by_young = expected_share_lost(young_seconds(cost, mtbf), cost, mtbf)
    assert by_daly <= best * (1 + 1e-9)
    assert by_daly <= by_young * (1 + 1e-6)


@given(costs, mtbfs)
def test_the_recommendation_stays_within_its_bounds(cost, mtbf):
    assert MIN_INTERVAL_SECONDS <= recommended_seconds(cost, mtbf) <= MAX_INTERVAL_SECONDS


@given(st.floats(1e-3, 1.0), st.floats(1e4, 1e6))
def test_where_checkpoints_are_cheap_the_recommendation_is_the_square_root(cost, mtbf):
    assert recommended_seconds(cost, mtbf, 1e-9, 1e9) == pytest.approx(math.sqrt(2 * cost * mtbf), rel=0.01)


def test_each_failure_and_each_hour_counts_for_the_time_between_failures():
    assert mtbf_seconds(0.0, 0, prior_seconds=100.0) == 100.0
    assert mtbf_seconds(800.0, 2, prior_seconds=100.0) == 300.0


def simulated_share_lost(interval: float, cost: float, mtbf: float) -> float:
    """Work through failures drawn at random, the same for every interval, and tell what share was lost."""
    dice, spent, done, work = random.Random(11), 0.0, 0.0, 400 * mtbf
    failure = dice.expovariate(1 / mtbf)
    while done < work:
        needed = interval + cost
        if failure >= needed:
            failure -= needed
            spent, done = spent + needed, done + interval
        else:
            spent += failure
            failure = dice.expovariate(1 / mtbf)
    return spent / done - 1


@pytest.mark.parametrize(("cost", "mtbf"), [(1.0, 500.0), (5.0, 2000.0), (0.2, 1000.0)])
def test_in_a_simulation_no_other_interval_loses_clearly_less(cost, mtbf):
    best = recommended_seconds(cost, mtbf)
    assert best == pytest.approx(math.sqrt(2 * cost * mtbf), rel=0.1)
    lost = simulated_share_lost(best, cost, mtbf)
    for factor in (0.25, 0.5, 2.0, 4.0):
        assert lost < simulated_share_lost(best * factor, cost, mtbf)
