"""Which workflows moved, as the trail tells: of very many nobody can ask each one time and again."""

from __future__ import annotations

from itertools import islice

from holdfast.domain.errors import CheckpointError
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store

#: So many entries are read at once, the newest; whoever moved before them is found when its turn comes.
ENTRIES_MAX = 2_000


class RunNews:
    """Follows the trail of one store. For one thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Index in the tree of the next entry to read.
        self._next = 0

    def names(self) -> list[str]:
        """Name the workflows of new entries, the last one first, each once; at first those of its end.

        A workflow that nobody told the trail of, or whose entry is damaged, is not named.
        """
        try:
            size = self._store.integrate()
            first = max(self._next, size - ENTRIES_MAX)
            lines = list(islice(self._store.leaves(after=first), max(size - first, 0)))
        except CheckpointError:
            # A trail that cannot be read is told where the trail is; no workflow is hidden by it.
            return []
        self._next = size
        told = (_workflow_of(line) for line in reversed(lines))
        return list(dict.fromkeys(name for name in told if name is not None))


def _workflow_of(line: bytes) -> str | None:
    try:
        return decode_entry(line, None).workflow_id
    except CheckpointError:
        return None
