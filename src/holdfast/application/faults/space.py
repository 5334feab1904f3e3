"""Noticing that a disk gets full while the trail can still be told."""

from __future__ import annotations

import logging

from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType

_LOG = logging.getLogger("holdfast")
#: Below this share of the disk, and this many bytes, space is low.
_LOW_SHARE = 0.05
_LOW_BYTES = 4 * 1024**3
#: Space that is so many times what is low is no longer low.
_ENOUGH = 1.5


class SpaceWatch:
    """Looks at the free space of the store's disk now and then, and tells once when it gets low."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail
        self.is_low = False

    def look(self) -> None:
        """Look, and tell if space has become low, or is enough again."""
        space = self._kit.space() if self._kit.space is not None else None
        if space is None or self._kit.store.read_only:
            return
        total, free = space
        low = min(total * _LOW_SHARE, _LOW_BYTES)
        if free < low and not self.is_low:
            self.is_low = True
            _LOG.warning("%d bytes are left where %s is: free space", free, self._kit.store.url)
            facts: dict[str, int | str] = {"reason": "low_space", "free_bytes": free, "total_bytes": total}
            # Noted, and so in the next commit: what tells of a full disk must not wait for one.
            self._trail.note(*self._trail.told(AuditType.STORE_DEGRADED, facts=facts))
        elif free > low * _ENOUGH:
            self.is_low = False
