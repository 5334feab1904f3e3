"""Giving entries their place in the tree: one at a time does it, for some entries at a time.

An entry is chained to one that was committed before it was made. So whoever sees it sees all before it in its
session, and takes them first. What is committed later is taken later. Nobody who commits waits for this.
"""

from __future__ import annotations

from holdfast.adapters.postgres.database import PostgresDatabase, Statements
from holdfast.adapters.sql.trail import tree_size

#: Entries that get their place in one transaction.
AT_ONCE = 2000

_LOCK = "select pg_advisory_xact_lock('audit_by_leaf'::regclass::oid::int, 0)"

# By time within a piece, as far as one tells: within a session time never runs backwards.
_PLACE = """
update audit set leaf = placed.leaf
from (
    select session_id, seq, :size + row_number() over (order by timestamp, session_id, seq) - 1 as leaf
    from (
        select session_id, seq, timestamp from audit where leaf is null
        order by session_id, seq limit :at_once
    ) as waiting
) as placed
where audit.session_id = placed.session_id and audit.seq = placed.seq
"""


def integrate(database: PostgresDatabase) -> int:
    """Place every entry that was committed before this began; answer how many have a place.

    Raises:
        StoreLockedError: somebody else has been at it for long.
    """
    while True:
        size, placed = database.atomically(_place)
        if placed < AT_ONCE:
            return size + placed


def _place(transaction: Statements) -> tuple[int, int]:
    """Place some entries; answer how many had a place before, and how many got one."""
    transaction.run(_LOCK)
    # Asked anew now that the lock is held: the snapshot of this sees what the last one placed.
    size = tree_size(transaction)
    return size, transaction.run(_PLACE, {"size": size, "at_once": AT_ONCE})
