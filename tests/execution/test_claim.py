"""Having a workflow for a run."""

from __future__ import annotations

import os

from holdfast.execution.claim import Claim


def test_whoever_listens_is_told_once_it_is_lost() -> None:
    claim, told = Claim(), list[int]()
    claim.on_lost = lambda: told.append(1)
    claim.lose()
    assert told == [1] and claim.is_lost


def test_a_loss_that_nobody_listens_to_is_no_error() -> None:
    claim = Claim()
    claim.lose()
    assert claim.is_lost


def test_it_counts_only_in_the_process_that_made_it() -> None:
    claim = Claim()
    child = os.fork()
    if child == 0:
        os._exit(7 if claim.is_lost else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not claim.is_lost
