import json
import math
import statistics
from collections.abc import Callable, Iterable
from functools import cache, partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.checkpoint_interval import (
    COST_SCENARIOS,
    FAILURE_SCENARIOS,
    FIXED,
    HOUR,
    MINUTE,
    POLICIES,
    SCENARIOS,
    WORK_SECONDS,
    Adaptive,
    Careless,
    Deaf,
    Fixed,
    Policy,
    Scenario,
    lost_seconds,
    mean_lost_hours,
    run,
    steady,
)
from holdfast.domain.checkpoint_interval import daly_seconds
from holdfast.domain.errors import ConfigError, InvalidStateError
from holdfast.execution.adaptive import AdaptiveInterval, AdaptiveSettings
from tests.domain.losses import expected_share_lost

RUNS = 20
WIDE = AdaptiveSettings(min_seconds=1e-9, max_seconds=1e9)

costs = st.floats(1e-4, 1e3)


@cache
def lost_in(scenario: Scenario, policy: Callable[[], Policy] | float) -> float:
    """Hours lost in one scenario by a policy, or with a fixed interval; each is simulated once."""
    chosen = policy if callable(policy) else partial(Fixed, policy)
    return mean_lost_hours(chosen, (scenario,), RUNS)


def lost(policy: Callable[[], Policy] | float, scenarios: Iterable[Scenario]) -> float:
    return statistics.fmean(lost_in(scenario, policy) for scenario in scenarios)


def best_fixed(scenarios: Iterable[Scenario]) -> float:
    """What the best of the fixed intervals loses, among them those that only hindsight would choose."""
    return min(lost(minutes * MINUTE, scenarios) for minutes in (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 60))


@given(st.lists(st.sampled_from(("ran", "failed", "paid")), max_size=30), st.floats(0, 1e5))
def test_the_interval_always_stays_within_its_bounds(deeds, amount):
    adaptive = AdaptiveInterval(AdaptiveSettings(min_seconds=2.0, max_seconds=50.0))
    for deed in deeds:
        adaptive.failed() if deed == "failed" else getattr(adaptive, deed)(amount)
        assert 2.0 <= adaptive.interval_seconds <= 50.0


@given(costs, st.integers(0, 50), st.floats(0, 1e6))
def test_each_failure_shortens_the_interval_and_quiet_time_lengthens_it(cost, failures, seconds):
    # Only where checkpoints are cheap: above that the formula has its other branch.
    adaptive = AdaptiveInterval(WIDE)
    adaptive.paid(min(cost, 1.0))
    adaptive.ran(seconds)
    for _ in range(failures):
        adaptive.failed()
    before = adaptive.interval_seconds
    adaptive.failed()
    shorter = adaptive.interval_seconds
    adaptive.ran(1e6)
    assert shorter < before
    assert adaptive.interval_seconds > shorter


def test_with_nothing_seen_the_assumptions_count():
    adaptive = AdaptiveInterval()
    assert adaptive.mtbf_seconds == AdaptiveSettings().prior_mtbf_seconds
    assert adaptive.interval_seconds == pytest.approx(daly_seconds(0.1, 4 * HOUR))


def test_the_time_between_failures_is_learnt_with_one_failure_assumed():
    adaptive = AdaptiveInterval(AdaptiveSettings(prior_mtbf_seconds=100.0))
    adaptive.ran(800.0)
    adaptive.failed()
    adaptive.failed()
    assert adaptive.mtbf_seconds == 300.0


def test_the_first_cost_replaces_the_assumption_and_later_ones_fade_in():
    adaptive = AdaptiveInterval()
    adaptive.paid(10.0)
    assert adaptive.cost_seconds == 10.0
    adaptive.paid(20.0)
    assert adaptive.cost_seconds == pytest.approx(13.0)
    for _ in range(40):
        adaptive.paid(20.0)
    assert adaptive.cost_seconds == pytest.approx(20.0, rel=1e-3)


def test_a_clock_that_went_back_takes_nothing_away():
    adaptive = AdaptiveInterval()
    adaptive.ran(-5.0)
    adaptive.paid(-1.0)
    assert (adaptive.ran_seconds, adaptive.cost_seconds) == (0.0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 100), st.booleans()), max_size=20))
def test_what_was_learnt_survives_being_stored_as_json(story):
    adaptive = AdaptiveInterval()
    for seconds, cost, failed in story:
        adaptive.ran(seconds)
        adaptive.paid(cost)
        if failed:
            adaptive.failed()
    again = AdaptiveInterval.from_plain(json.loads(json.dumps(adaptive.as_plain())), adaptive.settings)
    assert again.as_plain() == adaptive.as_plain()
    assert again.interval_seconds == adaptive.interval_seconds


@pytest.mark.parametrize(
    "change",
    [
        {"failures": -1},
        {"failures": 1.5},
        {"failures": True},
        {"failures": None},
        {"ran_seconds": "long"},
        {"ran_seconds": math.nan},
        {"ran_seconds": None},
        {"cost_seconds": -0.1},
        {"cost_seconds": math.inf},
    ],
)
def test_nonsense_is_not_taken_for_what_was_learnt(change):
    with pytest.raises(InvalidStateError, match="learns again"):
        AdaptiveInterval.from_plain({**AdaptiveInterval().as_plain(), **change})


@pytest.mark.parametrize("name", ["prior_mtbf_seconds", "prior_cost_seconds", "min_seconds", "max_seconds"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "1"])
def test_settings_are_seconds_above_0(name, value):
    with pytest.raises(ConfigError, match=f"{name} is .*AdaptiveSettings. Use seconds above 0"):
        AdaptiveSettings(**{name: value})


def test_bounds_that_exclude_each_other_are_refused():
    with pytest.raises(ConfigError, match="the other way round"):
        AdaptiveSettings(min_seconds=10, max_seconds=5)


def test_the_simulation_counts_checkpoints_alone_where_nothing_fails():
    undisturbed = steady("undisturbed", 1e12, 3.0)
    hourly = WORK_SECONDS / HOUR
    assert lost_seconds(undisturbed, Fixed(HOUR), 1) == pytest.approx(hourly * 3.0)


def test_the_simulation_agrees_with_the_exact_mean():
    scenario, runs = steady("exact", 2 * HOUR, 20.0), 200
    simulated = sum(lost_seconds(scenario, Fixed(10 * MINUTE), seed) for seed in range(runs)) / runs
    segments = WORK_SECONDS / (10 * MINUTE)
    # Each failure costs a restart besides, and a try of a segment fails so often before it succeeds.
    restarts = segments * math.expm1((10 * MINUTE + 20) / (2 * HOUR)) * 30
    exact = expected_share_lost(10 * MINUTE, 20.0, 2 * HOUR) * WORK_SECONDS + restarts
    assert simulated == pytest.approx(exact, rel=0.05)


def test_the_same_seed_loses_the_same():
    assert lost_seconds(SCENARIOS[1], Adaptive(), 7) == lost_seconds(SCENARIOS[1], Adaptive(), 7)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FIXED)
def test_learnt_intervals_lose_less_over_all_scenarios_than_a_fixed_one(name):
    assert lost(Adaptive, SCENARIOS) < lost(FIXED[name], SCENARIOS)


@pytest.mark.parametrize(
    "scenarios", [FAILURE_SCENARIOS, COST_SCENARIOS, SCENARIOS], ids=("failures", "costs", "all")
)
def test_learnt_intervals_lose_less_than_the_fixed_one_that_is_best_in_hindsight(scenarios):
    assert lost(Adaptive, scenarios) < best_fixed(scenarios)


def test_without_hearing_of_failures_they_lose_more_than_a_fixed_one_where_failures_differ():
    assert lost(Deaf, FAILURE_SCENARIOS) > best_fixed(FAILURE_SCENARIOS)


@pytest.mark.sweep
def test_without_hearing_of_costs_they_lose_more_than_a_fixed_one_where_costs_differ():
    assert lost(Careless, COST_SCENARIOS) > best_fixed(COST_SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_where_one_fixed_interval_happens_to_be_right_learning_costs_little(scenario):
    assert lost(Adaptive, (scenario,)) < 1.3 * best_fixed((scenario,))


def test_the_table_has_a_row_for_each_scenario_and_holds_its_bar(tmp_path):
    *rows, last = run(tmp_path, runs=3)
    assert [row.what for row in rows] == [scenario.name for scenario in SCENARIOS]
    assert all(name in row.value for row in rows for name in POLICIES)
    assert last.held
