"""Nothing begins once a run shall stop."""

from __future__ import annotations

import pytest

from holdfast.execution.outcome import RunStatus
from holdfast.execution.stopping import Stopped, StopSign


def test_until_then_everything_may_begin() -> None:
    sign = StopSign()
    sign.check()
    assert sign.status is None


@pytest.mark.parametrize("status", [RunStatus.PAUSED, RunStatus.CANCELLED, RunStatus.STOPPED])
def test_then_nothing_begins_any_more(status: RunStatus) -> None:
    sign = StopSign()
    sign.set(status)
    with pytest.raises(Stopped) as stopped:
        sign.check()
    assert stopped.value.status is status


def test_the_first_reason_stays() -> None:
    sign = StopSign()
    sign.set(RunStatus.STOPPED)
    sign.set(RunStatus.PAUSED)
    assert sign.status is RunStatus.STOPPED


@pytest.mark.parametrize("status", [RunStatus.CANCELLED, RunStatus.STOPPED])
def test_a_pause_is_outweighed(status: RunStatus) -> None:
    sign = StopSign()
    sign.set(RunStatus.PAUSED)
    sign.set(status)
    assert sign.status is status


def test_an_agent_that_catches_everything_does_not_catch_a_stop() -> None:
    assert not issubclass(Stopped, Exception)
