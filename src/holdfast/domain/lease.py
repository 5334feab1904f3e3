"""Who may write a workflow: leases, and the rule by which a commit is fenced off.

Every store keeps per workflow the last lease it granted and whether that was released, asks these functions
while nobody else can change it, and keeps what they answer. The time is the store's: all its users are judged
by one clock, whatever their own say.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta

from holdfast.domain.errors import CheckpointConflictError, ConfigError, LeaseHeldError, LeaseLostError
from holdfast.domain.ids import check_id
from holdfast.domain.record import Commit, Lease
from holdfast.domain.time import timestamp_text

#: Whoever asks for more has most likely mistaken the unit.
TTL_MAX_SECONDS = 366 * 24 * 3600.0


def as_of(lease: Lease, now: datetime) -> Lease:
    """Say whether a lease is live at a moment."""
    return replace(lease, is_live=timestamp_text(now) < lease.expires_at)


def refusal(commit: Commit, lease: Lease | None) -> CheckpointConflictError | None:
    """Say why a commit must not be made; None if the lease allows it.

    A commit that shows a token passes if that is the token of the workflow's last lease and that was not
    released: one that has expired still passes while nobody else took it. A commit without a token passes
    unless a lease is live. Ask this before the head is compared: whoever lost the lease is mostly behind too,
    and must not be told to load the latest state and try again.

    Args:
        commit: What is to be committed.
        lease: The last lease granted and not released, its `is_live` told by the store's clock just now.
    """
    if commit.token:
        is_current = lease is not None and lease.token == commit.token
        return None if is_current else _lost(commit.workflow_id, commit.token, lease)
    if lease is None or not lease.is_live:
        return None
    return LeaseHeldError(
        f"{lease.owner!r} has the workflow for itself until {lease.expires_at}, this commit shows no lease",
        place=commit.workflow_id,
        hint="Acquire a lease before you write: you get it once this one is released or has expired.",
    )


def granted(
    workflow_id: str,
    owner: str,
    previous: Lease | None,
    last_token: int,
    *,
    now: datetime,
    ttl_seconds: float,
) -> Lease:
    """Decide whether an owner gets a workflow; answer the lease to keep.

    Args:
        workflow_id: The workflow.
        owner: Who wants it. An owner may take over from itself.
        previous: The last lease granted and not released, its `is_live` told by the store's clock at `now`.
        last_token: The highest token ever granted for the workflow, released ones included; 0 for none.
        now: The store's time.
        ttl_seconds: How long it is live; with 0 it has expired at once, and still fences off all before it.

    Raises:
        LeaseHeldError: if another owner's lease is live.
        InvalidIdError: if the owner's name cannot be one.
        ConfigError: if the time to live is negative, not finite, or more than a year.
    """
    check_id("owner", owner)
    if previous is not None and previous.is_live and previous.owner != owner:
        raise LeaseHeldError(
            f"{previous.owner!r} has the workflow for itself until {previous.expires_at}",
            place=workflow_id,
            hint="Try again then; it is free earlier if its owner releases it. If that process is surely "
            "dead, `holdfast recover WORKFLOW --take-over` ends its lease.",
        )
    return _lease(workflow_id, owner, last_token + 1, now, ttl_seconds)


def renewed(lease: Lease, current: Lease | None, *, now: datetime, ttl_seconds: float) -> Lease:
    """Give a lease new time from now on; answer the lease to keep.

    Args:
        lease: The lease that is shown.
        current: The last lease granted and not released. Whether it has expired does not matter.
        now: The store's time.
        ttl_seconds: How long it is live from now on.

    Raises:
        LeaseLostError: if the lease was released or another one granted.
        ConfigError: if the time to live is negative, not finite, or more than a year.
    """
    if current is None or not is_current(lease, current):
        raise _lost(lease.workflow_id, lease.token, current)
    return _lease(current.workflow_id, current.owner, current.token, now, ttl_seconds)


def is_current(lease: Lease, current: Lease | None) -> bool:
    """Whether a lease is still the workflow's last: only then releasing it changes anything."""
    return current is not None and current.token == lease.token


def _lease(workflow_id: str, owner: str, token: int, now: datetime, ttl_seconds: float) -> Lease:
    if not math.isfinite(ttl_seconds) or not 0 <= ttl_seconds <= TTL_MAX_SECONDS:
        raise ConfigError(
            f"a lease cannot last {ttl_seconds} seconds",
            place=workflow_id,
            hint=f"Give it 0 to {TTL_MAX_SECONDS:.0f} seconds, and renew it while you work.",
        )
    expires_at = timestamp_text(now + timedelta(seconds=ttl_seconds))
    return as_of(Lease(workflow_id, owner, token, expires_at), now)


def _lost(workflow_id: str, token: int, current: Lease | None) -> LeaseLostError:
    since = (
        "was released" if current is None else f"was followed by lease {current.token} of {current.owner!r}"
    )
    return LeaseLostError(
        f"lease {token} {since}",
        place=workflow_id,
        hint="Stop working on it: others may have gone on. To return, acquire it and load the latest state.",
    )
