"""Waiting for the commits that are under way, without holding up those that begin meanwhile.

A commit judges by a snapshot. Who makes something that older snapshots cannot see, and relies on all commits
seeing it, has to wait until the commits with those snapshots have ended.
"""

from __future__ import annotations

from holdfast.adapters.postgres.database import PostgresDatabase
from holdfast.domain.errors import StoreLockedError

# Whoever commits holds one of these locks, from before its snapshot is taken until its transaction has ended.
_WRITERS = """
select distinct virtualtransaction from pg_locks
where locktype = 'relation' and relation in (to_regclass('events'), to_regclass('checkpoints'))
and mode = 'RowExclusiveLock' and database = (select oid from pg_database where datname = current_database())
"""


def await_writers(database: PostgresDatabase, *, undone: str) -> None:
    """Return once every commit has ended that is under way now.

    Raises:
        StoreLockedError: one of them has not in time; `undone` says what was therefore not done.
    """
    deadline = database.connections.deadline()
    waited_for = _writers(database)
    while waited_for:
        if deadline.is_over:
            raise StoreLockedError(
                "a client has been in the middle of a transaction for long",
                place=database.place,
                hint=f"{undone}: end that transaction and try again.",
            )
        deadline.pause()
        waited_for &= _writers(database)


def _writers(database: PostgresDatabase) -> set[str]:
    return {name for (name,) in database.rows(_WRITERS)}
