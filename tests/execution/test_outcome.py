"""What came of a run."""

from __future__ import annotations

import pytest

from holdfast.domain.errors import ResultLostError
from holdfast.domain.unwritten import Unwritten
from holdfast.execution.outcome import RunResult, RunStatus, unless_lost


@pytest.mark.parametrize("status", RunStatus)
def test_a_run_is_completed_only_if_it_is(status: RunStatus) -> None:
    assert RunResult("W", status).is_completed is (status == "completed")


def test_a_result_without_particulars_is_empty() -> None:
    result = RunResult("W", RunStatus.WAITING)
    assert (result.results, result.value, result.outputs, result.metrics) == ({}, None, [], {})
    assert (result.kept, result.ran, result.waiting, result.warnings) == (0, 0, (), ())


def test_what_the_store_does_not_have_is_a_warning_and_only_as_it_is_now() -> None:
    result = RunResult("W", RunStatus.COMPLETED, warnings=("odd",))
    waiting, kept = Unwritten(2, "full"), Unwritten(3, "full", "file:/second")
    assert result.is_durable and result.with_unwritten(Unwritten()) == result
    assert result.with_unwritten(waiting).warnings == ("odd", waiting.text)
    later = result.with_unwritten(waiting).with_unwritten(kept)
    assert later.warnings == ("odd", kept.text) and not later.is_durable
    assert later.with_unwritten(Unwritten()) == result


def test_what_is_lost_is_raised_with_the_result() -> None:
    kept = RunResult("W", RunStatus.COMPLETED).with_unwritten(Unwritten(1, "full", "file:/second"))
    assert unless_lost(kept) is kept
    lost = kept.with_unwritten(Unwritten(1, "full", is_lost=True))
    with pytest.raises(ResultLostError, match="LOST") as told:
        unless_lost(lost)
    assert told.value.result is lost and told.value.place == "W"
