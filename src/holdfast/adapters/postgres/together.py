"""Work of several statements and the audit entries that tell of it: one transaction, and told once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from holdfast.adapters.postgres import trails
from holdfast.adapters.postgres.database import PostgresDatabase, Statements
from holdfast.adapters.postgres.trails import Chained
from holdfast.domain.audit_entry import AuditEntry, TrailHead

T = TypeVar("T")


def atomically(
    database: PostgresDatabase,
    audit: Sequence[AuditEntry],
    work: Callable[[Statements], T],
    *,
    is_worth_telling: Callable[[T], bool] = lambda _: True,
) -> T:
    """Do work in one transaction with the entries that tell of it, as often as it takes.

    Where the connection was lost at the end, the entries show whether all of it was kept: then it is not done
    again. Without entries the work must be able to bear that.

    Args:
        database: Where.
        audit: Entries, chained once the work is done.
        work: What is done, under the locks of the entries' sessions.
        is_worth_telling: Whether the work came to something.
    """
    sent: list[tuple[T, Chained]] = []
    sessions = trails.sessions_of(audit)

    def attempt(transaction: Statements) -> T:
        # Before any row: see `trails`.
        trails.lock(transaction, sessions, lock_seconds=database.connections.address.lock_seconds)
        if sent and trails.have_landed(transaction, sent[-1][1]):
            return sent[-1][0]
        result = work(transaction)
        if audit and is_worth_telling(result):
            heads = trails.read_heads(transaction, sessions)
            chained = Chained()
            chained.add(audit, lambda name: heads.get(name) or TrailHead(name))
            sent.append((result, chained))
            trails.append(transaction, chained)
        return result

    return database.atomically(attempt)
