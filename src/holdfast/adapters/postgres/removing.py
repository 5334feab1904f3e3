"""Removing while others commit: an event goes only when no commit can race for its place any more.

A commit that believes in an older head meets the row of the next event, and is refused. If the row were gone
when it gets there, it would get in. So only events go that every commit under way can see.
"""

from __future__ import annotations

from dataclasses import replace

from holdfast.adapters.postgres import together
from holdfast.adapters.postgres.barrier import await_writers
from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.adapters.sql import removing
from holdfast.domain.record import Removal

_LAST_EVENT = "select coalesce(max(seq), 0) from events where workflow_id = :workflow_id"


def remove(database: PostgresDatabase, workflow_id: str, removal: Removal) -> int:
    """Do all that a removal asks for; answer the bytes given back.

    Raises:
        StoreLockedError: a commit has been under way for long; nothing was removed.
    """
    if removal.events_through:
        removal = _bounded(database, workflow_id, removal)
    return together.atomically(
        database, removal.audit, lambda transaction: removing.remove(transaction, workflow_id, removal)
    )


def _bounded(database: PostgresDatabase, workflow_id: str, removal: Removal) -> Removal:
    """Leave events alone that come only now, and wait for commits that may not see those that go."""
    [(last,)] = database.rows(_LAST_EVENT, {"workflow_id": workflow_id})
    await_writers(database, undone="Nothing was removed")
    return replace(removal, events_through=min(removal.events_through, last))
