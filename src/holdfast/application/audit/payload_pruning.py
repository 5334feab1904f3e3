"""Letting go of old payloads of the trail: what was said goes, that it was said stays, and can be proven.

Lines are never removed: they hold references, and every proof rests on them. Payloads may go once they are
older than the minimum for which a trail has to be kept, unless a legal hold covers their workflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from holdfast.application.holding import Hold, standing
from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import ConfigError
from holdfast.domain.trail import decode_entry

_BATCH = 1000


@dataclass(frozen=True, slots=True)
class PrunedPayloads:
    """What went, or would go, and what a hold kept."""

    payloads: int
    held: int
    dry_run: bool = False


def prune_payloads(kit: Kit, trail: Trail, older_than_days: int, *, dry_run: bool = False) -> PrunedPayloads:
    """Remove the payloads of entries that are older than so many days.

    Raises:
        ConfigError: they have to be kept for longer.
    """
    if older_than_days < kit.audit_retain_days:
        raise ConfigError(
            f"the trail is kept for {kit.audit_retain_days} days at least, not {older_than_days}",
            hint="Name a longer time, or change audit_retain_days if you may.",
        )
    holds = standing(kit.store)
    going: list[tuple[str, int]] = []
    held = 0
    for entry in _old_entries(kit, older_than_days):
        if any(_covers(hold, entry) for hold in holds):
            held += 1
        else:
            going.append((entry.session_id, entry.seq))
    if not dry_run:
        for start in range(0, len(going), _BATCH):
            batch = tuple(going[start : start + _BATCH])
            facts: dict[str, int | str] = {"payloads": len(batch), "older_than_days": older_than_days}
            trail.erase(trail.told(AuditType.PAYLOADS_PRUNED, facts=facts), batch)
    return PrunedPayloads(len(going), held, dry_run)


def _old_entries(kit: Kit, older_than_days: int) -> Iterator[AuditEntry]:
    """Find entries of that age whose payload is still there."""
    limit = kit.clock.now() - timedelta(days=older_than_days)
    for session_id in kit.store.sessions():
        for line in kit.store.trail(session_id):
            entry = decode_entry(line, None)
            if entry.timestamp >= limit:
                # Time never runs backwards in a session.
                break
            if entry.payload and kit.store.payload(session_id, entry.seq) is not None:
                yield entry


def _covers(hold: Hold, entry: AuditEntry) -> bool:
    """Tell whether a hold keeps a payload; whom it is about is not known here, so any subject's hold does."""
    return hold.workflow_id is None or hold.workflow_id == entry.workflow_id
