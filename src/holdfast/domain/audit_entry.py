"""An audit entry, and where the trail of its session stands; `trail` writes and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from holdfast.domain.audit_type import Outcome
from holdfast.domain.ids import GENESIS
from holdfast.domain.value import value


@value
class TrailHead:
    """Where a session's trail stands: what its next entry must follow."""

    session_id: str
    seq: int = 0
    hash: str = GENESIS
    #: When the last entry was made, as written; empty before the first.
    timestamp: str = ""
    closed: bool = False


@value
class AuditEntry:
    """One entry. The fields from `seq` on are filled in when it is encoded, whatever they were.

    Attributes:
        clock: what the clock said, where that was before the entry before: `timestamp` is then the time of
            that one, for time never runs backwards in a trail, and nobody can overlook that it tried to.
        facts: references that may stay for ever. No person's data.
        payload: commitment to the payload, if there is one.
        stored: the payload as it is stored beside; a line that is read again comes without it.
    """

    timestamp: datetime
    type: str
    session_id: str
    workflow_id: str | None = None
    agent: str | None = None
    actor: str | None = None
    outcome: str = Outcome.SUCCESS
    correlation_id: str | None = None
    facts: Mapping[str, int | str] = field(default_factory=dict)
    payload: str = ""
    stored: bytes = field(default=b"", repr=False)
    seq: int = 0
    id: str = ""
    clock: datetime | None = None
    prev_hash: str = ""
    hash: str = ""


@value
class AuditRecord:
    """One entry as committed: the line that is a leaf of the tree, and where the trail stands after it."""

    id: str
    head: TrailHead
    data: bytes
    #: The payload as stored; empty if there is none.
    payload: bytes = b""
    #: For stores that index them.
    type: str = ""
    workflow_id: str | None = None
