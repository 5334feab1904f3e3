"""An audit entry as it is given to people and programs: its line read and checked, its payload opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.secrecy.sealing import read_payload
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import KeyDestroyedError, KeyUnavailableError
from holdfast.domain.trail import decode_entry


class PayloadState(StrEnum):
    """What became of the payload of an entry."""

    NONE = "none"
    OPENED = "opened"
    ERASED = "erased"
    #: It is there, and cannot be opened here: no key.
    SEALED = "sealed"
    #: It is there, and is not what was committed to.
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One entry of the trail.

    Attributes:
        id: its name within its session.
        seq: its number within its session, from 1.
        clock: what the clock said, where that had stepped back.
        facts: references that stay for ever.
        data: the payload; None if there never was one, or it was erased.
        state: what became of the payload.
        commitment: what the line says about the payload; empty if there never was one.
        line: the bytes that were hashed.
    """

    id: str
    seq: int
    timestamp: datetime
    type: str
    session_id: str
    workflow_id: str | None
    agent: str | None
    actor: str | None
    outcome: str
    correlation_id: str | None
    facts: Mapping[str, int | str]
    data: dict[str, Any] | None
    state: PayloadState
    clock: datetime | None
    commitment: str
    prev_hash: str
    hash: str
    line: bytes = field(repr=False)


def open_event(kit: Kit, line: bytes) -> AuditEvent:
    """Read a line and its payload.

    Raises:
        ChecksumMismatchError: line or payload are not what was committed.
        CheckpointCorruptError: they are, and still no entry.
    """
    entry = decode_entry(line, None)
    state, data = open_payload(kit, entry)
    return AuditEvent(
        id=entry.id,
        seq=entry.seq,
        timestamp=entry.timestamp,
        type=entry.type,
        session_id=entry.session_id,
        workflow_id=entry.workflow_id,
        agent=entry.agent,
        actor=entry.actor,
        outcome=entry.outcome,
        correlation_id=entry.correlation_id,
        facts=entry.facts,
        data=data,
        state=state,
        clock=entry.clock,
        commitment=entry.payload,
        prev_hash=entry.prev_hash,
        hash=entry.hash,
        line=line,
    )


def open_payload(kit: Kit, entry: AuditEntry) -> tuple[PayloadState, dict[str, Any] | None]:
    """Read the payload that an entry commits to, as far as it is there and can be opened here.

    Raises:
        ChecksumMismatchError: it is not the one that was committed to.
    """
    if not entry.payload:
        return PayloadState.NONE, None
    stored = kit.store.payload(entry.session_id, entry.seq)
    if stored is None:
        return PayloadState.ERASED, None
    try:
        return PayloadState.OPENED, read_payload(kit.vault, entry, stored)
    except KeyDestroyedError:
        return PayloadState.ERASED, None
    except KeyUnavailableError:
        return PayloadState.SEALED, None
