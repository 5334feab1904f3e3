"""How far apart checkpoints should be: Young's formula, and Daly's closer one.

Too few checkpoints lose work, too many lose time. Young (1974) found the interval that loses least, to first
order, and Daly (2006) a closer one for checkpoints that are dear beside the time between failures.
"""

from __future__ import annotations

import math

#: Counts as one failure in so long, before any was seen. Four hours need not be right: where the truth is
#: four times more or less, the interval is wrong by two, and a quarter more is lost until it is learnt.
PRIOR_MTBF_SECONDS = 4 * 3600.0
#: Cost of a checkpoint before the first was measured.
PRIOR_COST_SECONDS = 0.1
#: The shortest and the longest interval that is ever answered.
MIN_INTERVAL_SECONDS = 1.0
MAX_INTERVAL_SECONDS = 3600.0


def young_seconds(cost_seconds: float, mtbf_seconds: float) -> float:
    """Tell the interval that loses least, to first order."""
    return math.sqrt(2 * cost_seconds * mtbf_seconds)


def daly_seconds(cost_seconds: float, mtbf_seconds: float) -> float:
    """Tell the interval that loses least, to a higher order; from the end of a checkpoint to the next."""
    if cost_seconds >= 2 * mtbf_seconds:
        return mtbf_seconds
    share = cost_seconds / (2 * mtbf_seconds)
    correction = 1 + math.sqrt(share) / 3 + share / 9
    return young_seconds(cost_seconds, mtbf_seconds) * correction - cost_seconds


def mtbf_seconds(ran_seconds: float, failures: int, prior_seconds: float = PRIOR_MTBF_SECONDS) -> float:
    """Estimate the mean time between failures, with one failure assumed beforehand."""
    return (prior_seconds + ran_seconds) / (1 + failures)


def recommended_seconds(
    cost_seconds: float,
    mtbf_seconds: float,
    min_seconds: float = MIN_INTERVAL_SECONDS,
    max_seconds: float = MAX_INTERVAL_SECONDS,
) -> float:
    """Tell the best interval within bounds."""
    return min(max(daly_seconds(cost_seconds, mtbf_seconds), min_seconds), max_seconds)
