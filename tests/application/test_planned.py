"""What is planned from how the store stands is planned anew where others were faster, and not for ever."""

from __future__ import annotations

import pytest

from holdfast.application.commands import AppendEvent
from holdfast.application.planned import ATTEMPTS_MAX, commit_planned
from holdfast.domain.errors import CheckpointConflictError, LeaseHeldError
from holdfast.domain.record import Transition


def plan() -> tuple[AppendEvent, tuple[Transition, ...]]:
    return AppendEvent("W", "NOTED"), ()


class Racing:
    """A writer whose commits are overtaken so many times."""

    def __init__(self, problem: Exception, times: int) -> None:
        self._problem = problem
        self._times = times
        self.tries = 0

    def append_planned(self, workflow_id, plan):
        self.tries += 1
        return plan()

    def wait(self, planned):
        if self.tries <= self._times:
            raise self._problem


@pytest.mark.parametrize("times", [0, 1, ATTEMPTS_MAX - 1])
def test_whoever_was_overtaken_plans_again(times: int) -> None:
    racing = Racing(CheckpointConflictError("too late"), times)
    commit_planned(racing, racing.wait, "W", plan)
    assert racing.tries == times + 1


def test_nobody_tries_for_ever() -> None:
    racing = Racing(CheckpointConflictError("too late"), 1_000)
    with pytest.raises(CheckpointConflictError):
        commit_planned(racing, racing.wait, "W", plan)
    assert racing.tries == ATTEMPTS_MAX


def test_a_workflow_that_others_hold_is_told_at_once() -> None:
    racing = Racing(LeaseHeldError("bob has it"), 1_000)
    with pytest.raises(LeaseHeldError):
        commit_planned(racing, racing.wait, "W", plan)
    assert racing.tries == 1
