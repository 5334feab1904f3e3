"""Making many objects without Python's collector of cycles looking at them on the way."""

from __future__ import annotations

import gc


class Uncollected:
    """Leave the collector out for as long as the `with` statement lasts.

    It comes by each time some hundreds of objects were made, finds those of a state that is being read or
    written alive, and calls them old; after enough of them it looks through the whole process. Nothing that
    is done under this makes cycles. Of several threads inside, the first one that leaves lets it in again.
    """

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_enabled:
            gc.enable()
