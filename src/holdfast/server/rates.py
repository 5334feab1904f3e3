"""How often one may ask: a bucket for each that asks, filled at a steady rate."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_BUCKETS_MAX = 10_000


class Rates:
    """Counts what each asks for; those who asked longest ago are forgotten first."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        # Less than one would let nobody in, ever.
        self._burst = max(1.0, 2 * per_second)
        self._clock = clock
        self._mutex = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_seconds(self, who: str) -> float:
        """Take one request; answer 0 if it may be made, else how long to wait."""
        now = self._clock()
        with self._mutex:
            level, at = self._buckets.pop(who, (self._burst, now))
            level = min(self._burst, level + (now - at) * self._per_second)
            wait = 0.0 if level >= 1 else (1 - level) / self._per_second
            self._buckets[who] = (level if wait else level - 1, now)
            while len(self._buckets) > _BUCKETS_MAX:
                self._buckets.popitem(last=False)
        return wait
