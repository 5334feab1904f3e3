import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.keyframe import (
    MIN_DELTA_WEIGHT_BYTES,
    SLACK_BYTES,
    delta_weight,
    needs_keyframe,
)


def test_a_small_delta_weighs_two_kilobytes():
    assert (delta_weight(0), delta_weight(2047), delta_weight(2049)) == (2048, 2048, 2049)


@pytest.mark.parametrize(("surplus", "needed"), [(0, False), (1, True)])
def test_the_chain_may_reach_twice_the_state_and_the_slack(surplus, needed):
    state = 100_000
    deltas = 2 * state + SLACK_BYTES - state + surplus
    assert needs_keyframe(state, deltas, state) is needed


@pytest.mark.parametrize(("state", "needed"), [(7_999, False), (8_000, True)])
def test_eight_fold_growth_asks_for_a_keyframe(state, needed):
    assert needs_keyframe(1_000, 0, state) is needed


def test_a_state_that_shrank_asks_for_a_keyframe():
    assert needs_keyframe(10_000_000, 0, 1_000)


def test_a_workflow_without_a_keyframe_asks_for_one():
    assert needs_keyframe(0, 0, 1)


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(1, 500_000)), max_size=200))
def test_restoring_reads_about_twice_the_state_at_every_step(steps):
    keyframe, deltas = 1_000, 0
    for length, state in steps:
        deltas += delta_weight(length)
        if needs_keyframe(keyframe, deltas, state):
            keyframe, deltas = state, 0
        assert keyframe + deltas <= max(2 * state + SLACK_BYTES, state)


@given(st.integers(1, 5_000_000))
def test_keyframes_of_a_steady_state_cost_no_more_than_the_deltas(state):
    """Between two keyframes lie deltas worth at least one state."""
    weight = 0
    while not needs_keyframe(state, weight, state):
        weight += max(MIN_DELTA_WEIGHT_BYTES, state // 10)
    assert weight >= state
