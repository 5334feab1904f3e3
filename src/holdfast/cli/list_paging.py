"""Pages of a listing: what is wanted, in which order, and where the next page goes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.record import Entry
    from holdfast.ports import Store

SORTS = ("newest", "oldest", "name", "size")
#: Of these the largest comes first.
_DESCENDING = frozenset({"newest", "size"})

#: A workflow, and a checkpoint of it: the one listed, or its newest; None if it has none.
Row = tuple[str, "Entry | None"]
Key = tuple[str | int, str | int]


@dataclass(frozen=True, slots=True)
class Filters:
    """What is wanted; None for anything."""

    status: str | None = None
    agent: str | None = None
    label: str | None = None
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: Numbers of checkpoints of the one workflow that were given the label after they were made.
    labelled: frozenset[int] = frozenset()

    def chosen(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield those that are wanted; what has no checkpoint is none of them where anything is asked for."""
        from holdfast.domain.time import timestamp_text

        since = timestamp_text(self.since) if self.since else ""
        until = timestamp_text(self.until) if self.until else ""
        wanted = {
            name: value for name in ("status", "agent", "label", "session") if (value := getattr(self, name))
        }
        is_any = not (wanted or since or until)
        for row in rows:
            entry = row[1]
            if is_any or (
                entry is not None
                and entry.timestamp >= since
                and (not until or entry.timestamp < until)
                and all(self._has(entry, name, value) for name, value in wanted.items())
            ):
                yield row

    def _has(self, entry: Entry, name: str, value: str) -> bool:
        return getattr(entry, name) == value or (name == "label" and entry.sequence in self.labelled)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of a listing, how many there are in all, and where those after them begin."""

    rows: list[Row]
    total: int
    next_cursor: str | None = None
    is_filtered: bool = False


@dataclass(frozen=True, slots=True)
class _Order:
    """The order of a listing, by which a page knows where the one before it ended.

    Attributes:
        listing: its name, so that no cursor of another is taken.
        key: where a row stands; no two rows have the same.
        shape: the types of a key.
    """

    listing: str
    key: Callable[[Row], Key]
    shape: tuple[type, type]
    is_descending: bool

    def sorted(self, rows: Iterable[Row]) -> list[Row]:
        """Put rows into order."""
        return sorted(rows, key=self.key, reverse=self.is_descending)

    def page(
        self, ordered: Iterable[Row], cursor: str | None, limit: int
    ) -> tuple[list[Row], int, str | None]:
        """Cut a page out of rows in order; answer it, how many there are, and where the next one begins."""
        from holdfast.application.insight.cursors import read_cursor, write_cursor

        last = None if cursor is None else read_cursor(self.listing, cursor, self.shape)
        shown: list[Row] = []
        total, is_more = 0, False
        for row in ordered:
            total += 1
            if last is None or (self.key(row) < last if self.is_descending else self.key(row) > last):
                is_more = len(shown) == limit
                if not is_more:
                    shown.append(row)
        return shown, total, write_cursor(self.listing, self.key(shown[-1])) if is_more else None


def workflow_page(
    store: Store,
    wanted: Filters,
    sort: str,
    cursor: str | None,
    limit: int,
    is_wanted: Callable[[str], bool] | None = None,
    branch: Collection[str] | None = None,
) -> Page:
    """Answer a page of the workflows of a store, each with its newest checkpoint.

    Args:
        is_wanted: tells by its name whether a workflow is like what is asked for beside.
        branch: only these workflows; all of them where it is None.
    """
    from holdfast.application.resolve import living

    def key(row: Row) -> Key:
        name, entry = row
        if sort == "size":
            return (entry.state_bytes if entry else 0), name
        return (name if sort == "name" else entry.timestamp if entry else ""), name

    order = _Order(f"workflows {sort}", key, (int if sort == "size" else str, str), sort in _DESCENDING)
    known = store.workflows() if branch is None else branch
    names = (name for name in known if is_wanted is None or is_wanted(name))
    rows = ((name, next(living(store, name), None)) for name in names)
    ordered = order.sorted(wanted.chosen(rows))
    is_filtered = is_wanted is not None or wanted != Filters()
    return Page(*order.page(ordered, cursor, limit), is_filtered=is_filtered)


def checkpoint_page(
    store: Store, workflow_id: str, wanted: Filters, sort: str, cursor: str | None, limit: int
) -> Page:
    """Answer a page of the checkpoints of a workflow."""
    from holdfast.application.resolve import living

    def key(row: Row) -> Key:
        entry = row[1]
        assert entry is not None
        return (entry.state_bytes if sort == "size" else entry.sequence), entry.sequence

    order = _Order(f"{workflow_id} {sort}", key, (int, int), sort in _DESCENDING)
    rows: Iterable[Row] = wanted.chosen((workflow_id, entry) for entry in living(store, workflow_id))
    # The newest come first by themselves, and nobody has to hold all of them.
    ordered = rows if sort == SORTS[0] else order.sorted(rows)
    return Page(*order.page(ordered, cursor, limit), is_filtered=wanted != Filters())
