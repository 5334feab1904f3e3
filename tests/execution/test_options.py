"""How a run is carried out is checked before anything begins."""

from __future__ import annotations

import math

import pytest

from holdfast.domain.errors import ConfigError
from holdfast.execution.options import LEASE_SECONDS, RunOptions


def test_by_default_a_run_keeps_what_fits_and_waits_for_answers() -> None:
    options = RunOptions()
    assert (options.strict, options.waits, options.handles_signals) == (False, True, True)
    assert options.lease_seconds == LEASE_SECONDS
    assert (options.subscribers, options.renamed, options.config) == ((), {}, {})


@pytest.mark.parametrize("name", ["lease_seconds", "poll_seconds"])
@pytest.mark.parametrize("seconds", [0, -1, -math.inf, math.nan])
def test_times_are_positive(name: str, seconds: float) -> None:
    with pytest.raises(ConfigError, match="positive"):
        RunOptions(**{name: seconds})
