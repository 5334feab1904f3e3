"""What checkpoints and failures take from the work, told exactly."""

from __future__ import annotations

import math


def expected_share_lost(interval: float, cost: float, mtbf: float) -> float:
    """The exact mean overhead of checkpoints under exponential failures, with nothing lost by restarts."""
    return mtbf * math.expm1((interval + cost) / mtbf) / interval - 1
