"""Listings that are small enough to be read at once, given out a part at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta

from holdfast.server.problems import Detail, Refusal
from holdfast.server.totals import Total

Row = TypeVar("Row")


class Part(msgspec.Struct):
    """Which part of a listing."""

    #: What the part before ended with.
    cursor: Annotated[str, Meta(max_length=500)] | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    #: Whether is told how many there are in all.
    count: bool = False


def part_of(
    rows: Sequence[Row], part: Part, name_of: Callable[[Row], str]
) -> tuple[list[Row], str | None, Total]:
    """Answer a part of a listing, the cursor that leads to the next, and how many there are if asked.

    Args:
        name_of: answers what a row is known by; the last one of a part is the cursor.

    Raises:
        Refusal: the cursor is not that of a row: it may have gone meanwhile.
    """
    first = 0
    if part.cursor is not None:
        names = [name_of(row) for row in rows]
        if part.cursor not in names:
            raise Refusal(
                400,
                "invalid_cursor",
                "the cursor leads nowhere: what it named is gone, or it is none",
                hint="Begin anew without a cursor.",
                errors=[Detail("it leads nowhere", "cursor")],
            )
        first = names.index(part.cursor) + 1
    chosen = list(rows[first : first + part.limit])
    is_last = first + part.limit >= len(rows)
    cursor = None if is_last or not chosen else name_of(chosen[-1])
    return chosen, cursor, len(rows) if part.count else UNSET
