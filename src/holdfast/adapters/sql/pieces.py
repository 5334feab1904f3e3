"""Long answers are read in pieces: a piece is what one query, and one lock, is held for."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.adapters.sql.database import Parameters, Reads, Row

LISTED_AT_ONCE = 1000
RECORDS_AT_ONCE = 200
#: Who reads records wants all of a group, and a second piece of them is a round trip more.
RECORDS_AT_FIRST = 64
#: The first piece is small, for most want few rows, and each has so many times the rows of the one before: a
#: listing of a hundred reads 160.
_AT_FIRST = 32
_GROWTH = 4


def pieces(
    reads: Reads,
    query: str,
    wanted: Parameters,
    keys: tuple[str, ...],
    start: Row,
    at_once: int,
    at_first: int = _AT_FIRST,
) -> Iterator[Row]:
    """Yield the rows of a query piece by piece.

    Args:
        reads: What is asked.
        query: Ordered by its first columns, and limited to `:at_once` rows.
        wanted: Its other parameters.
        keys: The parameters, one for each of the first columns, that tell it where to go on.
        start: What they are at first.
        at_once: How many rows a piece has at most.
        at_first: How many the first one has.
    """
    size = min(at_first, at_once)
    while True:
        place = dict(zip(keys, start, strict=True))
        found = reads.rows(query, {**wanted, **place, "at_once": size})
        yield from found
        if len(found) < size:
            return
        start = found[-1][: len(keys)]
        size = min(size * _GROWTH, at_once)
