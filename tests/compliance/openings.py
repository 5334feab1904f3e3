"""Real services on real stores, opened as a user opens them."""

from __future__ import annotations

from typing import Any

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.trail import read_fields


def open_service(url: str, session: str = "s-1", **settings: Any) -> CheckpointService:
    """Open a store for one session of one actor; nothing is done in the background."""
    chosen = {"actor": "ann", "retain": False, "background": False, **settings}
    return bootstrap.open(url, session=session, **chosen)


def entries(url: str) -> list[dict[str, Any]]:
    """Read the whole trail through an opening that can never write."""
    with open_service(url, read_only=True, audit=False) as reader:
        store = reader._engine.kit.store
        return [read_fields(line) for line in [*store.leaves(), *store.waiting()]]


def told(url: str) -> list[dict[str, Any]]:
    """Read what operations told, without the beginnings and ends of sessions and the telling of heads."""
    framing = {
        AuditType.SESSION_STARTED,
        AuditType.SESSION_CLOSED,
        AuditType.HEAD_SIGNED,
        AuditType.KEY_CREATED,
    }
    return [entry for entry in entries(url) if entry["type"] not in framing]
