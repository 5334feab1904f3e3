"""What takes the room in a store: by workflow, by kind, and how much of it could go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.application.holding import standing
from holdfast.application.insight.sample import (
    LISTED_MAX,
    Chosen,
    Listed,
    OnProgress,
    listings,
    newest_workflows,
    silently,
)
from holdfast.application.kit import Kit
from holdfast.application.quarantine_files import reports
from holdfast.domain.retention import RetentionPolicy, removal, select

#: So many workflows are told, the largest.
SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class WorkflowUse:
    """What one workflow takes.

    Attributes:
        pruned: checkpoints that were removed.
        state_bytes: what its kept states would take if each were stored whole.
        newest_state_bytes: the whole state of its newest checkpoint.
        blobs: how many different blobs it refers to.
        reclaimable: checkpoints that retention would remove; the bytes that this gives back at least.
        is_held: a legal hold keeps everything.
    """

    workflow_id: str
    checkpoints: int
    pruned: int
    record_bytes: int
    keyframe_bytes: int
    state_bytes: int
    newest_state_bytes: int
    blobs: int
    reclaimable: int
    reclaimable_bytes: int
    is_held: bool

    @property
    def stored_bytes(self) -> int:
        """Bytes of its records and keyframes."""
        return self.record_bytes + self.keyframe_bytes


@dataclass(frozen=True, slots=True)
class StorageUse:
    """What a store takes.

    Attributes:
        bytes: everything, as the store counts it; `kinds` by what it is, where the store tells.
        state_bytes: what the kept states would take if each were stored whole.
        stored_bytes: what they take: records, keyframes, and their share of the blobs.
        dedup_ratio: the former by the latter; None where nothing is stored.
        blob_references: how often records and keyframes refer to a blob; `blobs` are the different ones.
        retain_count, retain_days, max_per_phase: by what could go is judged.
        is_automatic: that is removed by itself; else these are what `prune` would go by.
        quarantine_bytes: copies of what was found damaged; `quarantined` is how many, `barred` how many of
            them were not released.
        left_off: workflows that were looked at and are not told, being smaller.
    """

    url: str
    bytes: int
    kinds: dict[str, int]
    looked_at: int
    total: int
    checkpoints: int
    state_bytes: int
    stored_bytes: int
    dedup_ratio: float | None
    blobs: int
    blob_references: int
    reclaimable: int
    reclaimable_bytes: int
    retain_count: int
    retain_days: int
    max_per_phase: int | None
    is_automatic: bool
    quarantined: int
    barred: int
    quarantine_bytes: int
    disk_bytes: int | None
    free_bytes: int | None
    workflows: tuple[WorkflowUse, ...]
    left_off: int


def storage(
    kit: Kit,
    workflow_id: str | None = None,
    limit: int = LISTED_MAX,
    on_progress: OnProgress = silently,
) -> StorageUse:
    """Tell what takes the room, over the newest workflows or one; nothing is changed."""
    chosen = Chosen((workflow_id,), 1) if workflow_id else newest_workflows(kit.store, limit)
    return storage_of(kit, chosen, kit.store.stats(), on_progress)


def storage_of(
    kit: Kit, chosen: Chosen, stats: Mapping[str, Any], on_progress: OnProgress = silently
) -> StorageUse:
    """Tell what takes the room over the workflows that were chosen, beside what the store tells of itself."""
    policy, now = kit.retention or RetentionPolicy(), kit.clock.now()
    holds = standing(kit.store)
    is_all_held = any(hold.workflow_id is None and hold.subject is None for hold in holds)
    held = {hold.workflow_id for hold in holds}
    used: list[WorkflowUse] = []
    blobs: set[str] = set()
    references = 0
    for listed in listings(kit, chosen.names, on_progress):
        is_held = is_all_held or listed.workflow_id in held
        used.append(_use(listed, policy, now, is_held=is_held))
        named = _named_blobs(listed)
        references += len(named)
        blobs.update(named)
    return _whole(kit, policy, stats, used, chosen.total, blobs, references)


def _whole(
    kit: Kit,
    policy: RetentionPolicy,
    stats: Mapping[str, Any],
    used: list[WorkflowUse],
    total: int,
    blobs: set[str],
    references: int,
) -> StorageUse:
    kinds = {str(kind): _bytes(told) for kind, told in (stats.get("kinds") or {}).items()}
    state_bytes = sum(one.state_bytes for one in used)
    stored_bytes = sum(one.stored_bytes for one in used) + _blob_bytes(stats, kinds, len(blobs))
    set_aside = reports(kit.store)
    space = kit.space() if kit.space is not None else None
    used.sort(key=lambda one: (-one.stored_bytes, one.workflow_id))
    return StorageUse(
        kit.store.url,
        int(stats.get("bytes", 0)),
        kinds,
        len(used),
        total,
        sum(one.checkpoints for one in used),
        state_bytes,
        stored_bytes,
        state_bytes / stored_bytes if stored_bytes else None,
        len(blobs),
        references,
        sum(one.reclaimable for one in used),
        sum(one.reclaimable_bytes for one in used),
        policy.retain_count,
        policy.retain_days,
        policy.max_per_phase,
        kit.retention is not None,
        len(set_aside),
        sum(one.released is None for one in set_aside),
        sum(one.size_bytes for one in set_aside),
        space[0] if space else None,
        space[1] if space else None,
        tuple(used[:SHOWN_MAX]),
        max(len(used) - SHOWN_MAX, 0),
    )


def _use(listed: Listed, policy: RetentionPolicy, now: datetime, *, is_held: bool) -> WorkflowUse:
    kept = [entry for entry in listed.entries if not entry.pruned]
    count, freed = (0, 0) if is_held else _reclaimable(listed, policy, now)
    return WorkflowUse(
        listed.workflow_id,
        len(kept),
        len(listed.entries) - len(kept),
        sum(entry.length for entry in kept),
        sum(keyframe.length for keyframe in listed.keyframes),
        sum(entry.state_bytes for entry in kept),
        kept[-1].state_bytes if kept else 0,
        len(set(_named_blobs(listed))),
        count,
        freed,
        is_held,
    )


def _named_blobs(listed: Listed) -> list[str]:
    """Name the blobs of what is kept, each as often as a record or a keyframe refers to it."""
    records = [sha256 for entry in listed.entries if not entry.pruned for sha256 in entry.blobs]
    return records + [sha256 for keyframe in listed.keyframes for sha256 in keyframe.blobs]


def _reclaimable(listed: Listed, policy: RetentionPolicy, now: datetime) -> tuple[int, int]:
    """Work out what retention would remove; whether the newest can be restored is not tried here."""
    sequences = [keyframe.sequence for keyframe in listed.keyframes]
    chosen = select(listed.entries, sequences, policy, now)
    going = removal(listed.entries, listed.keyframes, chosen.keep)
    groups = set(going.groups)
    freed = sum(entry.length for entry in listed.entries if entry.group in groups)
    freed += sum(keyframe.length for keyframe in listed.keyframes if keyframe.sequence in groups)
    return len(going.sequences), freed


def _bytes(told: Any) -> int:
    """Read what a store tells of one kind: a number, or a number of files and of bytes."""
    return int(told.get("bytes", 0)) if isinstance(told, Mapping) else int(told)


def _blob_bytes(stats: Mapping[str, Any], kinds: Mapping[str, int], named: int) -> int:
    """Tell what so many blobs take, by their share of all blobs of the store."""
    told = (stats.get("kinds") or {}).get("blobs")
    count = told.get("files", 0) if isinstance(told, Mapping) else stats.get("blobs", 0)
    return round(kinds.get("blobs", 0) * min(named / count, 1.0)) if count else 0
