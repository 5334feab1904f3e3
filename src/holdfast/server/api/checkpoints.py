"""Checkpoints: listed over all workflows, and shown one by one."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from holdfast.application.annotating import annotation_of, annotations_of
from holdfast.application.insight.checkpoint_listing import CheckpointFilter, checkpoint_page, matched
from holdfast.application.insight.checkpoint_rows import CheckpointRow, checkpoint_row
from holdfast.application.insight.event_story import words
from holdfast.application.insight.state_nodes import children_of
from holdfast.application.loading import record_fields
from holdfast.application.quarantine_marks import is_quarantined
from holdfast.application.resolve import Found
from holdfast.application.travel.travelling import Point
from holdfast.domain.access import Scope
from holdfast.domain.annotation import Annotation
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES
from holdfast.domain.errors import CheckpointError
from holdfast.domain.ids import check_workflow_id
from holdfast.server.acting import READING
from holdfast.server.api.reading import Cursor, Limit, Text, aware, found_checkpoint
from holdfast.server.desk import Desk
from holdfast.server.etags import answer_etag, checkpoint_etag
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.packing import packed, unchanged
from holdfast.server.problems import encode
from holdfast.server.totals import Total, total_of

_FIELDS_MAX = 200

Status = Literal["active", "completed", "failed", "recovering"]
Type = Literal[
    "workflow_start",
    "stage_start",
    "stage_complete",
    "agent_start",
    "agent_complete",
    "sync_barrier",
    "error_state",
    "workflow_complete",
]


class CheckpointsQuery(msgspec.Struct):
    """Which checkpoints."""

    run: Text | None = None
    agent: Text | None = None
    status: Status | None = None
    type: Type | None = None
    label: Text | None = None
    since: datetime | None = None
    until: datetime | None = None
    cursor: Cursor | None = None
    limit: Limit = 100
    count: bool = False


class CheckpointPage(msgspec.Struct):
    """Some checkpoints, newest first. A page may be short and go on: so many were looked at.

    `is_complete` says whether every workflow was looked at by now; of very many that takes several requests.
    """

    items: list[CheckpointRow]
    next_cursor: str | None
    is_complete: bool = True
    total: Total = UNSET


class StateField(msgspec.Struct):
    """One field of a state."""

    name: str
    kind: str
    count: int | None
    size_bytes: int
    preview: str


class CheckpointDetail(msgspec.Struct):
    """Everything about one checkpoint but its state.

    `summary` and `fields` are there for whoever may read states. Where the record or the state cannot be
    read `problem` says why.
    """

    row: CheckpointRow
    summary: str
    error_message: str | None
    resume_handler: str | None
    max_retries: int
    agent_version: str | None
    schema_version: str
    is_quarantined: bool
    previous: str | None
    next: str | None
    fields: list[StateField]
    forked_from: str | None
    problem: str
    #: Said of it since it was made, beside the label of its row; the note for whoever may read states.
    labels: list[str]
    note: str
    noted_by: str | None


def list_checkpoints(desk: Desk, asked: Asked[CheckpointsQuery, None]) -> CheckpointPage:
    """List checkpoints."""
    query = asked.query
    wanted = CheckpointFilter(
        None if query.run is None else check_workflow_id(query.run),
        query.agent,
        query.status,
        query.type,
        query.label,
        aware(query.since),
        aware(query.until),
        _labelled(desk, query),
    )
    rows, following = checkpoint_page(desk.runs, wanted, query.cursor, query.limit)
    total = total_of(matched(desk.runs, wanted), is_asked=query.count)
    is_complete = query.run is not None or desk.runs.is_complete
    if query.count and not is_complete:
        # Of those that were not looked at nobody knows.
        total = None
    return CheckpointPage(rows, following, is_complete, total)


def _labelled(desk: Desk, query: CheckpointsQuery) -> frozenset[tuple[str, int]]:
    """Answer the checkpoints that were given a label later; of all workflows what their last events say."""
    if query.label is None:
        return frozenset()
    if query.run is None:
        known = (facts for _, facts in desk.runs.all())
        return frozenset(
            (facts.workflow_id, number)
            for facts in known
            for number, label in facts.given
            if label == query.label
        )
    found = [Found(query.run, entry) for entry in desk.kit.store.entries(query.run) if not entry.pruned]
    said = annotations_of(desk.reader, query.run, found)
    return frozenset((query.run, number) for number, one in said.items() if query.label in one.labels)


def show_checkpoint(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Tell everything about one checkpoint but its state."""
    found = found_checkpoint(desk, asked.path["checkpoint"])
    said = _said(desk, found)
    may_look = asked.identity.may(Scope.STATE_READ)
    detail, looked_at = _detail(desk, found, said, may_look=may_look)
    body = encode(detail)
    # Neighbours, damage and quarantine are told with it, and are no part of its version.
    etag = answer_etag(checkpoint_etag(found.entry, said.event_seq), body)
    headers = {"ETag": etag, "Cache-Control": "no-store" if detail.is_quarantined else "private, no-cache"}
    if not detail.is_quarantined and (known := unchanged(asked, headers)):
        return known
    if looked_at is not None:
        desk.note_looked(looked_at)
    return packed(asked, body, headers)


def _said(desk: Desk, found: Found) -> Annotation:
    try:
        return annotation_of(desk.reader, found)
    except CheckpointError:
        # Told where its events are listed; what it is does not depend on it.
        return Annotation()


def _detail(
    desk: Desk, found: Found, said: Annotation, *, may_look: bool
) -> tuple[CheckpointDetail, Point | None]:
    """Put everything together, and answer which state was looked at for it."""
    record, problem = _record(desk, found)
    point: Point | None = None
    if may_look and not problem:
        point, problem = _point(desk, found)
    tree: dict[str, Any] = {} if point is None else point.tree
    before, after = _neighbours(desk, found)
    origin = desk.lineage.origin(found.workflow_id)
    detail = CheckpointDetail(
        checkpoint_row(found.workflow_id, found.entry),
        words(tree.get("context_summary")) if isinstance(tree.get("context_summary"), str) else "",
        _error(desk, found) if may_look else None,
        _text(record.get("handler")),
        _number(record.get("max_retries")),
        _text(record.get("agent_version")),
        found.entry.schema,
        is_quarantined(desk.kit.store, found.workflow_id, found.entry.sequence),
        before,
        after,
        [
            StateField(str(node.key), node.kind, node.count, node.size_bytes, node.preview)
            for node in children_of(tree, (), 0, _FIELDS_MAX)
        ],
        origin.point if origin is not None and before is None else None,
        problem,
        list(said.labels),
        said.note if may_look else "",
        said.by if may_look else None,
    )
    return detail, point


def _record(desk: Desk, found: Found) -> tuple[dict[str, Any], str]:
    try:
        return record_fields(desk.kit.store, found.workflow_id, found.entry, desk.kit.vault), ""
    except CheckpointError as damage:
        return {}, words(damage.message)


def _point(desk: Desk, found: Found) -> tuple[Point | None, str]:
    try:
        return desk.travel.checkpoint(found), ""
    except CheckpointError as damage:
        return None, words(damage.message)


def _error(desk: Desk, found: Found) -> str | None:
    if found.entry.status == "active":
        return None
    try:
        last = desk.reader.last_status(found)
    except CheckpointError:
        return None
    return None if last is None else _text(last.data.get("error_message"))


def _neighbours(desk: Desk, found: Found) -> tuple[str | None, str | None]:
    """Name the checkpoints before and after one that are kept."""
    later = None
    facts = desk.runs.facts(found.workflow_id)
    entries = iter(()) if facts is None else (entry for _, entry in desk.runs.recent.of(facts))
    for entry in entries:
        if entry.sequence <= found.entry.sequence:
            break
        later = entry
    earlier = next(islice(entries, 1), None)
    names = [None if one is None else f"{found.workflow_id}@{one.sequence}" for one in (earlier, later)]
    return names[0], names[1]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> int:
    return value if type(value) is int else DEFAULT_MAX_RETRIES


OPERATIONS = (
    Operation(
        "listCheckpoints",
        "GET",
        "/checkpoints",
        Scope.READ,
        "List checkpoints, the newest first.",
        list_checkpoints,
        query=CheckpointsQuery,
        result=CheckpointPage,
        alias=True,
        tag="checkpoints",
        problems={409: "What is stored is damaged, or cannot be read here."},
    ),
    Operation(
        "getCheckpoint",
        "GET",
        "/checkpoints/{checkpoint}",
        Scope.READ,
        "Tell everything about one checkpoint but its state.",
        show_checkpoint,
        result=CheckpointDetail,
        alias=True,
        tag="checkpoints",
        problems={
            **READING,
            304: "It is what If-None-Match names.",
            409: "Several have such a name, or what is stored is damaged.",
        },
    ),
)
