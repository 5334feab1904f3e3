"""Payloads that are gone although nothing in the trail tells that they were erased.

Erasing a workflow names it, and pruning tells how old a payload must have been. What is gone, of a workflow
that was not erased, and not as old, was taken by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from holdfast.application.audit.missing import erases, is_own
from holdfast.domain.audit_type import AuditType
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail_check import Fault, Kind

_PROBLEM = "a payload is gone, and no erasure tells of it"


class GonePayloads:
    """Hears a trail once; erasures come after what they erase, so that the verdict comes at the end."""

    def __init__(self) -> None:
        #: Of each workflow, and of entries without one, the newest entry whose payload is gone.
        self._newest: dict[str | None, tuple[str, Fault]] = {}
        self._erased: set[str | None] = set()
        self._pruned_before = ""

    def hear(self, fields: Mapping[str, Any], index: int, is_gone: bool) -> None:
        """Take an entry: its payload may be gone, or it tells why others are."""
        if is_gone:
            self._take(fields, index)
        elif fields["type"] == AuditType.PAYLOADS_PRUNED and is_own(fields):
            self._pruned_before = max(self._pruned_before, _limit(fields))
        elif erases(fields) and is_own(fields):
            self._erased.add(fields.get("workflow"))

    def _take(self, fields: Mapping[str, Any], index: int) -> None:
        workflow_id, moment = fields.get("workflow"), fields["ts"]
        if moment >= self._newest.get(workflow_id, ("",))[0]:
            session_id, seq = fields["session"], fields["seq"]
            place = f"payload of audit entry {seq} of session {ascii(session_id)[:80]}"
            self._newest[workflow_id] = moment, Fault(Kind.PAYLOAD, _PROBLEM, place, index, session_id, seq)

    def faults(self) -> Iterator[Fault]:
        """Name of each workflow the newest payload that is gone for no reason that was told."""
        for workflow_id, (moment, fault) in self._newest.items():
            is_erased = workflow_id is not None and workflow_id in self._erased
            if not is_erased and moment >= self._pruned_before:
                yield fault


def _limit(fields: Mapping[str, Any]) -> str:
    """Answer before when an entry must have been made for pruning to take its payload."""
    days = fields.get("data", {}).get("older_than_days")
    # What somebody else wrote there must not keep anybody from verifying.
    with suppress(OverflowError, TypeError):
        return timestamp_text(datetime.fromisoformat(fields["ts"]) - timedelta(days=days))
    return ""
