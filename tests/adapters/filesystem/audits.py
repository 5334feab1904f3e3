"""Audit entries made by hand, for tests below the service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.payload import encode_payload
from holdfast.domain.record import NO_WORKFLOW, Commit, Head

MOMENT = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def told(number: int, session_id: str = "s-1", *, why: str = "") -> AuditEntry:
    """An entry with a number, and with a payload if there is a reason."""
    stored = encode_payload({"why": why}, bytes(32)) if why else b""
    return AuditEntry(MOMENT, "AGENT_DECISION", session_id, facts={"n": number}, stored=stored)


def commit(*audit: AuditEntry, **parts: Any) -> Commit:
    """A commit of no workflow."""
    return Commit(NO_WORKFLOW, Head(), audit=audit, **parts)


def tell(store: Any, *audit: AuditEntry, **parts: Any) -> None:
    assert store.commit([commit(*audit, **parts)]) == [None]
