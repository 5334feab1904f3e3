"""How a workflow stands at this moment, read from its newest checkpoint and the events since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.cli.opening import reading
from holdfast.domain.errors import CheckpointError, StoreNotFoundError

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.kit import Kit
    from holdfast.cli.group import Call
    from holdfast.domain.record import Lease


def standing(call: Call, workflow_id: str, *, app: App | None = None) -> Mapping[str, Any] | None:
    """Answer the fields of a workflow's state; None if there is no such workflow.

    Where they cannot be read none are answered: recovery does better, and says what is wrong.
    """
    from holdfast.application.insight.questions import last_point

    try:
        with reading(call, app=app) as kit:
            point = last_point(kit, workflow_id)
            fields: dict[str, Any] | None = None if point is None else kit.registry.revive(point.tree)
            return fields
    except StoreNotFoundError:
        return None
    except CheckpointError:
        return {}


def runner_of(kit: Kit, workflow_id: str) -> Lease | None:
    """Answer the lease of whoever runs a workflow; None if nobody does."""
    from holdfast.application.recovery.owners import is_held

    lease = kit.store.lease(workflow_id)
    return lease if is_held(lease) else None


def report_path(kit: Kit, workflow_id: str) -> str | None:
    """Tell where the progress report of a workflow lies, if it is a file that is there."""
    place = kit.progress
    if place is None or not place.has(workflow_id):
        return None
    # Not every place for reports is a folder.
    path = getattr(place, "path", None)
    return None if path is None else str(path(workflow_id))


def begun_with(fields: Mapping[str, Any] | None) -> dict[str, Any]:
    """Answer what a run was begun with: what its options told the agents, and its program."""
    config = (fields or {}).get("execution_config", {}).get("config", {})
    return dict(config) if isinstance(config, Mapping) else {}
