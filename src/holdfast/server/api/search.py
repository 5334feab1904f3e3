"""One box to find everything by."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.application.insight.search import Hit, search
from holdfast.domain.access import Scope
from holdfast.server.api.reading import Text
from holdfast.server.desk import Desk
from holdfast.server.operation import Asked, Operation


class SearchQuery(msgspec.Struct):
    """What is looked for."""

    q: Text
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class Hits(msgspec.Struct):
    """What was found, what fits best first."""

    items: list[Hit]
    next_cursor: None = None


def find(desk: Desk, asked: Asked[SearchQuery, None]) -> Hits:
    """Find what a text may mean; entries of the trail for whoever may read that."""
    query, may = asked.query, asked.identity.may
    found = search(
        desk.kit,
        desk.runs,
        query.q,
        query.limit,
        with_trail=may(Scope.AUDIT_READ),
        with_errors=may(Scope.STATE_READ),
    )
    return Hits(found)


OPERATIONS = (
    Operation(
        "search",
        "GET",
        "/search",
        Scope.READ,
        "Find workflows, checkpoints, agents, labels, errors and entries of the trail.",
        find,
        query=SearchQuery,
        result=Hits,
        tag="search",
    ),
)
