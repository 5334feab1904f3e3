"""Robust statistics: exact where the data are, blind to scale and place, silent where nothing is unusual."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.statistics import LEAST_SAMPLES, Spread, outliers, quantile, robust_line, spread

whole = st.integers(-(10**6), 10**6)
many = st.lists(whole, min_size=LEAST_SAMPLES, max_size=60)


@given(
    whole, st.integers(-1000, 1000), st.lists(st.integers(-500, 500), min_size=2, max_size=60, unique=True)
)
def test_the_line_through_points_of_a_line_is_that_line(start, slope, places):
    line = robust_line([(x, start + slope * x) for x in places])
    assert line is not None
    assert (line.slope, line.low_slope, line.high_slope) == (slope, slope, slope)
    assert line.at(1000) == start + slope * 1000


@given(st.integers(1, 100), st.integers(0, 6), st.randoms(use_true_random=False))
def test_a_quarter_of_wild_points_does_not_move_the_line(slope, wild, dice: random.Random):
    points = [(float(x), float(slope * x)) for x in range(30)]
    for place in dice.sample(range(30), wild):
        points[place] = (points[place][0], dice.uniform(-1e6, 1e6))
    line = robust_line(points)
    assert line is not None and line.slope == pytest.approx(slope, rel=0.2, abs=0.5)


def test_points_at_one_place_have_no_line():
    assert robust_line([]) is None
    assert robust_line([(1.0, 2.0)]) is None
    assert robust_line([(1.0, 2.0), (1.0, 3.0)]) is None


def test_of_very_many_points_some_are_taken_the_ends_among_them():
    line = robust_line([(x, 3 * x + 1) for x in range(5000)])
    assert line is not None and (line.slope, line.intercept) == (3, 1)


@given(whole, st.integers(0, 100))
def test_equal_values_are_never_unusual(value, count):
    assert outliers([value] * count) == []


@given(many, whole, st.integers(1, 1000))
def test_what_is_unusual_stays_so_wherever_zero_is_and_whatever_the_unit(values, shift, scale):
    found = outliers(values)
    moved = outliers([value * scale + shift for value in values])
    assert [(one.index, one.score) for one in moved] == [(one.index, one.score) for one in found]


@given(many)
def test_turning_values_round_turns_the_scores_round(values):
    turned = [(one.index, -one.score) for one in outliers([-value for value in values])]
    assert turned == [(one.index, one.score) for one in outliers(values)]


@given(st.lists(whole, max_size=LEAST_SAMPLES - 1))
def test_few_values_say_nothing(values):
    assert outliers(values) == []


@given(many)
def test_never_more_than_half_of_the_values_are_unusual(values):
    assert len(outliers(values)) <= len(values) / 2


def test_a_value_far_out_is_found_and_tells_what_is_usual():
    (odd,) = outliers([10, 11, 9, 10, 12, 8, 10, 11, 500])
    assert (odd.index, odd.value, odd.usual) == (8, 500, 10)
    assert odd.score > 100
    (low,) = outliers([10, 11, 9, 10, 12, 8, 10, 11, -500])
    assert low.score < -100


def test_one_other_value_among_many_equal_ones_is_found():
    (odd,) = outliers([7] * 20 + [9])
    assert (odd.index, odd.usual) == (20, 7)


def test_values_of_one_bell_are_hardly_ever_unusual():
    dice = random.Random(3)
    found = [len(outliers([dice.gauss(100, 10) for _ in range(50)])) for _ in range(200)]
    assert sum(found) < 200 * 50 * 0.01


@given(st.lists(whole, min_size=1, max_size=40))
def test_quantiles_go_from_the_smallest_to_the_largest(values):
    told = [quantile(values, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert told == sorted(told)
    assert (told[0], told[-1]) == (min(values), max(values))


def test_a_spread_tells_the_middle_and_the_end():
    assert spread([]) is None
    assert spread([4.0]) == Spread(1, 4.0, 4.0, 4.0, 4.0)
    told = spread([float(value) for value in range(1, 102)])
    assert told == Spread(101, 51.0, 96.0, 101.0, 5151.0)
