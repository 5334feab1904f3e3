"""The clock on the wall and identifiers out of the operating system's randomness."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime


class SystemClock:
    """Tells the time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class RandomIds:
    """Makes random UUIDs (version 4)."""

    def new(self) -> str:
        return str(uuid.uuid4())
