"""What came of a run."""

from __future__ import annotations

import pytest

from holdfast.execution.outcome import RunResult, RunStatus


@pytest.mark.parametrize("status", RunStatus)
def test_a_run_is_completed_only_if_it_is(status: RunStatus) -> None:
    assert RunResult("W", status).is_completed is (status == "completed")


def test_a_result_without_particulars_is_empty() -> None:
    result = RunResult("W", RunStatus.WAITING)
    assert (result.results, result.value, result.outputs, result.metrics) == ({}, None, [], {})
    assert (result.kept, result.ran, result.waiting, result.warnings) == (0, 0, (), ())
