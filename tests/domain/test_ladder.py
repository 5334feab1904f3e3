"""Down at once, up one step at a time and after several successes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.ladder import Climb, Ladder, Mode

CLIMB = Climb(successes=3, pause_seconds=1.0, pause_max_seconds=5.0)
STEPS = list(Mode)


def test_the_order_is_that_of_what_is_still_durable():
    assert [mode.value for mode in Mode] == ["full", "event_only", "memory_only", "emergency"]
    assert [mode.depth for mode in Mode] == [0, 1, 2, 3]


@pytest.mark.parametrize("mode", STEPS)
def test_a_fault_leads_down_at_once_and_never_up(mode):
    for before in STEPS:
        after = Ladder(before).fault(mode)
        assert after.mode.depth == max(before.depth, mode.depth)
        assert (after.successes, after.faults) == (0, 1)


@pytest.mark.parametrize("mode", STEPS[1:])
def test_it_takes_several_successes_in_a_row_for_one_step_up(mode):
    ladder = Ladder(mode)
    for _ in range(CLIMB.successes - 1):
        ladder = ladder.success(CLIMB)
        assert ladder.mode is mode
    assert ladder.success(CLIMB).mode is STEPS[mode.depth - 1]


def test_a_fault_in_between_makes_the_successes_count_from_the_start():
    ladder = Ladder(Mode.EVENT_ONLY).success(CLIMB).success(CLIMB).fault(Mode.EVENT_ONLY)
    assert ladder.success(CLIMB).success(CLIMB).mode is Mode.EVENT_ONLY


def test_events_that_pass_lead_from_memory_to_events_and_no_further():
    assert Ladder(Mode.MEMORY_ONLY).events_pass().mode is Mode.EVENT_ONLY
    assert Ladder(Mode.EVENT_ONLY).events_pass().mode is Mode.EVENT_ONLY
    assert Ladder().events_pass().mode is Mode.FULL


def test_pauses_double_up_to_their_bound():
    ladder, pauses = Ladder(), []
    assert ladder.pause_seconds(CLIMB) == 0
    for _ in range(5):
        ladder = ladder.fault(Mode.EVENT_ONLY)
        pauses.append(ladder.pause_seconds(CLIMB))
    assert pauses == [1, 2, 4, 5, 5]
    assert Ladder(Mode.EVENT_ONLY, faults=10_000).pause_seconds(CLIMB) == 5


@given(st.lists(st.sampled_from([*STEPS, None])))
def test_one_success_never_leads_up_by_more_than_one_step(story):
    ladder = Ladder()
    for fault in story:
        before = ladder
        ladder = ladder.success(CLIMB) if fault is None else ladder.fault(fault)
        assert ladder.mode.depth >= before.mode.depth - 1
        if fault is not None:
            assert ladder.mode.depth >= fault.depth
