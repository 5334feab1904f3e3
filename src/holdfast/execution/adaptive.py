"""How long to run between two checkpoints, learnt from what they cost and how often runs fail.

What is best for a known cost and a known rate of failures is told by `domain.checkpoint_interval`; here both
are measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, TypeGuard

from holdfast.domain.checkpoint_interval import (
    MAX_INTERVAL_SECONDS,
    MIN_INTERVAL_SECONDS,
    PRIOR_COST_SECONDS,
    PRIOR_MTBF_SECONDS,
    mtbf_seconds,
    recommended_seconds,
)
from holdfast.domain.errors import ConfigError, InvalidStateError

#: How much the newest measured cost counts against all those before it.
NEWEST_COST_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class AdaptiveSettings:
    """What is assumed before anything was measured, and the bounds of what is answered.

    Attributes:
        prior_mtbf_seconds: counts as one failure in so long.
        prior_cost_seconds: cost of a checkpoint before the first was measured.
        min_seconds: the shortest interval answered.
        max_seconds: the longest interval answered.
    """

    prior_mtbf_seconds: float = PRIOR_MTBF_SECONDS
    prior_cost_seconds: float = PRIOR_COST_SECONDS
    min_seconds: float = MIN_INTERVAL_SECONDS
    max_seconds: float = MAX_INTERVAL_SECONDS

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not _is_amount(value) or value == 0:
                raise ConfigError(
                    f"{field.name} is {value!r}", place="AdaptiveSettings", hint="Use seconds above 0."
                )
        if self.min_seconds > self.max_seconds:
            raise ConfigError(
                f"min_seconds is {self.min_seconds}, above max_seconds, {self.max_seconds}",
                place="AdaptiveSettings",
                hint="Give the bounds the other way round.",
            )


class AdaptiveInterval:
    """Learns the interval between checkpoints that loses least. Not thread-safe.

    The rate of failures is a mean over all that was seen, with one failure assumed beforehand: the posterior
    of a Gamma prior. The cost is a mean in which older measurements fade, because states grow.

    Attributes:
        settings: assumptions and bounds.
        failures: how many failures were seen.
        ran_seconds: how long runs were watched for them.
        cost_seconds: the mean cost of a checkpoint; None before the first.
    """

    def __init__(self, settings: AdaptiveSettings | None = None) -> None:
        self.settings = settings or AdaptiveSettings()
        self.failures = 0
        self.ran_seconds = 0.0
        self.cost_seconds: float | None = None

    @property
    def mtbf_seconds(self) -> float:
        """The mean time between failures, as far as it is known."""
        return mtbf_seconds(self.ran_seconds, self.failures, self.settings.prior_mtbf_seconds)

    @property
    def interval_seconds(self) -> float:
        """How long to run from the end of a checkpoint to the beginning of the next."""
        cost = self.settings.prior_cost_seconds if self.cost_seconds is None else self.cost_seconds
        settings = self.settings
        return recommended_seconds(cost, self.mtbf_seconds, settings.min_seconds, settings.max_seconds)

    def ran(self, seconds: float) -> None:
        """Count time in which a failure would have been seen."""
        self.ran_seconds += max(seconds, 0.0)

    def failed(self) -> None:
        """Count a failure that lost what was done since the last checkpoint."""
        self.failures += 1

    def paid(self, cost_seconds: float) -> None:
        """Learn what a checkpoint cost."""
        cost = max(cost_seconds, 0.0)
        before = cost if self.cost_seconds is None else self.cost_seconds
        self.cost_seconds = before + NEWEST_COST_WEIGHT * (cost - before)

    def as_plain(self) -> dict[str, Any]:
        """Tell what was learnt, to be stored."""
        return {
            "failures": self.failures,
            "ran_seconds": self.ran_seconds,
            "cost_seconds": self.cost_seconds,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], settings: AdaptiveSettings | None = None) -> Self:
        """Go on from what was learnt before.

        Args:
            plain: what `as_plain` told.
            settings: assumptions and bounds, which are not stored.

        Raises:
            InvalidStateError: it is not what `as_plain` tells.
        """
        failures, ran, cost = plain.get("failures"), plain.get("ran_seconds"), plain.get("cost_seconds")
        known_cost = cost is None or _is_amount(cost)
        if not (isinstance(failures, int) and _is_amount(failures) and _is_amount(ran) and known_cost):
            raise InvalidStateError(
                f"what was learnt about the interval is {dict(plain)!r}",
                place="AdaptiveInterval",
                hint="Start with a new one; it learns again.",
            )
        learnt = cls(settings)
        learnt.failures, learnt.ran_seconds, learnt.cost_seconds = int(failures), float(ran), cost
        return learnt


def _is_amount(value: object) -> TypeGuard[int | float]:
    """Whether a value is a finite number, 0 or more; True is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
