"""Leases: the row of a workflow is locked, the domain decides, what it decided is kept.

A row stays when its lease is released, so that tokens only grow.
"""

from __future__ import annotations

from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Reads, Row, Transaction
from holdfast.domain import lease as leases
from holdfast.domain.record import Lease
from holdfast.ports import Clock

# Something to lock, also where there was never a lease.
_PLACE = """
insert into leases (workflow_id, owner, token, expires_at, released)
values (:workflow_id, '', 0, '', true)
on conflict (workflow_id) do nothing
"""

_READ = "select workflow_id, owner, token, expires_at, released from leases where workflow_id = :workflow_id"

_KEEP = """
update leases set owner = :owner, token = :token, expires_at = :expires_at, released = false
where workflow_id = :workflow_id
"""

_RELEASE = """
update leases set released = true where workflow_id = :workflow_id and token = :token and not released
"""


def acquire(
    transaction: Transaction,
    clock: Clock,
    workflow_id: str,
    owner: str,
    ttl_seconds: float,
    *,
    row_lock: str = "",
) -> Lease:
    """Take a workflow for an owner.

    Args:
        transaction: What the row is read and written in.
        clock: The time of the store, asked once the row is locked.
        workflow_id: The workflow.
        owner: Who wants it.
        ttl_seconds: For how long.
        row_lock: What a query ends with to lock its rows, where a transaction does not lock everything.
    """
    transaction.run(_PLACE, {"workflow_id": workflow_id})
    [row] = _locked(transaction, workflow_id, row_lock)
    now, last = clock.now(), _unreleased(row)
    previous = None if last is None else leases.as_of(last, now)
    granted = leases.granted(workflow_id, owner, previous, row[2], now=now, ttl_seconds=ttl_seconds)
    _keep(transaction, granted)
    return granted


def renew(
    transaction: Transaction, clock: Clock, lease: Lease, ttl_seconds: float, *, row_lock: str = ""
) -> Lease:
    """Give a lease new time from now on."""
    found = _locked(transaction, lease.workflow_id, row_lock)
    current = _unreleased(found[0]) if found else None
    renewed = leases.renewed(lease, current, now=clock.now(), ttl_seconds=ttl_seconds)
    _keep(transaction, renewed)
    return renewed


def release(transaction: Transaction, lease: Lease) -> bool:
    """Give a workflow up, and answer whether it was had; a lost lease is left as it is."""
    return bool(transaction.run(_RELEASE, {"workflow_id": lease.workflow_id, "token": lease.token}))


def last_lease(reads: Reads, clock: Clock, workflow_id: str) -> Lease | None:
    """Answer the last lease granted and not released, expired or not."""
    found = reads.rows(_READ, {"workflow_id": workflow_id})
    current = _unreleased(found[0]) if found else None
    return None if current is None else leases.as_of(current, clock.now())


def _locked(transaction: Transaction, workflow_id: str, row_lock: str) -> list[Row]:
    return transaction.rows(f"{_READ} {row_lock}", {"workflow_id": workflow_id})


def _unreleased(row: Row) -> Lease | None:
    return None if row[4] else rows.read_lease(row[:4], f"the lease of {row[0]}")


def _keep(transaction: Transaction, lease: Lease) -> None:
    transaction.run(
        _KEEP,
        {
            "workflow_id": lease.workflow_id,
            "owner": lease.owner,
            "token": lease.token,
            "expires_at": lease.expires_at,
        },
    )
