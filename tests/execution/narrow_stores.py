"""A store in memory that refuses what is large, and whose disk can be full."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.errors import DiskFullError, StateTooLargeError
from holdfast.domain.record import Commit
from holdfast.testing import FailingStore

_EVENT_BYTES_MAX = 200_000


class NarrowStore(FailingStore):
    """Takes no event above 200 KB, and refuses the whole group with it; nothing while it is full."""

    is_full = False

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.is_full:
            raise DiskFullError("no space left")
        if any(len(event.data) > _EVENT_BYTES_MAX for commit in commits for event in commit.events):
            raise StateTooLargeError("the event does not fit")
        return super().commit(commits)


LARGE = "x" * 300_000
