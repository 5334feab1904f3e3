"""A workflow along time, and as a graph of its steps."""

from __future__ import annotations

import hashlib
from typing import Any

from holdfast.application.insight.step_graph import Graph, graph
from holdfast.application.insight.timeline import Timeline, timeline
from holdfast.domain.access import Scope
from holdfast.server.acting import READING
from holdfast.server.api.reading import known_run
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.packing import packed, unchanged

_UNCHANGED = {304: "It is what If-None-Match names."}
_LOOK_AGAIN = "private, no-cache"


def show_timeline(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Lay a workflow out along time; what happened is said in words to whoever may read states."""
    row = known_run(desk, asked.path["run"])
    has_words = asked.identity.may(Scope.STATE_READ)
    etag = _etag(desk, row.workflow_id, "words" if has_words else "", row.checkpoints)
    headers = {"ETag": etag, "Cache-Control": _LOOK_AGAIN}
    if known := unchanged(asked, headers):
        return known
    return packed(asked, timeline(desk.kit, row.workflow_id, has_words=has_words), headers)


def show_graph(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Draw the steps of a workflow, and the forks it is related to."""
    row = known_run(desk, asked.path["run"])
    family = desk.lineage.family(row.workflow_id)
    drawn = graph(desk.kit, desk.runs, row.workflow_id, family)
    return packed(asked, drawn, {"Cache-Control": _LOOK_AGAIN})


def _etag(desk: Desk, workflow_id: str, *what: Any) -> str:
    """Name how a workflow stands: nothing is drawn otherwise before its head moves."""
    told = (desk.kit.store.head(workflow_id), *what)
    return f'"{hashlib.sha256(ascii(told).encode()).hexdigest()[:32]}"'


OPERATIONS = (
    Operation(
        "getTimeline",
        "GET",
        "/runs/{run}/timeline",
        Scope.READ,
        "Lay a workflow out along time.",
        show_timeline,
        result=Timeline,
        tag="runs",
        problems={**READING, **_UNCHANGED},
    ),
    Operation(
        "getGraph",
        "GET",
        "/runs/{run}/graph",
        Scope.READ,
        "Draw the steps of a workflow, and the forks it is related to.",
        show_graph,
        result=Graph,
        tag="runs",
        problems=READING,
    ),
)
