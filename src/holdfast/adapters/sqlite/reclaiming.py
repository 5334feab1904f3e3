"""Giving the space of removed rows back to the file system, in steps that let commits pass in between."""

from __future__ import annotations

import time

from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Reads
from holdfast.adapters.sqlite.database import SqliteDatabase

#: A tombstone is written anew behind the last row: in place of its record it would keep a page for itself.
DROP_RECORDS = f"""
replace into checkpoints (workflow_id, {rows.ENTRY_COLUMNS}, data)
select workflow_id, {rows.ENTRY_COLUMNS}, null from checkpoints
where workflow_id = :workflow_id and sequence between :first and :last and data is not null
"""

#: A step frees this many pages, and keeps others from writing for about as long as a large commit.
PAGES_PER_STEP = 128
#: Long enough for a thread that waits to take its turn.
_PAUSE_SECONDS = 0.001


def reclaim(database: SqliteDatabase, *, steps_max: int | None = None) -> None:
    """Move what lies at the end of the file into free pages, and cut the end off."""
    steps = 0
    while (free := free_pages(database)) and (steps_max is None or steps < steps_max):
        if steps:
            time.sleep(_PAUSE_SECONDS)
        if not _step(database, free):
            return
        steps += 1


def _step(database: SqliteDatabase, free: int) -> bool:
    """Give some pages back; answer whether that can be done: not in a file made without `auto_vacuum`."""
    with database.transaction() as transaction:
        before = free_pages(transaction)
        for _ in range(min(free, PAGES_PER_STEP)):
            # One page each: asked for more, Python's module would stop after the first all the same.
            transaction.rows("pragma incremental_vacuum(1)")
        return free_pages(transaction) < before


def free_pages(database: Reads) -> int:
    """Count the pages that nothing is kept in."""
    return int(database.rows("pragma freelist_count")[0][0])


def free_bytes(database: Reads) -> int:
    """Measure what reclaiming would give back."""
    return free_pages(database) * int(database.rows("pragma page_size")[0][0])
