"""Who looked at what a moment ago: a page that opens a state part by part looks at it once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

_SECONDS = 60.0
_KEPT_MAX = 10_000


class Looks:
    """Remembers looks for a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._until: OrderedDict[str, float] = OrderedDict()

    def is_new(self, look: str) -> bool:
        """Tell whether nobody looked so within the last minute, and remember this look."""
        now = self._clock()
        with self._mutex:
            is_new = self._until.get(look, now) <= now
            if is_new:
                self._until[look] = now + _SECONDS
                self._until.move_to_end(look)
            while len(self._until) > _KEPT_MAX:
                self._until.popitem(last=False)
        return is_new
