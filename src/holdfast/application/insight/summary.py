"""Everything that is counted over a store, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.application.insight.agents import AgentStats, agents_of
from holdfast.application.insight.anomalies import Anomalies, anomalies_of
from holdfast.application.insight.growth import DAYS, Growth, growth_of
from holdfast.application.insight.intervals import Intervals, intervals_of
from holdfast.application.insight.paths import Paths, paths_of
from holdfast.application.insight.recoveries import Recoveries, recoveries_of
from holdfast.application.insight.risk import Risks, risks_of
from holdfast.application.insight.sample import (
    LISTED_MAX,
    WORKFLOWS_MAX,
    Chosen,
    OnProgress,
    newest_workflows,
    sample_of,
    silently,
)
from holdfast.application.insight.storage import StorageUse, storage_of
from holdfast.application.kit import Kit
from holdfast.domain.time import timestamp_text

#: What can be asked for.
PARTS = (
    "storage",
    "growth",
    "agents",
    "paths",
    "intervals",
    "recoveries",
    "anomalies",
    "risks",
)
#: What is told by listings alone: no journal is read for it.
LISTING_PARTS = frozenset({"storage", "growth"})


@dataclass(frozen=True, slots=True)
class Stats:
    """What was counted; None stands for what was not asked for.

    Attributes:
        looked_at: workflows whose journals were read, out of `total`.
        unreadable: those whose journals could not be read to their ends.
    """

    store: str
    at: str
    workflow_id: str | None
    looked_at: int
    total: int
    unreadable: tuple[str, ...]
    storage: StorageUse | None = None
    growth: Growth | None = None
    agents: tuple[AgentStats, ...] | None = None
    paths: Paths | None = None
    intervals: Intervals | None = None
    recoveries: Recoveries | None = None
    anomalies: Anomalies | None = None
    risks: Risks | None = None


def stats(
    kit: Kit,
    workflow_id: str | None = None,
    *,
    parts: frozenset[str] = frozenset(PARTS),
    limit: int = WORKFLOWS_MAX,
    days: int = DAYS,
    limit_bytes: int | None = None,
    on_progress: OnProgress = silently,
) -> Stats:
    """Count over the newest workflows of a store, or over one.

    Args:
        workflow_id: only this one; others are looked at where something is compared with them.
        parts: what to tell, of PARTS.
        limit: how many journals to read, the newest workflows first.
        days: how far back growth is told.
        limit_bytes: what the store must not exceed.
        on_progress: told how many journals were read.
    """
    has_journals, has_listings = bool(parts - LISTING_PARTS), bool(parts & LISTING_PARTS)
    compares = has_journals and (workflow_id is None or bool(parts & {"anomalies", "risks"}))
    listed_max = LISTED_MAX if has_listings and workflow_id is None else 0
    newest = newest_workflows(kit.store, max(limit if compares else 0, listed_max))
    sample = sample_of(
        kit, newest.first(limit if compares else 0, workflow_id if has_journals else None), on_progress
    )
    own = sample.only(workflow_id)
    listed = Chosen((workflow_id,), 1) if workflow_id else newest.first(LISTED_MAX)
    told = kit.store.stats() if has_listings else {}
    store_bytes, is_part = int(told.get("bytes", 0)), workflow_id is not None
    grown = (
        growth_of(kit, listed, days, store_bytes, limit_bytes, is_part=is_part) if "growth" in parts else None
    )
    return Stats(
        kit.store.url,
        timestamp_text(sample.now),
        workflow_id,
        len(sample.looked) if has_journals else 0,
        sample.total,
        sample.unreadable,
        storage_of(kit, listed, told) if "storage" in parts else None,
        grown,
        tuple(agents_of(own)) if "agents" in parts else None,
        paths_of(own) if "paths" in parts else None,
        intervals_of(own) if "intervals" in parts else None,
        recoveries_of(kit, own, workflow_id) if "recoveries" in parts else None,
        anomalies_of(sample, workflow_id) if "anomalies" in parts else None,
        risks_of(kit, sample, workflow_id) if "risks" in parts else None,
    )
