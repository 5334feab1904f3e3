"""Steps are timed, and work that takes too long ends with an error that says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.application.recovery.stopwatch import Stopwatch
from holdfast.domain.errors import CheckpointRecoveryError


def ticks(*times: float) -> Iterator[float]:
    return iter(times)


def test_each_step_is_timed() -> None:
    clock = ticks(0, 1, 3, 3, 4, 4.5, 4.5, 10)
    watch = Stopwatch(60, lambda: next(clock))
    with watch.step("find"):
        pass
    with watch.step("replay"):
        pass
    assert [(one.step, one.milliseconds) for one in watch.steps] == [("find", 2000), ("replay", 500)]
    assert watch.milliseconds == 10_000


def test_too_long_is_an_error_that_says_what_to_do() -> None:
    clock = ticks(0, 1, 62, 62)
    watch = Stopwatch(60, lambda: next(clock))
    with (
        pytest.raises(CheckpointRecoveryError, match="longer than 60 seconds") as refusal,
        watch.step("find"),
    ):
        pass
    assert "recovery_timeout_seconds" in refusal.value.hint
    assert len(watch.steps) == 1


def test_a_step_that_failed_is_timed_too_and_its_error_is_kept() -> None:
    clock = ticks(0, 1, 2)
    watch = Stopwatch(60, lambda: next(clock))
    with pytest.raises(KeyError), watch.step("find"):
        raise KeyError("x")
    assert [one.milliseconds for one in watch.steps] == [1000]
