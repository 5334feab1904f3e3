"""What a store is made of, how it grows, and what its runs have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from holdfast.application.insight.agents import AgentStats
from holdfast.application.insight.anomalies import Anomalies
from holdfast.application.insight.growth import Growth
from holdfast.application.insight.intervals import Intervals
from holdfast.application.insight.paths import Paths
from holdfast.application.insight.recoveries import Recoveries
from holdfast.application.insight.risk import Risks
from holdfast.application.insight.storage import StorageUse
from holdfast.application.insight.summary import Stats, stats
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.server.api.reading import check_there
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation

#: What each part answers.
RESULTS: Mapping[str, Any] = {
    "storage": StorageUse,
    "growth": Growth,
    "agents": tuple[AgentStats, ...],
    "paths": Paths,
    "intervals": Intervals,
    "recoveries": Recoveries,
    "anomalies": Anomalies,
    "risks": Risks,
}


class StatsQuery(msgspec.Struct):
    """Over which runs, and how far back."""

    run: str | None = None
    days: Annotated[int, Meta(ge=1, le=3650)] = 30
    #: So many journals are read, the newest runs first.
    limit: Annotated[int, Meta(ge=1, le=1000)] = 200


def counted(desk: Desk, asked: Asked[StatsQuery, None]) -> Stats:
    """Count everything."""
    return _count(desk, asked, frozenset(RESULTS))


def _part(name: str) -> Callable[[Desk, Asked[StatsQuery, None]], Any]:
    """Make what answers one part."""

    def answer(desk: Desk, asked: Asked[StatsQuery, None]) -> Any:
        return getattr(_count(desk, asked, frozenset({name})), name)

    return answer


def _count(desk: Desk, asked: Asked[StatsQuery, None], parts: frozenset[str]) -> Stats:
    query = asked.query
    if query.run is not None:
        check_there(desk, query.run)
    told = stats(desk.kit, query.run, parts=parts, limit=query.limit, days=query.days)
    desk.note(AuditType.EVENTS_READ, query.run, {"format": "stats", "workflows": told.looked_at})
    return told


_NONE_SUCH = {404: "There is no such workflow.", 409: "What is stored is damaged."}

OPERATIONS = (
    Operation(
        "getStats",
        "GET",
        "/stats",
        Scope.READ,
        "Everything that is counted.",
        counted,
        query=StatsQuery,
        result=Stats,
        tag="stats",
        problems=_NONE_SUCH,
    ),
    *(
        Operation(
            f"get{name.capitalize()}Stats",
            "GET",
            f"/stats/{name}",
            Scope.READ,
            f"Statistics: {name}.",
            _part(name),
            query=StatsQuery,
            result=result,
            tag="stats",
            problems=_NONE_SUCH,
        )
        for name, result in RESULTS.items()
    ),
)
