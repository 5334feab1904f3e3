"""The point that a workflow was forked from, as its first checkpoint says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Entry
from holdfast.ports import Store

_MARK = b"forked_from"


@dataclass(frozen=True, slots=True)
class Origin:
    """The point that a workflow was forked from."""

    workflow_id: str
    #: `WF@42`, or `WF@event:123` between two checkpoints.
    point: str
    sequence: int


def origin_of(kit: Kit, workflow_id: str) -> Origin | None:
    """Answer where a workflow was forked from; None if it was not, or that cannot be read any more."""
    first = first_entry(kit.store, workflow_id)
    return None if first is None else origin_in(kit, workflow_id, first)


def first_entry(store: Store, workflow_id: str) -> Entry | None:
    """Answer the first checkpoint that a workflow had; None if there is none yet, or it cannot be read."""
    try:
        return next(iter(store.entries(workflow_id)), None)
    except CheckpointError:
        return None


def origin_in(kit: Kit, workflow_id: str, first: Entry) -> Origin | None:
    """Read where a workflow comes from in its first checkpoint."""
    try:
        if kit.vault is None and not _is_marked(kit.store, workflow_id, first.sequence):
            return None
        return _origin(record_fields(kit.store, workflow_id, first, kit.vault))
    except (CheckpointError, ValueError):
        return None


def _is_marked(store: Store, workflow_id: str, sequence: int) -> bool:
    """Tell by its bytes whether a record may tell of a fork: most do not, and are not read."""
    return any(_MARK in data for data in store.records(workflow_id, sequence, sequence))


def _origin(fields: Mapping[str, Any]) -> Origin | None:
    told = fields.get("forked_from")
    if not isinstance(told, Mapping) or not isinstance(told.get("wf"), str):
        return None
    event_seq, sequence = told.get("event_seq"), told.get("seq")
    number = sequence if isinstance(sequence, int) else 0
    point = f"{told['wf']}@{number}" if event_seq is None else f"{told['wf']}@event:{event_seq}"
    return Origin(told["wf"], point, number)
